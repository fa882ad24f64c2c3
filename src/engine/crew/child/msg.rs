//! Messages to a child.

use tiller_protocol::event::TurnStatus;
use tiller_protocol::{AgentId, AgentLimits, Notice, Profile};

/// To a child, from the main agent's loop and from its own timers.
pub(crate) enum ChildMsg {
    /// Pause or resume.
    Pause(bool),
    /// Stop the turn; `hard`: kill what runs.
    Stop { hard: bool },
    /// The limits that the user set.
    Limits(AgentLimits),
    /// The profile of the main agent has changed.
    Profile(Profile),
    /// A child of the child has ended.
    ChildEnded { id: AgentId, text: String },
    /// The time limit of this turn may be reached.
    TimeUp { turn: u64 },
    /// A reservation was settled: this turn may get its own.
    BudgetChanged { turn: u64 },
    /// What the turn did to the files is stored, so that its end can be reported.
    Ended {
        /// Number of turns that had begun.
        turns: u64,
        status: TurnStatus,
        text: String,
        why: Option<Notice>,
    },
}
