//! The part of the loop's state that belongs to states of the files.

use std::sync::{Arc, Mutex};

/// States of the workspace's files.
pub(crate) struct FilesPart {
    /// Shared with calls, which keep files as they were before they write.
    pub(crate) reviews: Arc<Mutex<crate::undo::before::Reviews>>,
    /// The end of the last write of a state. It stays here, since the next row is written after it.
    pub(crate) recorded: Option<crate::files::written::Recorded>,
    /// A call of this turn has recorded its changes.
    pub(crate) stepped: bool,
    /// States that the agent named, until their entries are in place.
    pub(crate) named: Vec<crate::files::msg::NamedState>,
    /// The state of the files that the open session recorded last.
    pub(crate) last_state: crate::files::LastState,
    /// The notice that states cannot be kept was shown.
    pub(crate) failed: bool,
    /// States that are being stored. Closed from the start, so that waiting for it waits for the present ones.
    pub(crate) keeping: tokio_util::task::TaskTracker,
    /// Restores of files. Closed as `keeping` is.
    pub(crate) restores: tokio_util::task::TaskTracker,
    /// No restore begins any more.
    pub(crate) quitting: tokio_util::sync::CancellationToken,
}
