//! One approval for a whole script.
//!
//! A script runs as it is until a call would ask. From there on, calls that do more than read are recorded and answered as
//! if done, to the end of the script; what they would write is laid over the files that later calls read. Then one question
//! shows them together. After a yes the script runs again: what was done before is repeated from the record, the shown calls
//! are carried out, and from the first call that was not shown on, calls are recorded again for another question.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::ask::PermissionAsk;
use tiller_protocol::lock;

use super::inner::{CallConsent, InnerResult, WaitingCall};
use crate::files::Drafts;

/// The state of it for one call of the tool, kept over its runs.
#[derive(Debug, Default)]
pub struct ScriptApproval(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    /// The calls of the first run, in their order.
    log: Vec<Logged>,
    /// A call that does more than read was carried out.
    wrote: bool,
    /// How often the user said yes.
    answers: u32,
    /// What the recorded calls would write.
    drafts: Option<Arc<Drafts>>,
}

/// Questions about one script. A script that makes other calls in each run is stopped after that.
const QUESTIONS: u32 = 8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Nothing waits.
    #[default]
    First,
    /// A call waits: the others that do more than read are recorded.
    Recording,
    /// The user said yes, and no call waits.
    Approved,
}

#[derive(Debug)]
struct Logged {
    tool: String,
    args: String,
    what: LoggedCall,
    /// The present run made it.
    used: bool,
}

#[derive(Debug)]
enum LoggedCall {
    Done(Box<InnerResult>),
    Waits(Box<WaitingCall>),
    /// The user said yes to it.
    Approved(Box<WaitingCall>),
}

/// What is to happen with a call of the script.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It is made, with this consent.
    Make(CallConsent),
    /// It was made before: this is its result.
    Repeat(Box<InnerResult>),
}

impl ScriptApproval {
    /// A run begins.
    pub(super) fn begin(&self) {
        let mut state = lock(&self.0);
        state.log.iter_mut().for_each(|logged| logged.used = false);
        state.drafts = None;
    }

    /// What the recorded calls would write, for calls that read; `None`: nothing is recorded.
    pub fn drafts(&self) -> Option<Arc<Drafts>> {
        lock(&self.0).drafts.clone()
    }

    /// The same, made when it is first needed.
    ///
    /// # Errors
    /// When there is no room for temporary files.
    pub(super) fn drafts_to_write(&self) -> std::io::Result<Arc<Drafts>> {
        let mut state = lock(&self.0);
        if let Some(drafts) = &state.drafts {
            return Ok(Arc::clone(drafts));
        }
        let drafts = Arc::new(Drafts::new()?);
        state.drafts = Some(Arc::clone(&drafts));
        Ok(drafts)
    }

    /// What is to happen with this call.
    pub(super) fn judge(&self, tool: &str, args: &Value) -> Verdict {
        let mut state = lock(&self.0);
        match state.phase {
            Phase::First => return Verdict::Make(CallConsent::Rules),
            Phase::Recording => return Verdict::Make(CallConsent::Reads),
            Phase::Approved => {}
        }
        let args = args.to_string();
        let same = |l: &&mut Logged| !l.used && l.tool == tool && l.args == args;
        let Some(logged) = state.log.iter_mut().find(same) else { return Verdict::Make(CallConsent::Reads) };
        logged.used = true;
        match &logged.what {
            LoggedCall::Done(result) => Verdict::Repeat(result.clone()),
            LoggedCall::Waits(_) => Verdict::Make(CallConsent::Reads),
            LoggedCall::Approved(call) if call.allowed => Verdict::Make(CallConsent::Rules),
            LoggedCall::Approved(call) => Verdict::Make(CallConsent::Given(call.ask.hash.clone())),
        }
    }

    /// Notes that a call was carried out.
    pub(super) fn ran(&self, tool: &str, args: &Value, result: &InnerResult) {
        let mut state = lock(&self.0);
        state.wrote |= !result.read;
        if state.phase == Phase::Recording {
            return;
        }
        let (args, what) = (args.to_string(), LoggedCall::Done(Box::new(result.clone())));
        let shown = |l: &&mut Logged| {
            l.used && l.tool == tool && l.args == args && matches!(l.what, LoggedCall::Approved(_))
        };
        match state.log.iter_mut().find(shown) {
            Some(logged) => logged.what = what,
            None => state.log.push(Logged { tool: tool.into(), args, what, used: true }),
        }
    }

    /// Records a call that waits. `false`: the user was asked too often already.
    pub(super) fn record(&self, tool: &str, args: &Value, waits: Box<WaitingCall>) -> bool {
        let mut state = lock(&self.0);
        if state.answers >= QUESTIONS {
            return false;
        }
        state.phase = Phase::Recording;
        let what = LoggedCall::Waits(waits);
        state.log.push(Logged { tool: tool.into(), args: args.to_string(), what, used: true });
        true
    }

    /// The script has failed before its calls were shown: nothing is asked.
    pub(super) fn forget(&self) {
        let mut state = lock(&self.0);
        if state.phase == Phase::Recording {
            state.phase = Phase::First;
            state.log.clear();
            state.drafts = None;
        }
    }

    /// Whether a recorded call was answered without what only the call itself can know.
    pub fn made_up(&self) -> bool {
        let state = lock(&self.0);
        state.log.iter().any(|l| match &l.what {
            LoggedCall::Waits(waits) => !matches!(waits.row.verb, ToolVerb::Write | ToolVerb::Patch),
            LoggedCall::Done(_) | LoggedCall::Approved(_) => false,
        })
    }

    /// Whether calls wait for the user.
    pub fn waits(&self) -> bool {
        lock(&self.0).phase == Phase::Recording
    }

    /// Whether a call that does more than read was carried out.
    pub fn wrote(&self) -> bool {
        lock(&self.0).wrote
    }

    /// The questions about the calls that wait, in their order. `true`: rules allow that one.
    pub fn waiting(&self) -> Vec<(PermissionAsk, bool)> {
        let state = lock(&self.0);
        let waits = state.log.iter().filter_map(|l| match &l.what {
            LoggedCall::Waits(waits) => Some((waits.ask.clone(), waits.allowed)),
            LoggedCall::Done(_) | LoggedCall::Approved(_) => None,
        });
        waits.collect()
    }

    /// The user said yes: the next run carries the shown calls out.
    pub fn approve(&self) {
        let mut state = lock(&self.0);
        if state.phase != Phase::Recording {
            return;
        }
        state.phase = Phase::Approved;
        state.answers += 1;
        for logged in &mut state.log {
            if let LoggedCall::Waits(call) = &logged.what {
                logged.what = LoggedCall::Approved(call.clone());
            }
        }
    }

    /// Returns true if the user said yes to calls of this script before.
    pub fn was_approved(&self) -> bool {
        lock(&self.0).answers > 0
    }
}
