//! What tasks report about states of the workspace's files.

use crate::files::by_tool::Asked;
use crate::files::{NotKept, Restored};
use crate::undo::review::Reviewed;
use crate::undo::undoing::Found;

/// A report about snapshots, restores, reviews and undo.
pub(crate) enum FilesMsg {
    /// What an undo or redo would take back.
    UndoFound(Box<Found>),
    Reviewed(Box<Reviewed>),
    NotKept(Box<NotKept>),
    Restored(Box<Restored>),
    /// A tool names a state of the files, or goes back to one.
    Asked(Asked),
    /// The snapshots have a notice for the person.
    Notices,
    /// Files that a call changed, relative to the folder.
    Touched(Vec<String>),
}
