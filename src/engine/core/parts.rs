//! The parts of the engine's state, one per concern. The loop owns them; nothing here waits or writes.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use tiller_protocol::{Cost, EntryBody, Queued, SendMode, SessionId};
use tokio_util::task::AbortOnDropHandle;

use crate::bus::Place;
use crate::context::news::News;
use crate::context::todo::Todo;
use crate::core::Live;
use crate::money::budget::{Limits, Spent};
use crate::prompts::doing::Busy;
use crate::turn::Input;

/// The turn in flight, and what turns share.
pub(crate) struct TurnPart {
    pub(crate) live: Option<Live>,
    /// Turns that have begun; the number of the last one.
    pub(crate) begun: u64,
    /// Inputs of the turn that wait for the one being handled.
    pub(crate) inputs: VecDeque<Input>,
    pub(crate) prefix: crate::prompts::msg::PrefixTask,
    /// Requests that this run may make.
    pub(crate) max_requests: Option<u32>,
}

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

/// What models see beside the entries, and requests beside the conversation.
#[derive(Default)]
pub(crate) struct ContextPart {
    /// Shared with the tools' ports, which read it.
    pub(crate) todo: Arc<Mutex<Todo>>,
    pub(crate) news: News,
    /// Titles that are asked for, as the prompt alone would make them: for when the engine ends before.
    pub(crate) titling: HashMap<SessionId, String>,
    /// Ends the waits of side calls early.
    pub(crate) side_skip: Arc<tokio::sync::Notify>,
}

/// Limits, and what was spent.
pub(crate) struct MoneyPart {
    pub(crate) limits: Limits,
    pub(crate) spent: Spent,
    /// The day that `spent` is of, in the person's time zone.
    pub(crate) day: String,
    /// The remaining budget in the last line about it that went to the model.
    pub(crate) announced_left: Option<Cost>,
    /// What this run may cost.
    pub(crate) max_cost: Option<Cost>,
}

/// States of the workspace's files.
pub(crate) struct FilesPart {
    /// Shared with calls, which keep files as they were before they write.
    pub(crate) reviews: Arc<Mutex<crate::undo::before::Reviews>>,
    /// Closed when the last state that is being recorded is stored.
    pub(crate) recorded: Option<tokio::sync::oneshot::Receiver<()>>,
    /// States that the agent named, until their entries are in place.
    pub(crate) named: Vec<crate::files::msg::Named>,
    /// The state of the files that the open session recorded last.
    pub(crate) last_state: crate::files::LastState,
    /// The notice that states are not kept was shown.
    pub(crate) failed: bool,
    /// States that are being stored. Closed from the start: waiting for it waits for those of now.
    pub(crate) keeping: tokio_util::task::TaskTracker,
}

/// What ends with the engine, and how it is asked to end.
#[derive(Default)]
pub(crate) struct Lifecycle {
    /// Tasks that belong to no turn: titles, queries, lines of the person's.
    pub(crate) tasks: tokio::task::JoinSet<()>,
    /// Tasks of agents that are ending.
    pub(crate) agents: Vec<AbortOnDropHandle<()>>,
    pub(crate) quitting: Option<Place>,
    pub(crate) quit_presses: u32,
    pub(crate) stop: bool,
    /// What is left to do after the present report.
    pub(crate) follow_ups: VecDeque<crate::core::follow_up::FollowUp>,
}
