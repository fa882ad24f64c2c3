//! What is attached to the end of a result or of the user's message: never earlier, so that no request changes what was sent.

use std::sync::Arc;

use tiller_config::Config;
use tiller_memory::Learnings;
use tiller_memory::learnings::{CallKind, Notes, kind_of};
use tiller_memory::rules::{BookRule, RuleCall, RuleHit, RulePlace};
use tiller_permit::{CallReach, Effect, Rule, Source};
use tiller_protocol::event::StateEvent;
use tiller_protocol::{
    Access, Addition, EventBody, Learning, LearningNews, Part, SessionId, Taint, ToolOutcome, ToolSet,
    ToolVerb, Touch,
};

use crate::bus::{Bus, EventScope};
use crate::context::prefix::layers::{self, Layer};
use crate::tool_call::{CallTask, text_of};
use crate::turn::CallResult;

/// Bytes of an output that are looked at, from its end.
const OUTPUT: usize = 64 << 10;
/// Most rules that are shown with a question about a call.
const ASKED: usize = 3;

/// A call that has ended, for the pairs of failures and fixes.
#[derive(Debug)]
pub(crate) struct CallNote {
    pub(crate) kind: CallKind,
    pub(crate) ok: bool,
    /// Redacted; its end.
    pub(crate) output: String,
    pub(crate) taint: Taint,
    pub(crate) edits: bool,
    pub(crate) reads: bool,
}

/// Applies the settings.
pub(crate) fn set_mode(learnings: &Learnings, config: &Config) {
    learnings.set(config.memory.learnings, layers::budget(Layer::Learnings, &config.context));
}

/// Learnings for the end of a message of the user's.
#[derive(Debug, Default)]
pub(crate) struct AddedLearnings {
    pub(crate) texts: Vec<Part>,
    /// The least trusted origin of the texts.
    pub(crate) taint: Option<Taint>,
    pub(crate) numbers: Vec<i64>,
}

/// The learnings that a message of the user's concerns. They are counted and published.
pub(crate) async fn for_message(
    learnings: Arc<Learnings>,
    bus: Arc<Bus>,
    scope: EventScope,
    session: SessionId,
    text: String,
) -> AddedLearnings {
    let found = tokio::task::spawn_blocking(move || {
        let attached = learnings.for_message(session, &text);
        let ids: Vec<i64> = attached.learnings.iter().map(|l| l.id).collect();
        if !ids.is_empty() {
            drop(learnings.store().learnings().used(ids));
        }
        let pending = learnings.store().learnings().pending().unwrap_or(0);
        (attached, pending)
    });
    let Ok((attached, pending)) = found.await else { return AddedLearnings::default() };
    if attached.learnings.is_empty() {
        return AddedLearnings::default();
    }
    let taint = least_trusted(&attached.learnings);
    let numbers = attached.learnings.iter().map(|l| l.id).collect();
    let news = LearningNews { used: attached.learnings, call_id: None, rules: Vec::new(), pending };
    bus.publish(&scope, EventBody::State(StateEvent::LearningNews { news: Box::new(news) }));
    let texts = attached.texts.into_iter().map(|text| Part::Text { text }).collect();
    AddedLearnings { texts, taint, numbers }
}

/// What concerns a call that has ended.
struct CallFindings {
    attached: Vec<Learning>,
    notes: Notes,
    /// The texts of the rules that are shown.
    rules: Vec<String>,
    /// How many learnings wait for the user.
    pending: u32,
}

/// Puts texts at the end of a result.
fn put_behind(result: &mut CallResult, notes: Notes) {
    for (what, text) in notes.texts {
        result.put_behind(what, Part::Text { text });
    }
    result.learnings = notes.learnings;
    result.taint = result.taint.max(notes.taint);
}

/// The least trusted origin of learnings; `None`: none has text of others.
fn least_trusted(learnings: &[Learning]) -> Option<Taint> {
    learnings.iter().map(|l| l.source.taint).filter(|taint| taint.is_untrusted()).max()
}

impl CallTask {
    /// Attaches rules and learnings that concern the call to the end of its result.
    pub(crate) async fn attach(&self, result: &mut CallResult) -> Option<Box<CallNote>> {
        let learnings = self.services.user.learnings.clone()?;
        // The output of a command of a message brings nothing into the message.
        let of_message = tiller_protocol::ToolCall::is_of_message(&self.cx.call_id);
        if of_message || matches!(result.outcome, ToolOutcome::Interrupted) {
            let of_script = learnings.take_for(self.cx.session, &self.cx.call_id);
            // Calls of the script ran before it was interrupted, and what concerns them counts as shown.
            if !of_message {
                put_behind(result, of_script);
            }
            return None;
        }
        set_mode(&learnings, &self.services.config());
        let whole = (self.services.redaction.redact)(&text_of(&result.content));
        let output = whole[whole.ceil_char_boundary(whole.len().saturating_sub(OUTPUT))..].to_owned();
        let mut kind = kind_of(self.tool, &self.args);
        kind.text = (self.services.redaction.redact)(&kind.text);
        let failed = matches!(result.outcome, ToolOutcome::Error | ToolOutcome::TimedOut);
        let hits = self.concerned(&learnings).await;
        let found = tokio::task::spawn_blocking(self.finds(&learnings, &kind, &output, failed, hits));
        let CallFindings { attached, mut notes, rules, pending } = found.await.ok()?;
        if !notes.texts.is_empty() {
            let call_id = Some(self.cx.call_id.clone());
            let news = LearningNews { used: attached, call_id, rules, pending };
            let body = EventBody::State(StateEvent::LearningNews { news: Box::new(news) });
            self.bus.publish(&self.origin.scope, body);
        }
        if let Some(outer) = self.outer_call() {
            // A script is no model: the result of the script says it.
            learnings.keep_for(self.cx.session, outer, notes);
        } else {
            notes.add(learnings.take_for(self.cx.session, &self.cx.call_id));
            put_behind(result, notes);
        }
        let set = self.tool.info().set;
        let access = self.tool.access(&self.args, &self.cx).unwrap_or_default();
        let far = matches!(set, ToolSet::Web | ToolSet::Browser)
            || access.iter().any(|a| matches!(a, Access::Mcp { .. } | Access::Net { .. }));
        Some(Box::new(CallNote {
            kind,
            // A call that was refused has neither failed nor worked.
            ok: result.outcome.ok(),
            output,
            taint: if far { Taint::Web } else { Taint::ToolOutput },
            edits: matches!(self.tool.touch(), Touch::Write) || self.tool.verb() == ToolVerb::Patch,
            reads: matches!(self.tool.touch(), Touch::Read | Touch::Plan),
        }))
        .filter(|_| result.outcome != ToolOutcome::Denied)
    }

    /// What finds and counts the rules and learnings for the end of a result. Blocks.
    fn finds(
        &self,
        learnings: &Arc<Learnings>,
        kind: &CallKind,
        output: &str,
        failed: bool,
        hits: Vec<RuleHit>,
    ) -> impl FnOnce() -> CallFindings + Send + use<> {
        let (learnings, kind, output) = (Arc::clone(learnings), kind.clone(), output.to_owned());
        let (session, reply, in_script) = (self.cx.session, self.origin.reply, self.inner.is_some());
        // The result that has the texts in the end.
        let of = self.outer_call().unwrap_or(&self.cx.call_id).to_owned();
        let may = self.services.user.may_learn;
        move || {
            let known = learnings.kept_for(session, &of);
            let most = if in_script { known.left() } else { usize::MAX };
            let place = RulePlace { session, reply, in_script, most };
            let (texts, counts) =
                learnings.rules().map_or_else(Default::default, |rules| rules.note(&place, &hits));
            let found =
                if failed && may { learnings.for_failure(&kind, &output) } else { Default::default() };
            let attached = learnings.beside(&known, found, most.saturating_sub(texts.len()));
            let store = learnings.store();
            let ids: Vec<i64> = attached.learnings.iter().map(|l| l.id).collect();
            if !ids.is_empty() {
                drop(store.learnings().used(ids.clone()));
            }
            let shown = counts.iter().filter(|(_, count)| count.shown > 0);
            let rules: Vec<String> = shown.map(|(rule, _)| rule.clone()).collect();
            if !counts.is_empty() {
                drop(store.receipts().count(counts));
            }
            let pending = store.learnings().pending().unwrap_or(0);
            let of_rules = rules.iter().cloned().map(Addition::Rule).zip(texts);
            let of_learnings = attached.texts.into_iter().map(|text| (Addition::Learning, text));
            let texts = of_rules.chain(of_learnings).collect();
            let notes = Notes { texts, learnings: ids, taint: least_trusted(&attached.learnings) };
            CallFindings { attached: attached.learnings, notes, rules, pending }
        }
    }

    /// Rules of memory files that the call is for, and those that only forbid and spare it.
    pub(crate) async fn concerned(&self, learnings: &Arc<Learnings>) -> Vec<RuleHit> {
        if learnings.rules().is_none() {
            return Vec::new();
        }
        let reach = self.reach.clone().or_else(|| self.reach_for_rules());
        let call = Arc::new(self.rule_call(reach.as_ref()));
        let all = {
            let (learnings, call) = (Arc::clone(learnings), Arc::clone(&call));
            tokio::task::spawn_blocking(move || {
                let rules = learnings.rules();
                rules.map_or_else(Vec::new, |rules| rules.rules_for(learnings.store(), &call))
            })
        };
        let all: Vec<BookRule> = all.await.unwrap_or_default();
        if all.is_empty() {
            return Vec::new();
        }
        let catalog = self.services.tools.all.catalog();
        // What cannot be told counts as matching.
        let meets = |rule: &Rule| reach.as_ref().is_none_or(|reach| reach.meets(rule));
        let holds = |patterns: &[String]| {
            patterns.iter().filter(|pattern| call.may_match(pattern)).any(|pattern| {
                Rule::parse(Effect::Deny, Source::User, pattern, &catalog).is_ok_and(|rule| meets(&rule))
            })
        };
        let near = |patterns: &[String]| patterns.iter().any(|pattern| call.is_near(pattern));
        all.into_iter()
            .filter_map(|rule| {
                let forbids = holds(&rule.rule.never);
                let concerns = forbids || holds(&rule.rule.when);
                let spares = !concerns && rule.rule.when.is_empty() && near(&rule.rule.never);
                (concerns || spares).then_some(RuleHit { rule, forbids, spares })
            })
            .collect()
    }

    /// The call for a first comparison with patterns.
    fn rule_call(&self, reach: Option<&CallReach>) -> RuleCall {
        let parts: Vec<String> = reach.map(|r| r.commands().map(str::to_owned).collect()).unwrap_or_default();
        let paths: Vec<String> = reach.map(|r| r.command_paths().into_iter().collect()).unwrap_or_default();
        let (args, command) = (self.args.to_string(), self.tool.target(&self.args));
        RuleCall::new(self.tool.name(), &args, &command, &parts, &paths)
    }

    /// Rules that concern the call, for its approval.
    pub(crate) async fn rules_for_approval(&self) -> Vec<String> {
        let Some(learnings) = &self.services.user.learnings else { return Vec::new() };
        let mut hits = self.concerned(learnings).await;
        hits.retain(|hit| !hit.spares);
        let line = |hit: &RuleHit| {
            let verb = if hit.forbids { "forbids it" } else { "concerns it" };
            (self.services.redaction.redact)(&format!(
                "a rule of {} {verb}: {}",
                hit.rule.origin, hit.rule.rule.text
            ))
        };
        let (forbid, concern): (Vec<&RuleHit>, Vec<&RuleHit>) = hits.iter().partition(|hit| hit.forbids);
        forbid.into_iter().chain(concern).take(ASKED).map(line).collect()
    }
}
