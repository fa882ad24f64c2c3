//! What can go wrong with snapshots, named by what the caller can do about it.

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
    /// Another process holds the store longer than we wait.
    #[error("another process is working in {}", path.display())]
    Busy { path: PathBuf },
    /// More waits to be kept than there is room for.
    #[error("too many changes are waiting to be kept in {}", path.display())]
    Behind { path: PathBuf },
    /// A newer Tiller made the store.
    #[error("{} was created by a newer version of Tiller (format {found}; this version supports {known})", path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    /// The folder is something else, or keeps the snapshots of another workspace.
    #[error("{} is not a snapshot store of this workspace: {detail}", path.display())]
    NotOurs { path: PathBuf, detail: String },
    /// The folder for snapshots lies inside of the workspace.
    #[error("{} is inside the workspace", path.display())]
    Inside { path: PathBuf },
    /// There is no such snapshot, or no such object of one; it may have been collected.
    #[error("snapshot object {0} is missing")]
    Missing(Id),
    /// What was read is not what was written.
    #[error("snapshot data in {} is damaged: {detail}", path.display())]
    Damaged { path: PathBuf, detail: String },
    /// Not a path of this workspace.
    #[error("{} is not a path inside the workspace", path.display())]
    Path { path: PathBuf },
}

/// Results of this room.
pub type Result<T> = std::result::Result<T, SnapshotError>;

/// Gives an I/O error the path that it is about.
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
    /// In a form for people.
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
