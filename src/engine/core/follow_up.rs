//! What one concern leaves for another to do after it. A concern never calls a concern that builds on it: it leaves a
//! follow-up, and the loop carries it out once the report that led to it has been handled.

use tiller_protocol::Notice;
use tiller_protocol::event::TurnStatus;

use crate::core::Core;

/// One thing to do after the present report.
#[derive(Clone, Debug)]
pub(crate) enum FollowUp {
    /// Sends the next waiting message, if one is due after something that ended with this status.
    NextQueued(TurnStatus),
    /// Sends the first message that arrived during a job which led to no turn.
    SendBehindJob,
    /// Stops the turn in flight, or the job that prepares one.
    Interrupt { hard: bool },
    /// Ends an agent whose goal ended between two turns.
    GoalOver { status: TurnStatus, why: Option<Notice> },
}

impl Core {
    /// Adds a follow-up.
    pub(crate) fn follow_up(&mut self, what: FollowUp) {
        self.lifecycle.follow_ups.push_back(what);
    }
}
