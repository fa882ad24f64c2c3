//! Calls that a running call makes: those of a script. Each is a call like any other, for the rules, the audit and the
//! states of files. It is no part of the conversation: what the model gets is what the script prints.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;
use tiller_permit::Verdict;
use tiller_protocol::ask::{PermissionAsk, Risk};
use tiller_protocol::event::ToolEvent;
use tiller_protocol::tool::{Display, InnerCall};
use tiller_protocol::{Access, EntryBody, EventBody, PermissionOutcome, ToolOutcome, ToolSet, Touch};
use tiller_tool::code::{CallConsent, InnerReply, InnerResult, WaitingCall};
use tiller_tool::{CommandProfile, CommandRun};

use super::{CallTask, calls, cut, text_of};
use crate::core::Core;
use crate::core::saves::Then;
use crate::decision::{CallDecision, Refusal};
use crate::files::record;
use crate::questions::permission::Question;
use crate::turn::CallResult;
use crate::turn::msg::{CallDone, InnerDone, InnerRequest};

/// Bytes of a result that a script reads: it is no model.
const OUTPUT: usize = 1 << 20;
/// Bytes of a result that the transcript keeps.
const KEPT: usize = 8_000;

/// Bytes of its arguments that the transcript keeps.
const KEPT_ARGUMENTS: usize = 64 << 10;

/// Arguments of at most `room` bytes: long texts are cut, and what comes after them is left out.
fn kept(args: &Value, room: &mut usize) -> Value {
    match args {
        Value::String(text) => {
            let left = *room;
            *room = left.saturating_sub(text.len());
            cut(text, left).into()
        }
        Value::Array(all) => {
            let mut out = Vec::new();
            for one in all {
                if *room == 0 {
                    break;
                }
                *room -= 1;
                out.push(kept(one, room));
            }
            out.into()
        }
        Value::Object(fields) => {
            let mut out = serde_json::Map::new();
            for (name, value) in fields {
                if *room < name.len() {
                    *room = 0;
                    break;
                }
                *room -= name.len();
                out.insert(name.clone(), kept(value, room));
            }
            out.into()
        }
        other => other.clone(),
    }
}

/// What is special about a call of a script.
pub(crate) struct InnerPart {
    consent: CallConsent,
    /// Id of the outer call.
    outer: String,
    number: u32,
    most: u32,
    /// The outer call keeps the state of all files, since it may write them itself.
    covered: bool,
    /// The question that it waits for. `true`: rules allow it.
    waits: Option<(PermissionAsk, bool)>,
}

/// Makes a call of a running one ready to run.
pub(crate) fn prepare(core: &mut Core, request: InnerRequest) {
    let InnerRequest { cx: outer, call, reply } = request;
    let Some(tool) = core.services.tool(&call.tool) else {
        let _ = reply.send(Err(format!("this agent has no tool '{}'", call.tool)));
        return;
    };
    let id = InnerCall::id(&outer.call_id, call.number);
    let (mut cx, _) = calls::tool_cx(core, &id, None);
    cx.cancel = outer.cancel.child_token();
    if let Some(live) = &mut core.turn.live {
        live.calls.inner.insert(id, cx.cancel.clone());
    }
    cx.hard = outer.hard.child_token();
    // What it reads has the changes of the calls before it, also of those that wait.
    if let Some(drafts) = outer.run.script.drafts() {
        cx.run = Arc::new(CommandRun::over(Some(drafts)));
    }
    let mut limits = (*cx.limits).clone();
    limits.output_bytes = OUTPUT;
    limits.page_bytes = OUTPUT;
    cx.limits = Arc::new(limits);
    let covered = outer.run.profile != CommandProfile::Read;
    if covered {
        cx.witness = outer.witness.clone();
    }
    let part = InnerPart {
        consent: call.consent,
        outer: outer.call_id.clone(),
        number: call.number,
        most: call.most,
        covered,
        waits: None,
    };
    let mut job = calls::task(core, tool, call.args, cx);
    job.inner = Some(part);
    show(core, &outer.call_id, job.row(), call.most);
    // A call that ended meanwhile needs none.
    let _ = reply.send(Ok(Box::pin(job.run_inner())));
}

/// Publishes the state of a call, without secrets.
fn show(core: &mut Core, outer: &str, mut row: InnerCall, most: u32) {
    crate::context::clean::inner(&core.services.redaction.redact, &mut row);
    let event = ToolEvent::InnerCall { call_id: outer.to_owned(), call: row, most };
    core.show(core.scope(), EventBody::Tool(event));
}

/// Stops one call of a running script, which gets an error for it. `false`: it does not run.
pub(crate) fn stop(core: &Core, id: &str) -> bool {
    let stops = core.turn.live.as_ref().and_then(|live| live.calls.inner.get(id));
    stops.inspect(|cancel| cancel.cancel()).is_some()
}

/// Takes down what a call did. One that ended becomes an entry of the session at once: it outlives the script.
pub(crate) fn done(core: &mut Core, mut done: InnerDone) {
    let id = InnerCall::id(&done.outer, done.row.number);
    if let Some(live) = &mut core.turn.live {
        live.calls.inner.remove(&id);
    }
    if let Some(step) = done.step.take() {
        record::keep_step(core, &id, step);
    }
    if let Some(child) = core.identity.child_mut() {
        let root = &core.services.workspace.root;
        let names =
            done.wrote.iter().map(|p| tiller_protocol::names::written(p.strip_prefix(root).unwrap_or(p)));
        child.files.extend(names);
    }
    if done.unanswered {
        core.child_driver().record_refusal();
    }
    if let Some(note) = done.note.take() {
        crate::learning::seen(core, *note);
    }
    let mut call = done.row.clone();
    show(core, &done.outer, done.row, done.most);
    if let Some(audit) = done.audit {
        (call.decision, call.by) = (Some(audit.decision.clone()), audit.by.clone());
        let call = Box::new(call);
        let body = EntryBody::InnerCall { call_id: id, of: done.outer, call, most: done.most };
        let entry = core.session.grow(&core.services, body);
        let event = Core::entry_event(&entry);
        let mut append = core.append().entries(vec![entry]);
        append.audit.push(audit);
        let scope = core.scope();
        core.save(append, vec![(scope, event)], Then::Nothing);
    }
}

/// Leaves in the result of a script only the rows of calls that have entries of their own.
pub(crate) fn in_short(core: &Core, outer: &str, display: &mut Option<Display>) {
    let Some(Display::Calls { calls, .. }) = display else { return };
    let recent = core.session.history.tail.iter().rev();
    let entered: HashSet<u32> = recent
        .take_while(|e| !matches!(e.body, EntryBody::Assistant { .. } | EntryBody::User { .. }))
        .filter_map(|e| match &e.body {
            EntryBody::InnerCall { of, call, .. } if of == outer => Some(call.number),
            _ => None,
        })
        .collect();
    for call in calls.iter_mut().filter(|call| entered.contains(&call.number)) {
        *call = call.row();
    }
}

impl CallTask {
    /// Whether it only reads, as far as its tool says: files, and pages of the web. What a tool of an MCP server or a
    /// browser does is not known.
    fn reads(&self) -> bool {
        let mcp = |a: &Access| matches!(a, Access::Mcp { .. });
        let looks = || self.tool.access(&self.args, &self.cx).is_ok_and(|access| !access.iter().any(mcp));
        match self.tool.touch() {
            Touch::Read => true,
            Touch::Network => self.tool.info().set == ToolSet::Web && looks(),
            _ => false,
        }
    }

    /// Its row while it runs.
    fn row(&self) -> InnerCall {
        InnerCall {
            number: self.inner.as_ref().map_or(0, |inner| inner.number),
            name: self.tool.name().to_owned(),
            verb: self.tool.verb(),
            target: self.tool.target(&self.args),
            outcome: None,
            waits: false,
            seconds: 0.0,
            arguments: kept(&self.args, &mut { KEPT_ARGUMENTS }),
            output: String::new(),
            files: Vec::new(),
            decision: None,
            by: String::new(),
        }
    }

    /// The call whose changes of files its own are: the outer one, of which the conversation knows.
    pub(super) fn step_call(&self) -> String {
        self.inner.as_ref().map_or_else(|| self.cx.call_id.clone(), |inner| inner.outer.clone())
    }

    /// Id of the call whose script made it; `None`: the model made it.
    pub(crate) fn outer_call(&self) -> Option<&str> {
        self.inner.as_ref().map(|inner| inner.outer.as_str())
    }

    /// Whether the outer call keeps the states of files.
    pub(super) fn is_covered(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.covered)
    }

    /// The question about a call that the rules allow, and that does not run now, because another call of the script waits.
    pub(super) async fn holds_back(&self, question: &Question<'_>, rule: &str) -> Option<PermissionAsk> {
        if self.reads() || self.inner.as_ref()?.consent != CallConsent::Reads {
            return None;
        }
        let shown = Verdict::Ask { rule: rule.into(), risk: Risk::Low, effects: Vec::new(), always: None };
        let diff = self.tool.preview(&self.args, &self.cx).await.diff;
        self.permit.ask(question, shown, diff)
    }

    /// What becomes of a call of a script that the rules ask about: it waits, or was shown with the whole script.
    pub(super) fn inner_consent(&mut self, ask: &PermissionAsk) -> Option<Result<CallDecision, Refusal>> {
        let inner = self.inner.as_ref()?;
        if inner.consent == CallConsent::Given(ask.hash.clone()) {
            let by = "you, with the whole script".to_owned();
            return Some(Ok(CallDecision { decision: PermissionOutcome::Once, by }));
        }
        Some(Err(self.wait_for(ask.clone(), false)))
    }

    /// Does not run now: the script has a call that waits, perhaps this one.
    pub(super) fn wait_for(&mut self, ask: PermissionAsk, allowed: bool) -> Refusal {
        if let Some(inner) = &mut self.inner {
            inner.waits = Some((ask, allowed));
        }
        let result = CallResult::text(ToolOutcome::Denied, "It waits for an approval.");
        CallDecision::undecided("the script waits", result)
    }

    /// Runs a call of a script.
    pub(crate) async fn run_inner(mut self) -> (InnerReply, InnerDone) {
        let mut row = self.row();
        let mut waits = None;
        let CallDone { result, step, audit, wrote, note, .. } = self.run_to_end(&mut waits).await;
        let (outer, most) =
            self.inner.as_ref().map_or_else(Default::default, |inner| (inner.outer.clone(), inner.most));
        if let Some((ask, allowed)) = waits {
            row.waits = true;
            let done = InnerDone {
                outer,
                row: row.clone(),
                most,
                step: None,
                audit: None,
                wrote: Vec::new(),
                unanswered: false,
                note: None,
            };
            return (InnerReply::Waits(Box::new(WaitingCall { ask, allowed, row })), done);
        }
        let text = text_of(&result.content);
        // A hook may have changed them.
        row.arguments = kept(&self.args, &mut { KEPT_ARGUMENTS });
        row.outcome = Some(result.outcome);
        row.seconds = result.seconds;
        row.output = cut(&text, KEPT);
        let exit = match &result.display {
            Some(Display::Output { exit, .. }) => *exit,
            _ => None,
        };
        if let Some(Display::Diff { files }) = result.display {
            row.files = files;
        }
        let read = self.reads()
            || self.cx.run.profile == CommandProfile::Read
            || result.outcome == ToolOutcome::Denied;
        let unanswered = result.unanswered;
        let done =
            InnerDone { outer, row: row.clone(), most, step, audit: Some(audit), wrote, unanswered, note };
        (InnerReply::Ran(Box::new(InnerResult { text, exit, read, row })), done)
    }

    /// Runs it, and takes out what it waits for.
    async fn run_to_end(&mut self, waits: &mut Option<(PermissionAsk, bool)>) -> CallDone {
        let done = self.carry_out().await;
        *waits = self.inner.as_mut().and_then(|inner| inner.waits.take());
        done
    }
}
