//! Messages that wait while a turn runs. Each can be seen, edited, moved and withdrawn.

use serde::{Deserialize, Serialize};

use crate::base::ids::QueueId;
use crate::session::message::Message;

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
}
