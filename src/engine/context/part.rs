//! The part of the loop's state that belongs to what models see.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tiller_protocol::SessionId;

use crate::context::compaction::compact::CompactedSize;
use crate::context::news::News;
use crate::context::todo::Todo;
use crate::memory::msg::LateChances;
use crate::memory::watching::MemoryWatch;

/// State of the context: what models see beside the entries, and side calls.
#[derive(Default)]
pub(crate) struct ContextPart {
    /// The size that the last compaction of this process left.
    pub(crate) compacted: Option<CompactedSize>,
    /// Shared with the tools' ports, which read it.
    pub(crate) todo: Arc<Mutex<Todo>>,
    pub(crate) news: News,
    /// The last entry that the model was asked about what to keep in memory.
    pub(crate) saved: Option<tiller_protocol::EntryId>,
    /// Reports changes of memory to clients that list it.
    pub(crate) memory_watch: Arc<MemoryWatch>,
    /// Sessions that ended without their chance to save.
    pub(crate) late: LateChances,
    /// The output style that the user chose in this session (`None` in it: none); else that of the settings holds.
    pub(crate) style: Option<Option<String>>,
    /// Titles that a model is making, with the fallback from the prompt in case the engine ends before.
    pub(crate) titling: HashMap<SessionId, String>,
    /// Ends the retry waits of side calls early.
    pub(crate) side_skip: Arc<tokio::sync::Notify>,
    /// Failed calls that wait for a later one that works.
    pub(crate) pairs: tiller_memory::learnings::Pairs,
}
