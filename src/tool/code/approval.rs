//! One approval for a whole script.
//!
//! A script runs as it is until a call would ask. From there on, calls that do more than read are recorded and answered as
//! if done, to the end of the script. Then one question shows them together. After a yes the script runs a second time:
//! what was done before the first recorded call is repeated from the record, the shown calls are carried out, and the
//! first call that was not shown ends the run.

use std::sync::Mutex;

use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::ask::PermissionAsk;
use tiller_protocol::lock;

use super::inner::{CallConsent, InnerResult, WaitingCall};

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
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Nothing waits.
    #[default]
    First,
    /// A call waits: the others that do more than read are recorded.
    Recording,
    /// The user said yes.
    Approved,
}

#[derive(Debug)]
struct Logged {
    tool: String,
    args: String,
    what: LoggedCall,
    /// The second run made it.
    used: bool,
}

#[derive(Debug)]
enum LoggedCall {
    Done(Box<InnerResult>),
    Waits(Box<WaitingCall>),
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
            LoggedCall::Waits(waits) if waits.allowed => Verdict::Make(CallConsent::Rules),
            LoggedCall::Waits(waits) => Verdict::Make(CallConsent::Given(waits.ask.hash.clone())),
        }
    }

    /// Notes that a call was carried out.
    pub(super) fn ran(&self, tool: &str, args: &Value, result: &InnerResult) {
        let mut state = lock(&self.0);
        state.wrote |= !result.read;
        if state.phase == Phase::First {
            let what = LoggedCall::Done(Box::new(result.clone()));
            state.log.push(Logged { tool: tool.into(), args: args.to_string(), what, used: false });
        }
    }

    /// Records a call that waits. `false`: this is the second run, and the call was not shown.
    pub(super) fn record(&self, tool: &str, args: &Value, waits: Box<WaitingCall>) -> bool {
        let mut state = lock(&self.0);
        if state.phase == Phase::Approved {
            return false;
        }
        state.phase = Phase::Recording;
        let what = LoggedCall::Waits(waits);
        state.log.push(Logged { tool: tool.into(), args: args.to_string(), what, used: false });
        true
    }

    /// The script has failed before its calls were shown: nothing is asked.
    pub(super) fn forget(&self) {
        let mut state = lock(&self.0);
        if state.phase == Phase::Recording {
            state.phase = Phase::First;
            state.log.clear();
        }
    }

    /// Whether a recorded call was answered without what only the call itself can know.
    pub fn made_up(&self) -> bool {
        let state = lock(&self.0);
        state.log.iter().any(|l| match &l.what {
            LoggedCall::Waits(waits) => !matches!(waits.row.verb, ToolVerb::Write | ToolVerb::Patch),
            LoggedCall::Done(_) => false,
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
            LoggedCall::Done(_) => None,
        });
        waits.collect()
    }

    /// The user said yes: the next run carries the shown calls out.
    pub fn approve(&self) {
        let mut state = lock(&self.0);
        if state.phase == Phase::Recording {
            state.phase = Phase::Approved;
        }
    }
}
