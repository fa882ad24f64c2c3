//! Decides whether a call may run: by rules, or by the user.

use std::sync::Arc;
use tiller_protocol::ToolVerb;
use tiller_protocol::ask::OutsideAnswer;
use tiller_protocol::permission::DENIED_BY_USER;

use serde_json::Value;
use tiller_permit::Verdict;
use tiller_protocol::{
    Access, AskBody, AskReply, Decision, EventBody, Part, PermissionOutcome, ToolOutcome, Touch, names,
};
use tiller_tool::{CommandProfile, CommandRun};

use super::{CallTask, failed};
use crate::core::msg::Msg;
use crate::questions::msg::QuestionMsg;
use crate::questions::permission::{Question, permission_ask, rule_not_saved};
use crate::questions::trust;
use crate::turn::CallResult;

/// How the user can allow a call that no one could approve. For the model, which passes it on. `patterns`: one, or several
/// joined by ` && `. `None`: they cannot be quoted.
pub(super) fn allowed_by(patterns: &str) -> Option<Part> {
    if patterns.contains('\'') {
        return None;
    }
    let all = tiller_permit::split_patterns(patterns);
    let flags: Vec<String> = all.iter().map(|p| format!("--allow '{p}'")).collect();
    let text = format!(
        "[The user can allow it: `tiller exec {}`, or the same under `allow:` in permissions.yaml.]",
        flags.join(" ")
    );
    Some(Part::Text { text })
}

/// Why a call did not run, and the result that the model gets.
pub(super) type Refusal = Box<(CallDecision, CallResult)>;

/// A decision about a call, and its source as text.
pub(super) struct CallDecision {
    pub(super) decision: PermissionOutcome,
    pub(super) by: String,
}

impl CallTask {
    /// Decides whether the call may run. Asks the user where the rules say so; a command that the user changed is
    /// checked again.
    pub(super) async fn decide(&mut self) -> Result<CallDecision, Refusal> {
        self.check_trust().await;
        for notice in self.permit.refresh() {
            let event = tiller_protocol::event::StateEvent::Notice { notice };
            self.bus.publish(&self.origin.scope, EventBody::State(event));
        }
        // Limits the rounds; each needs input of the user.
        for _ in 0..20 {
            // Before each judgement: rules judge what hooks made of the call, hooks see what the user made of it.
            self.hooks_before().await?;
            let access = match self.tool.access(&self.args, &self.cx) {
                Ok(access) => access,
                Err(e) => {
                    let decided =
                        CallDecision { decision: PermissionOutcome::Undecided, by: "the tool".into() };
                    return Err(Box::new((decided, failed(e))));
                }
            };
            self.files.written.clear();
            self.files.touched.clear();
            for a in &access {
                if let Access::Write { path, .. } | Access::Read { path, .. } = a {
                    self.files.touched.push(names::path(path));
                }
                if let Access::Write { path, .. } = a {
                    self.files.written.push(names::path(path));
                }
            }
            let agent = self.cx.agent.clone();
            let target = self.tool.target(&self.args);
            let args = self.args.clone();
            let shell = self.tool.shell(&self.cx);
            let question = Question {
                agent: &agent,
                tool: self.tool.name(),
                verb: &self.tool.verb(),
                target: &target,
                touch: self.tool.touch(),
                args: &args,
                access: &access,
                profile: self.origin.mode(self.profile, self.tool.touch(), &args),
                shell: shell.as_ref(),
                terminal: self.cx.workspace.terminal().map(|t| t.place()),
            };
            let mut verdict = self.permit.judge(&question);
            if let Some(why) = &self.hooked.ask {
                verdict = verdict.at_least_asks(why);
            }
            if let Some(ask) = self.holds_back(&question, &verdict).await {
                return Err(self.wait_for(ask, true));
            }
            let verdict = match verdict {
                Verdict::Allow { rule, unasked: Some(run) } => {
                    self.cx.run = Arc::new(CommandRun::reading(run.variables));
                    return Ok(CallDecision { decision: PermissionOutcome::Allowed, by: rule });
                }
                Verdict::Allow { rule, unasked: None } => {
                    let outside = self.permit.outside(&question);
                    self.run_in(
                        outside.as_ref().map_or(CommandProfile::Workspace, |_| CommandProfile::Outside),
                    );
                    let by = outside.map_or(rule.clone(), |outside| format!("{rule}; {outside}"));
                    return Ok(CallDecision { decision: PermissionOutcome::Allowed, by });
                }
                Verdict::Deny { rule, reason } => {
                    let result = CallResult::text(ToolOutcome::Denied, format!("Denied: {reason}."));
                    self.tell(PermissionOutcome::Denied, &rule);
                    return Err(Box::new((
                        CallDecision { decision: PermissionOutcome::Denied, by: rule },
                        result,
                    )));
                }
                ask @ Verdict::Ask { .. } => ask,
            };
            self.asked = true;
            if let Err(e) = self.tool.ready(&self.args, &self.cx, self.readable(&access)).await {
                let decided = CallDecision {
                    decision: PermissionOutcome::Undecided,
                    by: "the tool, before a question was asked".into(),
                };
                return Err(Box::new((decided, failed(e))));
            }
            let mut notes = self.tool.preview(&self.args, &self.cx).await;
            let diff = notes.diff.take();
            let outside = self.permit.outside(&question);
            let Some(mut ask) = permission_ask(&question, verdict, diff) else { continue };
            ask.effects.extend(self.rules_for_approval().await);
            ask.effects.extend(notes.lines.iter().cloned());
            ask.draft.clone_from(&notes.draft);
            ask.source.clone_from(&self.origin.command);
            if let Some(decided) = self.inner_consent(&ask) {
                self.run_in(outside.map_or(CommandProfile::Workspace, |_| CommandProfile::Outside));
                return decided;
            }
            if matches!(access[..], [Access::Run { .. }])
                && self.cx.workspace.confines(CommandProfile::Workspace)
            {
                match &outside {
                    Some(rule) => ask.effects.push(format!("runs outside the sandbox ({rule})")),
                    None => ask.outside = OutsideAnswer::Offered,
                }
            }
            self.run_in(outside.map_or(CommandProfile::Workspace, |_| CommandProfile::Outside));
            let (rule, offered, pattern) = (ask.rule.clone(), ask.outside, ask.always.clone());
            let effects = ask.effects.len();
            let answer = loop {
                let answer = tokio::select! {
                    answer = self.cx.ports.ask(&agent, AskBody::Permission(ask.clone())) => answer,
                    () = self.cx.cancel.cancelled() => {
                        let decided = CallDecision { decision: PermissionOutcome::Undecided, by: "stopped before an answer".into() };
                        return Err(Box::new((decided, CallResult::interrupted())));
                    }
                };
                // The draft still holds what the user wrote: the same question opens it again.
                let fault = match ask.draft {
                    Some(_) => self.fault_of_edit(&answer, notes.edit.as_ref()).await,
                    None => None,
                };
                let Some(fault) = fault else { break answer };
                ask.effects.truncate(effects);
                ask.effects.push(format!(
                    "your text cannot be used: {fault}; edit it again, or take the text above with a yes"
                ));
            };
            match self.answered(answer, offered, rule.text(), notes.edit).await {
                Some(Err(mut refusal)) if refusal.1.unanswered => {
                    refusal.1.content.extend(pattern.as_deref().and_then(allowed_by));
                    return Err(refusal);
                }
                Some(Err(refusal)) => {
                    discard(notes.draft.take()).await;
                    return Err(refusal);
                }
                Some(outcome) => return outcome,
                None => continue,
            }
        }
        let decided = CallDecision { decision: PermissionOutcome::Denied, by: "changed too often".into() };
        let result = CallResult::text(ToolOutcome::Denied, "Denied: the command was changed too often.");
        Err(Box::new((decided, result)))
    }

    /// Looks whether the user still trusts the folder: a call after the loss is judged without what the folder brings.
    async fn check_trust(&self) {
        if self.services.user.trust.is_some() {
            let (services, tx) = (Arc::clone(&self.services), self.tx.clone());
            // After a panic there the next call looks again.
            let _ = tokio::task::spawn_blocking(move || trust::check(&services, &tx)).await;
        }
    }

    /// Whether the agent may read, without a question, the files that it declared to write.
    fn readable(&self, access: &[Access]) -> bool {
        access.iter().all(|a| {
            let Access::Write { path, inside } = a else { return true };
            let read = [Access::Read { path: path.clone(), inside: *inside }];
            let question = Question {
                agent: &self.cx.agent,
                tool: "read_file",
                verb: &ToolVerb::Read,
                target: path,
                touch: Touch::Read,
                args: &Value::Null,
                access: &read,
                profile: self.profile,
                shell: None,
                terminal: None,
            };
            matches!(self.permit.judge(&question), Verdict::Allow { .. })
        })
    }

    /// Why the text that the user wrote makes no call.
    async fn fault_of_edit(
        &self,
        answer: &Result<AskReply, String>,
        edit: Option<&(Value, &'static str)>,
    ) -> Option<String> {
        let Ok(AskReply::Permission { decision: Decision::Edit { text }, .. }) = answer else { return None };
        let args = edited(&self.args, edit.cloned(), text)?;
        let checked = match self.tool.access(&args, &self.cx) {
            Ok(_) => self.tool.ready(&args, &self.cx, false).await.err()?,
            Err(fault) => fault,
        };
        Some(checked.to_string().trim_end_matches('.').to_owned())
    }

    /// Applies an answer; `None`: the command was changed and must be checked again.
    async fn answered(
        &mut self,
        answer: Result<AskReply, String>,
        offered: OutsideAnswer,
        rule: &str,
        edit: Option<(Value, &'static str)>,
    ) -> Option<Result<CallDecision, Refusal>> {
        let answer = self.leave_sandbox(answer, offered);
        if let Ok(AskReply::Permission { decision: Decision::Edit { text }, .. }) = answer {
            match edited(&self.args, edit, &text) {
                Some(same) if same == self.args => {}
                Some(args) => {
                    self.args = args;
                    self.changed = Some(text);
                }
                None => {
                    let result = CallResult::text(ToolOutcome::Denied, "Denied: this call cannot be edited.");
                    return Some(Err(Box::new((
                        CallDecision { decision: PermissionOutcome::Denied, by: "engine".into() },
                        result,
                    ))));
                }
            }
            return None;
        }
        Some(self.consent(answer, rule).await)
    }

    /// Sets how the command is confined.
    pub(super) fn run_in(&mut self, profile: CommandProfile) {
        self.cx.run = Arc::new(self.cx.run.again(profile));
    }

    /// Applies a yes to running outside the sandbox. Where the question did not offer it, it is a yes to this call.
    pub(super) fn leave_sandbox(
        &mut self,
        answer: Result<AskReply, String>,
        offered: OutsideAnswer,
    ) -> Result<AskReply, String> {
        let Ok(AskReply::Permission { decision, hash }) = answer else { return answer };
        let decision = match (decision, offered) {
            (Decision::Outside, OutsideAnswer::No) => Decision::Once,
            // The question has no other yes.
            (Decision::Outside, _) | (Decision::Once, OutsideAnswer::Only) => {
                self.run_in(CommandProfile::Outside);
                Decision::Outside
            }
            (other, _) => other,
        };
        Ok(AskReply::Permission { decision, hash })
    }

    /// Applies an answer that does not change the call.
    pub(super) async fn consent(
        &self,
        answer: Result<AskReply, String>,
        rule: &str,
    ) -> Result<CallDecision, Refusal> {
        let by = match self.changed {
            None => "you",
            Some(_) if self.tool.touch() == Touch::Execute => "you, with an edited command",
            Some(_) => "you, with an edited text",
        };
        let person = |decision| CallDecision { decision, by: by.into() };
        let no = |decision: PermissionOutcome, by: String, text: String, unanswered: bool| {
            let result = CallResult { unanswered, ..CallResult::text(ToolOutcome::Denied, text) };
            Err(Box::new((CallDecision { decision, by }, result)))
        };
        match answer {
            Err(why) => {
                self.tell(PermissionOutcome::Nobody, &why);
                let text = format!("Denied: this call needs an approval, and {why} (rule: {rule}).");
                no(PermissionOutcome::Nobody, why, text, true)
            }
            Ok(AskReply::Permission { decision, .. }) => match decision {
                Decision::Once => Ok(person(PermissionOutcome::Once)),
                Decision::Outside => Ok(person(PermissionOutcome::Outside)),
                Decision::Session { pattern } => {
                    self.remember(&pattern, false).await;
                    Ok(person(PermissionOutcome::Session))
                }
                Decision::Always { pattern } => {
                    self.remember(&pattern, true).await;
                    Ok(person(PermissionOutcome::Always))
                }
                Decision::Edit { .. } => no(
                    PermissionOutcome::Denied,
                    "engine".into(),
                    "Denied: this call cannot be edited now.".into(),
                    false,
                ),
                Decision::Deny { comment } => {
                    let text = match comment.filter(|c| !c.trim().is_empty()) {
                        Some(c) => format!("{DENIED_BY_USER}: {c}"),
                        None => format!("{DENIED_BY_USER}."),
                    };
                    no(PermissionOutcome::Refused, by.into(), text, false)
                }
            },
            Ok(_) => no(PermissionOutcome::Refused, "you".into(), format!("{DENIED_BY_USER}."), false),
        }
    }

    async fn remember(&self, pattern: &str, always: bool) {
        let done = if always {
            self.permit.allow_always(pattern).await
        } else {
            self.permit.allow_session(pattern).map(|()| {
                // The rule holds at once; storing it for a restart may be slower.
                for one in tiller_permit::split_patterns(pattern) {
                    drop(self.services.store.rules().add(self.origin.root, one));
                }
            })
        };
        if let Err(why) = done {
            self.bus.publish(&self.origin.scope, rule_not_saved(&why));
        }
    }

    pub(super) fn tell(&self, decision: PermissionOutcome, by: &str) {
        // The engine may have ended, or its inbox be full: the audit records it anyway.
        let _ = self.tx.try_send(Msg::Question(QuestionMsg::Decided {
            tool: self.tool.name().to_owned(),
            what: (self.services.redaction.redact)(&self.tool.target(&self.args)),
            decision,
            by: by.to_owned(),
        }));
    }
}

/// The arguments with the text that the user wrote in place of what they were asked about; `None`: it cannot be edited.
fn edited(args: &Value, edit: Option<(Value, &'static str)>, text: &str) -> Option<Value> {
    let (mut args, key) = match edit {
        Some(edit) => edit,
        None => (args.clone(), "command"),
    };
    *args.get_mut(key)? = Value::String(text.to_owned());
    Some(args)
}

/// Deletes the draft of a call that the user denied.
async fn discard(draft: Option<String>) {
    let Some(draft) = draft else { return };
    // One that stays is deleted with the old ones.
    let _ = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(draft)).await;
}
