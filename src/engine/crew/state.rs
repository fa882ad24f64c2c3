//! What the loop holds of agents that wait, are limited, or are read from the store.

use std::time::Duration;

use tiller_protocol::{GoalView, Notice, NoticeKind};
use tiller_store::{AgentRow, Worked};

/// A limit is reached.
pub(crate) fn limit(why: String) -> Notice {
    Notice::new(NoticeKind::Budget, why).hint("raise the limit, then continue it")
}

/// What waits for the end of a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resting {
    /// The next request is to be made ready.
    Prepare { may_compact: bool },
    /// The request had not been answered yet; it goes out again.
    Request,
    /// The wait before another try is over.
    Try { turn: u64, n: u32 },
}

/// Names may be taken already.
pub(crate) const READING: &str = "the agents of this session are still being loaded: try again";

/// An agent from the store.
pub(crate) struct Kept {
    pub(crate) row: AgentRow,
    /// What its session shows of its work.
    pub(crate) seen: Worked,
    pub(crate) goal: Option<GoalView>,
}

/// Until the agents of the crew must have ended.
pub(crate) const CREW: Duration = Duration::from_millis(1500);
