//! Who a core is.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tiller_config::agents::Definition;
use tiller_protocol::{AgentId, AgentLimits, CommandId, EntryId, Profile, QueueId, SessionId};
use tokio::sync::mpsc;

use super::Purse;
use crate::msg::Msg;

/// Who a core is.
pub(crate) struct Me {
    pub(crate) id: AgentId,
    /// `None`: the main agent.
    pub(crate) child: Option<Box<Child>>,
    /// What kind of agent it is; `None`: the main agent as it is built in.
    pub(crate) role: Option<Arc<Definition>>,
}

impl Me {
    /// The agent that the person talks to.
    pub(crate) fn main(role: Option<Arc<Definition>>) -> Self {
        Self { id: AgentId::main(), child: None, role }
    }
}

/// What only children know of themselves.
pub(crate) struct Child {
    /// To the main agent's task, which holds the other end. It closes when the session ends.
    pub(crate) main: mpsc::Sender<Msg>,
    /// The main agent's session.
    pub(crate) root: SessionId,
    /// The entry that its session hangs off.
    pub(crate) spawned_by: Option<EntryId>,
    pub(crate) label: String,
    /// Names of skills that its task gives it.
    pub(crate) skills: Vec<String>,
    pub(crate) purse: Arc<Purse>,
    /// It never has more than this.
    pub(crate) most: Profile,
    pub(crate) limits: AgentLimits,
    /// Questions of its own that wait at the main agent's.
    pub(crate) waiting: u32,
    pub(crate) requests: u32,
    pub(crate) calls: u32,
    pub(crate) files: BTreeSet<String>,
    /// Time at work in turns that are over, rests left out.
    pub(crate) worked: Duration,
    /// When the present stretch of work began, in monotonic time.
    pub(crate) working: Option<Duration>,
    pub(crate) paused: bool,
    /// What waits for the end of a rest.
    pub(crate) resting: Option<super::pause::Resting>,
    /// Messages on their way, and the commands that sent them.
    pub(crate) receipts: HashMap<QueueId, CommandId>,
    /// Ends of its own children, which its next entry tells, and in which words.
    pub(crate) heard: Vec<(AgentId, String)>,
    /// A program of another vendor does the work.
    pub(crate) outside: Option<super::outside::Outside>,
}

impl Child {
    /// Time at work so far.
    pub(crate) fn worked(&self, mono: Duration) -> Duration {
        self.worked + self.working.map_or(Duration::ZERO, |since| mono.saturating_sub(since))
    }
}
