//! Calls that a running call makes: those of a script. Each is a call like any other, for the rules, the audit and the
//! states of files. It is no part of the conversation: what the model gets is what the script prints.

use std::sync::Arc;

use tiller_permit::Verdict;
use tiller_protocol::ask::{PermissionAsk, Risk};
use tiller_protocol::event::ToolEvent;
use tiller_protocol::tool::{Display, InnerCall};
use tiller_protocol::{Access, EventBody, PermissionOutcome, ToolOutcome, ToolSet, Touch};
use tiller_tool::CommandProfile;
use tiller_tool::code::{CallConsent, InnerReply, InnerResult, WaitingCall};

use super::decide::{CallDecision, Refusal};
use super::{CallTask, calls, cut, text_of};
use crate::core::Core;
use crate::core::saves::Then;
use crate::files::record;
use crate::questions::permission::{Question, permission_ask};
use crate::turn::CallResult;
use crate::turn::msg::{CallDone, InnerDone, InnerRequest};

/// Bytes of a result that a script reads: it is no model.
const OUTPUT: usize = 1 << 20;
/// Bytes of a result that the transcript keeps.
const KEPT: usize = 2_000;

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
    let (mut cx, _) = calls::tool_cx(core, &format!("{}.{}", outer.call_id, call.number), None);
    cx.cancel = outer.cancel.child_token();
    cx.hard = outer.hard.child_token();
    let mut limits = (*cx.limits).clone();
    limits.output_bytes = OUTPUT;
    limits.page_bytes = OUTPUT;
    cx.limits = Arc::new(limits);
    let part = InnerPart {
        consent: call.consent,
        outer: outer.call_id.clone(),
        number: call.number,
        most: call.most,
        covered: outer.run.profile != CommandProfile::Read,
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

/// Takes down what a call did.
pub(crate) fn done(core: &mut Core, mut done: InnerDone) {
    if let Some(step) = done.step.take() {
        record::keep_step(core, &done.outer, step);
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
    show(core, &done.outer, done.row, done.most);
    if let Some(audit) = done.audit {
        let mut append = core.append();
        append.audit.push(audit);
        core.save(append, Vec::new(), Then::Nothing);
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
            output: String::new(),
            files: Vec::new(),
        }
    }

    /// The call whose changes of files its own are: the outer one, of which the conversation knows.
    pub(super) fn step_call(&self) -> String {
        self.inner.as_ref().map_or_else(|| self.cx.call_id.clone(), |inner| inner.outer.clone())
    }

    /// Whether the outer call keeps the states of files.
    pub(super) fn is_covered(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.covered)
    }

    /// The question about a call that the rules allow, and that does not run now, because another call of the script waits.
    pub(super) async fn holds_back(
        &self,
        question: &Question<'_>,
        verdict: &Verdict,
    ) -> Option<PermissionAsk> {
        let Verdict::Allow { rule, unasked } = verdict else { return None };
        if self.reads() || unasked.is_some() || self.inner.as_ref()?.consent != CallConsent::Reads {
            return None;
        }
        let shown =
            Verdict::Ask { rule: rule.as_str().into(), risk: Risk::Low, effects: Vec::new(), always: None };
        let diff = self.tool.preview(&self.args, &self.cx).await;
        permission_ask(question, shown, diff)
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
        let decided = CallDecision { decision: PermissionOutcome::Undecided, by: "the script waits".into() };
        Box::new((decided, CallResult::text(ToolOutcome::Denied, "It waits for an approval.")))
    }

    /// Runs a call of a script.
    pub(crate) async fn run_inner(mut self) -> (InnerReply, InnerDone) {
        let mut row = self.row();
        let mut waits = None;
        let CallDone { result, step, audit, wrote, .. } = self.run_to_end(&mut waits).await;
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
            };
            return (InnerReply::Waits(Box::new(WaitingCall { ask, allowed, row })), done);
        }
        let text = text_of(&result.content);
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
        let done = InnerDone { outer, row: row.clone(), most, step, audit: Some(audit), wrote, unanswered };
        (InnerReply::Ran(Box::new(InnerResult { text, exit, read, row })), done)
    }

    /// Runs it, and takes out what it waits for.
    async fn run_to_end(&mut self, waits: &mut Option<(PermissionAsk, bool)>) -> CallDone {
        let done = self.carry_out().await;
        *waits = self.inner.as_mut().and_then(|inner| inner.waits.take());
        done
    }
}
