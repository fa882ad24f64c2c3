//! Who a core is.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tiller_config::agents::Definition;
use tiller_protocol::{AgentId, AgentLimits, CommandId, EntryId, Profile, QueueId, SessionId, Time};

use super::Reservations;
use super::outbox::Outbox;

/// Who a core is.
pub(crate) struct AgentIdentity {
    pub(crate) id: AgentId,
    /// `None`: the main agent.
    pub(crate) child: Option<Box<Child>>,
    /// What kind of agent it is; `None`: the main agent as it is built in.
    pub(crate) role: Option<Arc<Definition>>,
    /// Nothing is written in this window at all.
    pub(crate) look_only: bool,
}

impl AgentIdentity {
    /// The agent that the person talks to.
    pub(crate) fn main(role: Option<Arc<Definition>>) -> Self {
        Self { id: AgentId::main(), child: None, role, look_only: false }
    }
}

/// What only children know of themselves.
pub(crate) struct Child {
    /// To the main agent's task. It closes when the session ends.
    pub(crate) main: Outbox,
    /// The main agent's session.
    pub(crate) root: SessionId,
    /// The entry that its session hangs off.
    pub(crate) spawned_by: Option<EntryId>,
    pub(crate) label: String,
    /// Names of skills that its task gives it.
    pub(crate) skills: Vec<String>,
    pub(crate) reservations: Arc<Reservations>,
    /// It never has more than this.
    pub(crate) most: Profile,
    pub(crate) limits: AgentLimits,
    /// Questions of its own that wait at the main agent's.
    pub(crate) waiting: u32,
    /// Requests and calls so far.
    pub(crate) work: Work,
    pub(crate) files: BTreeSet<String>,
    /// Time at work in stretches that are over, rests left out.
    pub(crate) worked: Duration,
    /// When the present stretch of work began, in monotonic time.
    pub(crate) working: Option<Duration>,
    pub(crate) paused: bool,
    /// What waits for the end of a rest.
    pub(crate) resting: Option<crate::crew::state::Resting>,
    /// Messages on their way, and the commands that sent them.
    pub(crate) receipts: HashMap<QueueId, CommandId>,
    /// Ends of its own children, which its next entry tells, and in which words.
    pub(crate) heard: Vec<(AgentId, String)>,
    /// A program of another vendor does the work.
    pub(crate) outside: Option<crate::crew::external::Outside>,
}

/// What an agent has done, as it is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Work {
    pub(crate) requests: u32,
    pub(crate) calls: u32,
    /// Time at work.
    pub(crate) millis: u64,
    /// It went on working when this was said.
    pub(crate) at: Option<Time>,
    /// No one could give an approval or an answer that it needed. It is a fact of this run, and not kept.
    #[serde(skip)]
    pub(crate) refused: bool,
}

impl Work {
    /// What the store shows of an agent, when that is more: it may have gone on until Tiller was killed.
    /// `own`: each reply of it was a request of ours.
    pub(crate) fn or_more(mut self, seen: &tiller_store::Worked, own: bool) -> Self {
        if own {
            self.requests = self.requests.max(u32::try_from(seen.replies).unwrap_or(u32::MAX));
        }
        self.calls = self.calls.max(u32::try_from(seen.results).unwrap_or(u32::MAX));
        if let (Some(at), Some(last)) = (self.at.take(), seen.last) {
            let more = u64::try_from(last.millis() - at.millis()).unwrap_or(0);
            self.millis = self.millis.saturating_add(more);
        }
        self
    }
}

impl Child {
    /// Time at work so far.
    pub(crate) fn worked(&self, mono: Duration) -> Duration {
        self.worked + self.working.map_or(Duration::ZERO, |since| mono.saturating_sub(since))
    }
}
