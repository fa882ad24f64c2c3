//! The part of the loop's state that belongs to what the person types.

use std::collections::HashMap;
use std::sync::Arc;

use tiller_protocol::{EntryBody, Queued, SendMode};

use crate::prompts::doing::Busy;

/// What the person sent, until it is an entry.
pub(crate) struct PromptPart {
    pub(crate) queue: Vec<Queued>,
    /// Of those, what was sent while a job was under way that does not lead to a turn.
    pub(crate) behind_job: Vec<tiller_protocol::QueueId>,
    /// Entries that wait for a safe point: output of the person's own commands.
    pub(crate) pending: Vec<EntryBody>,
    /// Comments in files that asked for a turn.
    pub(crate) asked: crate::prompts::msg::Asked,
    /// The order of the person's own commands.
    pub(crate) typed: crate::prompts::msg::TypedLines,
    /// What runs for the person beside turns, and how to end it: own commands, questions on the side.
    pub(crate) lines: HashMap<String, crate::prompts::msg::RunningLine>,
    pub(crate) finder: Arc<crate::prompts::finder::Finder>,
    /// A message is being prepared, or the person's own compaction runs; new ones wait in the queue.
    pub(crate) busy: Option<Busy>,
    /// Numbers what `busy` holds.
    pub(crate) jobs: u64,
}

impl PromptPart {
    /// Whether something waits that goes into the turn in flight at its next safe point.
    pub(crate) fn steering(&self) -> bool {
        !self.pending.is_empty() || self.queue.iter().any(|q| q.mode == SendMode::Steer)
    }
}
