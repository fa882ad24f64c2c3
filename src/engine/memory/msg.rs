//! Reports about memory to the engine's loop.

use tiller_memory::MemoryError;
use tiller_protocol::EntryId;
use tiller_tool::MemoryOrigin;
use tokio::sync::oneshot;

/// A report about memory.
pub(crate) enum MemoryMsg {
    /// A tool asks where an entry with this text would come from. `entry`: the entry that holds its call.
    Origin { text: String, entry: Option<EntryId>, reply: oneshot::Sender<MemoryOrigin> },
    /// The files and the learnings follow the session to another branch: what moved, in sentences.
    Moved(Result<Vec<String>, MemoryError>),
}
