//! Errors of the store, by what the caller can do about them.

use std::path::PathBuf;

use rusqlite::ErrorCode;
use tiller_protocol::{EntryId, Notice, NoticeKind, SessionId};

/// Errors of this room. Clonable, because one failure may answer many waiting callers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No space (or quota) is left. The writer keeps its jobs and tries again.
    #[error("no space left to save to {}", path.display())]
    Full { path: PathBuf },
    /// The device or file system failed.
    #[error("cannot save to {}: {detail}", path.display())]
    Io { path: PathBuf, detail: String },
    /// The database was deleted, renamed or replaced while it was open.
    #[error("{} was moved, deleted or replaced while it was open", path.display())]
    Moved { path: PathBuf },
    /// Another process held the database longer than all retries.
    #[error("{} is busy: another process is writing", path.display())]
    Busy { path: PathBuf },
    /// The queue of the writer is full, so the job was not accepted.
    #[error("{waiting} changes are already waiting to be saved")]
    Overloaded { waiting: usize },
    /// The folder or file is not writable, or the store was opened for reading only.
    #[error("{} cannot be written: {detail}", path.display())]
    ReadOnly { path: PathBuf, detail: String },
    /// The folder or file belongs to another user.
    #[error("{} belongs to another user (uid {owner})", path.display())]
    Foreign { path: PathBuf, owner: u32 },
    /// The file system cannot share memory between processes (most network file systems).
    #[error("{} is on {kind}, which is not safe for the database", path.display())]
    Network { path: PathBuf, kind: String },
    /// The file was made by a newer version of Tiller.
    #[error("{} was created by a newer version of Tiller (schema {found}; this version supports {known})", path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    /// The file is a database of another program.
    #[error("{} is not a Tiller database", path.display())]
    NotOurs { path: PathBuf },
    /// The file is damaged.
    #[error("{} is damaged: {detail}", path.display())]
    Corrupt { path: PathBuf, detail: String },
    /// The linked SQLite is older than the oldest version that is safe with several writers.
    #[error("SQLite {found} is too old; {floor} or later is required")]
    OldSqlite { found: String, floor: String },
    /// No such session.
    #[error("there is no session {0}")]
    NoSession(SessionId),
    /// No such entry.
    #[error("there is no entry {0}")]
    NoEntry(EntryId),
    /// No such head, operation, ...
    #[error("there is no {0}")]
    NotFound(String),
    /// The value to be added already exists, or the head is not where the caller expected.
    #[error("conflict: {0}")]
    Conflict(String),
    /// Another process holds the lease, or took it over.
    #[error("the session is open in {holder}")]
    Held { holder: String },
    /// A value cannot be stored or read back.
    #[error("unreadable record: {0}")]
    Record(String),
    /// An import file has an error at this line (1-based).
    #[error("line {line}: {detail}")]
    Import { line: usize, detail: String },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// A later search took the place of this one.
    #[error("the search was cancelled")]
    Cancelled,
    /// A fault of Tiller itself.
    #[error("store: {0}")]
    Internal(String),
}

/// Results of this room.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

impl StoreError {
    /// The target of a write does not exist, or another value is in its place: repeating the write never succeeds.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::NoEntry(_) | Self::NotFound(_) | Self::Conflict(_))
    }

    /// Whether the whole database (not just one job) is affected, so that a retry may succeed.
    pub fn is_trouble(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::Io { .. } | Self::Moved { .. } | Self::Busy { .. })
    }

    /// Fills in the path where the origin of the error did not know it.
    pub(crate) fn at(mut self, at: &std::path::Path) -> Self {
        if let Self::Full { path }
        | Self::Io { path, .. }
        | Self::Busy { path }
        | Self::Corrupt { path, .. }
        | Self::ReadOnly { path, .. } = &mut self
            && path.as_os_str().is_empty()
        {
            *path = at.to_owned();
        }
        self
    }

    /// Converts an error of SQLite, for the database at `path`.
    pub(crate) fn from_sql(error: &rusqlite::Error, path: &std::path::Path) -> Self {
        let path = path.to_owned();
        let rusqlite::Error::SqliteFailure(code, text) = error else {
            return match error {
                rusqlite::Error::QueryReturnedNoRows => Self::NotFound("row".into()),
                rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::Utf8Error(..) => Self::Record(error.to_string()),
                other => Self::Internal(other.to_string()),
            };
        };
        let detail = text.clone().unwrap_or_else(|| code.to_string());
        match code.code {
            ErrorCode::DiskFull => Self::Full { path },
            ErrorCode::SystemIoFailure | ErrorCode::FileLockingProtocolFailed => {
                Self::Io { path, detail: format!("{detail} (sqlite {})", code.extended_code) }
            }
            ErrorCode::CannotOpen => Self::Io { path, detail },
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy { path },
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => Self::ReadOnly { path, detail },
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Self::Corrupt { path, detail },
            ErrorCode::ConstraintViolation => Self::Conflict(detail),
            ErrorCode::OperationInterrupted => Self::Cancelled,
            ErrorCode::TooBig => Self::Record(detail),
            // SQLite reports a format of the schema that no version has as a general error.
            _ if detail == "unsupported file format" => Self::Corrupt { path, detail },
            _ => Self::Internal(detail),
        }
    }

    /// Converts an error of the operating system, about `path`.
    pub(crate) fn from_io(error: &std::io::Error, path: &std::path::Path) -> Self {
        use std::io::ErrorKind as K;
        let path = path.to_owned();
        match error.kind() {
            K::StorageFull | K::QuotaExceeded | K::FileTooLarge => Self::Full { path },
            K::PermissionDenied | K::ReadOnlyFilesystem => Self::ReadOnly { path, detail: error.to_string() },
            _ => Self::Io { path, detail: error.to_string() },
        }
    }

    /// The notice for a store that could not be opened: the program ends.
    pub fn at_start(&self) -> Notice {
        let hint = match self {
            Self::Full { .. } => "free some space there, or set TILLER_HOME to a folder on another disk",
            Self::ReadOnly { .. } | Self::Foreign { .. } => "set TILLER_HOME to a folder of your own",
            _ => return self.notice(),
        };
        Notice::new(NoticeKind::Store, self.to_string()).hint(hint)
    }

    /// The notice for the person.
    pub fn notice(&self) -> Notice {
        let plain = |kind| Notice::new(kind, self.to_string());
        match self {
            Self::Full { .. } => plain(NoticeKind::Store)
                .hint("free some space; your input is kept and is saved as soon as there is room"),
            Self::Io { .. } => plain(NoticeKind::Store)
                .hint("check the disk; `tiller sessions export` saves a copy elsewhere"),
            Self::Moved { .. } => plain(NoticeKind::Store)
                .hint("restore the file, or restart Tiller; nothing is shown as saved until then"),
            Self::Busy { .. } | Self::Overloaded { .. } => plain(NoticeKind::Store),
            Self::ReadOnly { .. } | Self::Foreign { .. } => plain(NoticeKind::Store)
                .hint("set TILLER_HOME to a folder of your own, or continue without saving"),
            Self::Network { .. } => {
                plain(NoticeKind::Store).hint("set TILLER_HOME to a folder on a local disk")
            }
            Self::Newer { .. } => {
                plain(NoticeKind::Store).hint("use the newer version of Tiller, or open it read-only")
            }
            Self::Corrupt { .. } => plain(NoticeKind::Store)
                .hint("restart Tiller: the damaged file is kept and everything readable is recovered"),
            Self::NotOurs { .. } => plain(NoticeKind::Store).hint("set TILLER_HOME to another folder"),
            Self::OldSqlite { .. } | Self::Closed | Self::Internal(_) | Self::Record(_) => {
                plain(NoticeKind::Internal)
            }
            Self::NoSession(_)
            | Self::NoEntry(_)
            | Self::NotFound(_)
            | Self::Conflict(_)
            | Self::Cancelled => plain(NoticeKind::User),
            Self::Held { .. } => plain(NoticeKind::User).hint("open a branch of it, or open it read-only"),
            Self::Import { .. } => plain(NoticeKind::User),
        }
    }
}

/// Within jobs and reads, where the path is unknown; [`StoreError::at`] adds it.
impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::from_sql(&error, std::path::Path::new(""))
    }
}

/// A value that cannot be written as JSON, or read back.
impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        Self::Record(error.to_string())
    }
}
