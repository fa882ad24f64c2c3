//! Messages that wait while a turn runs. Each can be seen, edited, moved and withdrawn.

use serde::{Deserialize, Serialize};

use crate::base::ids::{EntryId, QueueId};
use crate::knowledge::memory::Taint;
use crate::session::message::{Message, Origin};

/// When a message is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendMode {
    /// In this turn, right after the current tool results. While idle: at once.
    #[default]
    Steer,
    /// As a turn of its own, afterwards.
    Queue,
    /// Stops the turn, then sends.
    Now,
}

/// Delivery state of a waiting message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueuedState {
    /// Shown, not yet on disk.
    Queued,
    /// On disk: it will not be lost.
    Accepted,
    /// In the conversation.
    Delivered,
}

/// One waiting message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queued {
    pub id: QueueId,
    pub message: Message,
    pub mode: SendMode,
    pub state: QueuedState,
    /// How its entry is created when it is sent as a turn of its own.
    #[serde(default, skip_serializing_if = "Origin::is_prompt")]
    pub origin: Origin,
    /// The least trusted text of others in it; `None`: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taint: Option<Taint>,
    /// The last time that the commands in its text ran without its being sent; `None`: they did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<QueuedRun>,
}

/// A time that the commands of a waiting message ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedRun {
    /// The entry that the message becomes: what its commands changed belongs to it.
    pub entry: EntryId,
    /// The last entry before the run that a model sees, without output of the user's own lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<EntryId>,
}

impl Queued {
    /// A message of the user's that is not on disk yet.
    pub fn new(id: QueueId, message: Message, mode: SendMode) -> Self {
        Self { id, message, mode, state: QueuedState::Queued, origin: Origin::Prompt, taint: None, run: None }
    }

    /// A message of Tiller's own that begins a turn. `taint`: that of the text of others in it.
    pub fn task(id: QueueId, text: String, taint: Option<Taint>) -> Self {
        let own = Self::new(id, Message::text(text), SendMode::Queue);
        Self { origin: Origin::Task, taint, ..own }
    }
}
