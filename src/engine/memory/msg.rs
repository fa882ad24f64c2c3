//! Reports about memory to the engine's loop.

use std::collections::VecDeque;

use tiller_memory::MemoryError;
use tiller_protocol::{EntryId, ModelRef, SessionId};
use tiller_tool::MemoryOrigin;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// A report about memory.
pub(crate) enum MemoryMsg {
    /// A tool asks where an entry with this text would come from. `entry`: the entry that holds its call.
    Origin { text: String, entry: Option<EntryId>, reply: oneshot::Sender<MemoryOrigin> },
    /// The files and the learnings follow the session to another branch: what moved, in sentences.
    Moved(Result<Vec<String>, MemoryError>),
    /// Sessions of this folder that ended lately, the latest first.
    Ended(Vec<EndedSession>),
    /// What came of the chance to save of one of them.
    LateChance(LateChance),
}

/// What came of the chance to save of a session.
pub(crate) enum LateChance {
    /// It is not worth a request, or had its chance.
    Skipped,
    /// The model was asked: what was kept, in sentences.
    Asked(Vec<String>),
    /// The model could not be asked. The session keeps its chance.
    Failed,
    /// The request was ended before its answer. The session keeps its chance.
    Cancelled,
}

/// A session that ended, and the model that it was led with.
#[derive(Clone, Debug)]
pub(crate) struct EndedSession {
    pub(crate) id: SessionId,
    pub(crate) model: ModelRef,
}

/// The sessions that ended before and may get their chance to save now.
#[derive(Default)]
pub(crate) struct LateChances {
    /// Those that were not looked at yet, the latest session first.
    pub(crate) waiting: VecDeque<EndedSession>,
    /// How many of them may be asked about.
    pub(crate) left: usize,
    /// The one that is being looked at or asked about, and what ends that request.
    pub(crate) asking: Option<(EndedSession, CancellationToken)>,
    /// How many requests in a row no model answered.
    pub(crate) failures: usize,
    /// What was kept of those before, in sentences.
    pub(crate) kept: Vec<String>,
}

impl LateChances {
    /// A turn of the user's begins: the request of the moment ends.
    pub(crate) fn turn_began(&self) {
        if let Some((_, request)) = &self.asking {
            request.cancel();
        }
    }
}
