//! The state of a goal, stored so that it survives a restart.

use serde::{Deserialize, Serialize};
use tiller_protocol::{Cost, GoalState, GoalView, QueueId, Queued, SessionId};
use tiller_store::{Store, StoreError};

/// A goal and its progress. Stored as it is, so that it survives a restart.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Pursuit {
    pub(crate) view: GoalView,
    /// Cost of the session when the goal began.
    pub(crate) from: Cost,
    /// The message that waits to begin its next turn.
    pub(crate) queued: Option<QueueId>,
}

pub(crate) fn key(session: SessionId) -> String {
    format!("goal:{session}")
}

/// The goal that was pursued when the session was left. The user must resume it. Blocks.
pub(crate) fn kept(store: &Store, id: SessionId) -> Result<Option<Pursuit>, StoreError> {
    let kept = store.meta(&key(id))?;
    let mut pursuit = kept.and_then(|text| serde_json::from_str::<Pursuit>(&text).ok());
    if let Some(p) = pursuit.as_mut().filter(|p| p.view.state.active()) {
        p.view.state = GoalState::Stopped;
        p.view.last = "Tiller ended in the meantime".into();
    }
    Ok(pursuit)
}

impl Pursuit {
    /// Whether this message belongs to the goal.
    pub(crate) fn owns(&self, queued: &Queued) -> bool {
        self.queued == Some(queued.id)
    }

    pub(crate) fn view(&self) -> &GoalView {
        &self.view
    }
}

/// What a check found.
pub(crate) struct GoalReport {
    pub(crate) no: u64,
    pub(crate) holds: bool,
    /// Its output, for the model and the user.
    pub(crate) said: String,
    /// The command that ran, and how it ended.
    pub(crate) ran: Option<(String, Option<i32>)>,
}
