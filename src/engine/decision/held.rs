//! The question about protected files that a command wrote and that are held back: one for all of a command's.

use std::sync::Arc;

use tiller_permit::decide::approval::Call;
use tiller_permit::{HeldPath, HeldVerdict, Verdict};
use tiller_protocol::ask::{PermissionAsk, Risk};
use tiller_protocol::{
    AgentId, AskBody, AskReply, Decision, PermissionOutcome, Profile, SessionId, ToolVerb,
};
use tiller_tool::shell::{HeldAnswer, HeldDecision, HeldKind, HeldWrite};
use tokio::sync::mpsc;

use super::answer::remember;
use crate::bus::{Bus, EventScope};
use crate::core::msg::Msg;
use crate::core::services::Services;
use crate::questions::asking;
use crate::questions::msg::QuestionMsg;
use crate::questions::permission::rule_not_saved;

/// The tool that the question names: with it an agent would write such files.
const TOOL: &str = "write_file";
/// The reason that the question shows.
const RULE: &str = "a command wrote protected files, which are held back: a yes keeps them as they are shown, a no leaves them out";

/// Decides about the files that commands of one agent wrote and that are held back.
pub(crate) struct HeldJudge {
    pub(crate) services: Arc<Services>,
    pub(crate) bus: Arc<Bus>,
    pub(crate) scope: EventScope,
    /// The main agent's session: what is allowed there is allowed to all its agents.
    pub(crate) root: SessionId,
    pub(crate) profile: Profile,
}

/// The question, and the rule that lets its files of instructions stay.
struct HeldQuestion {
    ask: PermissionAsk,
    rule: Option<String>,
}

impl HeldJudge {
    /// Judges them by mode and rules, and asks about the rest.
    pub(crate) async fn confirm(
        &self,
        tx: &mpsc::Sender<Msg>,
        agent: &AgentId,
        files: &[HeldWrite],
        more: usize,
    ) -> HeldAnswer {
        let verdicts =
            self.services.permit.held(agent, self.profile, &files.iter().map(plain_path).collect::<Vec<_>>());
        let mut decisions: Vec<HeldDecision> = verdicts.iter().map(|verdict| decision_of(*verdict)).collect();
        let asked: Vec<&HeldWrite> = files
            .iter()
            .zip(&verdicts)
            .filter(|(_, verdict)| **verdict == HeldVerdict::Ask)
            .map(|(file, _)| file)
            .collect();
        let Some(HeldQuestion { ask, rule }) = self.question(&asked, more) else {
            return HeldAnswer { decisions, ..HeldAnswer::default() };
        };
        let (hash, shown, always) = (ask.hash.clone(), ask.shown.clone(), ask.always.clone());
        // Without the call: it runs already, and is not to be asked about after a restart.
        let answer = asking::request(tx, agent, None, AskBody::Permission(ask)).await;
        let unanswered = answer.is_err();
        let (decided, comment) = match answer {
            Err(why) => {
                self.unanswered(tx, shown, why, always);
                (HeldDecision::Refused, None)
            }
            Ok(AskReply::Permission { decision, hash: answered }) if answered == hash => {
                self.decided(decision, rule).await
            }
            Ok(_) => (HeldDecision::LeftOut, None),
        };
        for (decision, _) in decisions.iter_mut().zip(&verdicts).filter(|(_, v)| **v == HeldVerdict::Ask) {
            *decision = decided;
        }
        HeldAnswer { decisions, comment, unanswered }
    }

    /// `None`: there is nothing to ask about. `more`: files that stay out and are not asked about.
    fn question(&self, files: &[&HeldWrite], more: usize) -> Option<HeldQuestion> {
        files.first()?;
        let (paths, plain): (Vec<HeldPath>, Vec<HeldPath>) =
            files.iter().map(|file| (path_of(file), plain_path(file))).unzip();
        let (mut effects, _) = self.services.permit.held_effects(&paths);
        let (_, rule) = self.services.permit.held_effects(&plain);
        let named = self.services.permit.named();
        let names: Vec<String> =
            files.iter().map(|file| named(&tiller_protocol::names::written(&file.path))).collect();
        let of = |counts: &dyn Fn(&HeldWrite) -> bool| {
            let some = files.iter().zip(&names).filter(|(file, _)| counts(file));
            some.map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(", ")
        };
        for (kind, before, behind) in [
            (HeldKind::Program, "makes", " executable"),
            (HeldKind::Link, "makes", " a link"),
            (HeldKind::Removed, "removes", ""),
        ] {
            let some = of(&|file| file.kind == kind);
            if !some.is_empty() {
                effects.push(format!("{before} {some}{behind}"));
            }
        }
        if rule.is_some() {
            let some = of(&is_plain);
            effects.push(format!("a yes holds until the session ends: commands may write {some} again"));
        }
        if more > 0 {
            effects.push(format!("leaves {more} more protected files out: too many, too large, or not text"));
        }
        let diff: String = files.iter().map(|file| file.diff.as_str()).collect();
        let all = plain.iter().all(|path| path.instructs);
        let kinds: Vec<&str> = files.iter().map(|file| file.kind.word()).collect();
        let always = rule.clone().filter(|_| all);
        let call = Call {
            tool: TOOL,
            verb: &ToolVerb::Write,
            shown: &names.join("\n"),
            arguments: &serde_json::json!({ "held": names, "kinds": kinds, "diff": diff }),
            folder: "",
            diff: (!diff.is_empty()).then_some(diff.as_str()),
            why: "",
            editable: false,
        };
        let ask = call.ask(&Verdict::Ask { rule: RULE.into(), risk: Risk::High, effects, always })?;
        Some(HeldQuestion { ask, rule })
    }

    /// Applies an answer. `rule`: lets the files of instructions stay that it was about.
    async fn decided(&self, decision: Decision, rule: Option<String>) -> (HeldDecision, Option<String>) {
        let (pattern, always) = match decision {
            // One question for each file of instructions and session.
            Decision::Once => (rule, false),
            Decision::Session { pattern } => (Some(pattern), false),
            Decision::Always { pattern } => (Some(pattern), true),
            Decision::Deny { comment } => {
                return (HeldDecision::LeftOut, comment.filter(|comment| !comment.trim().is_empty()));
            }
            Decision::Outside | Decision::Edit { .. } => return (HeldDecision::LeftOut, None),
        };
        if let Some(pattern) = pattern {
            let done = remember(&self.services.permit, &self.services, self.root, &pattern, always).await;
            if let Err(why) = done {
                self.bus.publish(&self.scope, rule_not_saved(&why));
            }
        }
        (HeldDecision::Kept, None)
    }

    /// Reports that no one could answer.
    fn unanswered(&self, tx: &mpsc::Sender<Msg>, shown: String, by: String, allow: Option<String>) {
        let redact = &self.services.redaction.redact;
        let what = redact(&shown.replace('\n', ", "));
        // A rule that names a secret is no help with its mask.
        let allow = allow.filter(|rule| redact(rule) == **rule);
        let decision = PermissionOutcome::Nobody;
        // The engine may have ended, or its inbox be full: the result says it anyway.
        let _ = tx.try_send(Msg::Question(QuestionMsg::Decided {
            tool: TOOL.to_owned(),
            what,
            decision,
            by,
            allow,
            change: true,
        }));
    }
}

fn path_of(file: &HeldWrite) -> HeldPath {
    HeldPath { path: file.path.clone(), instructs: file.instructs }
}

/// Returns true for instructions that a rule may let stay: what becomes a link or a program, or goes, needs an answer each time.
fn is_plain(file: &HeldWrite) -> bool {
    file.instructs && file.kind == HeldKind::File
}

/// The path as rules see it.
fn plain_path(file: &HeldWrite) -> HeldPath {
    HeldPath { path: file.path.clone(), instructs: is_plain(file) }
}

fn decision_of(verdict: HeldVerdict) -> HeldDecision {
    match verdict {
        HeldVerdict::Keep => HeldDecision::Allowed,
        HeldVerdict::LeaveOut | HeldVerdict::Ask => HeldDecision::Refused,
    }
}
