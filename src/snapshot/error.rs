//! Errors of snapshots, by what the caller can do about them.

use std::io;
use std::path::{Path, PathBuf};

use tiller_protocol::{Notice, NoticeKind};

use crate::objects::id::Id;

/// Errors of this room.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// No space (or quota) is left. Nothing in the workspace was changed.
    #[error("no space left to write {}", path.display())]
    Full { path: PathBuf },
    /// The device or the file system failed.
    #[error("{}: {detail}", path.display())]
    Io { path: PathBuf, detail: String },
    /// Another process holds the store's lock longer than the waiting time.
    #[error("another process is working in {}", path.display())]
    Busy { path: PathBuf },
    /// More data waits to be stored than the limit allows.
    #[error("too many changes are waiting to be saved in {}", path.display())]
    Behind { path: PathBuf },
    /// The store was made by a newer version of Tiller.
    #[error("{} was created by a newer version of Tiller (format {found}; this version supports {known})", path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    /// The folder is not a store, or is the store of another workspace.
    #[error("{} is not a snapshot store of this workspace: {detail}", path.display())]
    NotOurs { path: PathBuf, detail: String },
    /// The folder for snapshots lies within the workspace.
    #[error("{} is inside the workspace", path.display())]
    Inside { path: PathBuf },
    /// The snapshot, or one of its objects, does not exist; it may have been collected.
    #[error("snapshot object {0} is missing")]
    Missing(Id),
    /// Data differs from what was written.
    #[error("snapshot data in {} is damaged: {detail}", path.display())]
    Damaged { path: PathBuf, detail: String },
    /// The path is not within this workspace.
    #[error("{} is not a path inside the workspace", path.display())]
    Path { path: PathBuf },
}

/// Results of this room.
pub type Result<T> = std::result::Result<T, SnapshotError>;

/// Maps an I/O error to one with its path.
pub(crate) fn at(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> SnapshotError {
    move |e| {
        let path = path.as_ref().to_owned();
        match e.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => SnapshotError::Full { path },
            _ => SnapshotError::Io { path, detail: e.to_string() },
        }
    }
}

impl SnapshotError {
    /// The error as a notice for the person.
    pub fn notice(&self) -> Notice {
        let hint = match self {
            Self::Full { .. } => "Free some space, then retry.",
            Self::Io { .. } => "Check the disk and the permissions of this folder.",
            Self::Busy { .. } => "Wait until it is done, or end it, then retry.",
            Self::Behind { .. } => "Wait a moment, then retry.",
            Self::Newer { .. } => "Use the newer version of Tiller, or choose another data folder.",
            Self::NotOurs { .. } | Self::Inside { .. } => "Choose another data folder (TILLER_HOME).",
            Self::Missing(_) => "It can no longer be restored. Newer snapshots still can.",
            Self::Damaged { .. } => "Other snapshots still work. `tiller doctor` lists what is damaged.",
            Self::Path { .. } => "Name a path relative to the workspace.",
        };
        Notice::new(NoticeKind::Internal, format!("Snapshot: {self}.")).hint(hint)
    }
}
