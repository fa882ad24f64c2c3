//! What one concern leaves for another to do after it. A concern never calls one that builds on it: it leaves a
//! follow-up, and the loop carries it out once the report that led to it has been handled.

use tiller_protocol::Notice;
use tiller_protocol::event::TurnStatus;

use crate::core::Core;

/// One thing to do after the present report.
#[derive(Clone, Debug)]
pub(crate) enum FollowUp {
    /// Sends the next waiting message, if one is to go out by itself after something that ended like this.
    NextQueued(TurnStatus),
    /// Sends the first message that was sent while a job ran that moved nothing.
    SendBehindJob,
    /// Stops the turn in flight, or the job that prepares one.
    Interrupt { hard: bool },
    /// Ends an agent whose goal came to its end between two turns.
    GoalOver { status: TurnStatus, why: Option<Notice> },
}

impl Core {
    /// Leaves something to do after the present report.
    pub(crate) fn follow_up(&mut self, what: FollowUp) {
        self.lifecycle.follow_ups.push_back(what);
    }
}
