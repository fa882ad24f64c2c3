//! The part of the loop's state that belongs to what the user types.

use std::collections::HashMap;
use std::sync::Arc;

use tiller_protocol::{EntryBody, Queued, SendMode};

use crate::prompts::doing::RunningJob;

/// Messages of the user, until they are entries.
pub(crate) struct PromptPart {
    pub(crate) queue: Vec<Queued>,
    pub(crate) queue_writes: crate::prompts::pending::QueueWrites,
    /// Messages of the queue that arrived during a job which leads to no turn.
    pub(crate) behind_job: Vec<tiller_protocol::QueueId>,
    /// Entries that wait for a safe point: output of the user's own commands.
    pub(crate) pending: Vec<EntryBody>,
    /// Comments in files that started a turn.
    pub(crate) asked: crate::prompts::msg::SeenComments,
    /// The user's own commands, in order.
    pub(crate) typed: crate::prompts::msg::ShellLines,
    /// What runs beside turns, with the tokens to end it: the user's own commands and side questions.
    pub(crate) lines: HashMap<String, crate::prompts::msg::RunningLine>,
    pub(crate) finder: Arc<crate::prompts::finder::Finder>,
    /// The running job; new messages wait in the queue.
    pub(crate) busy: Option<RunningJob>,
    /// Number of the last job.
    pub(crate) jobs: u64,
    /// The hooks of the opened session, until its first message takes what they add.
    pub(crate) opened: Option<crate::core::hooks::OpenedHooks>,
}

impl PromptPart {
    /// Whether a message waits for the next safe point of the turn in flight.
    pub(crate) fn steering(&self) -> bool {
        !self.pending.is_empty() || self.queue.iter().any(|q| q.mode == SendMode::Steer)
    }
}
