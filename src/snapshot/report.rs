//! Results for callers: snapshots, what they do not cover, limits.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tiller_protocol::Time;

use crate::objects::id::Id;

/// Limits of snapshots.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum size of a covered file, unless a tool names it (see [`NAMED_BYTES`]).
    pub file_bytes: u64,
    /// With more files than this, only named files are covered.
    pub files: usize,
    /// With more content than this, only named files are covered.
    pub tree_bytes: u64,
    /// When a scan of all files takes longer, only named files are covered.
    pub scan: Duration,
    /// How long to wait for another process.
    pub wait: Duration,
    /// The person's home folder: neither it nor a folder above it is scanned as a whole.
    pub home: Option<PathBuf>,
    /// The person's own ignore file (`core.excludesFile`, usually `~/.config/git/ignore`).
    pub global_ignore: Option<PathBuf>,
}

/// Maximum size of a file that a tool names, whatever the limit for others: no tool changes a larger one.
pub const NAMED_BYTES: u64 = 64 << 20;

impl Limits {
    /// Maximum size of a covered file that is named.
    pub(crate) fn named_bytes(&self) -> u64 {
        self.file_bytes.max(NAMED_BYTES)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: 16 << 20,
            files: 200_000,
            tree_bytes: 2 << 30,
            scan: Duration::from_secs(20),
            wait: Duration::from_secs(30),
            home: None,
            global_ignore: None,
        }
    }
}

/// What a snapshot covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All files that git would not ignore, small ones that it ignores (no build output), and named files.
    Full,
    /// Named files only, because a complete scan would cost too much.
    Named(CostReason),
}

/// Why a complete scan costs too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostReason {
    /// There are more files than this.
    Files(usize),
    /// The files hold more bytes than this.
    Bytes(u64),
    /// The scan took longer than this many seconds.
    Slow(u64),
    /// The folder is the person's home, or above it.
    Home,
}

impl fmt::Display for CostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(n) => write!(f, "this folder contains more than {n} files"),
            Self::Bytes(n) => write!(f, "this folder contains more than {} MiB", n >> 20),
            Self::Slow(s) => write!(f, "scanning all files takes longer than {s} seconds"),
            Self::Home => f.write_str("this is a home folder or above one"),
        }
    }
}

/// A path that a snapshot does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncovered {
    pub path: PathBuf,
    pub reason: Reason,
}

/// Why a path is not covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Larger than the limit for a file.
    TooLarge,
    /// It cannot be read.
    Unreadable,
    /// A pipe, a socket or a device.
    Special,
    /// The folder of a repository without a work tree.
    BareRepository,
    /// On another file system.
    OtherDisk,
    /// A repository in the workspace: its files are covered, its history (`.git`) is not.
    Repository,
    /// Ignored by git, and a log, too large, or a folder of too many files. Build output is listed only when it was deleted.
    Ignored,
}

impl Reason {
    pub(crate) const ALL: [(Self, &'static str); 7] = [
        (Self::TooLarge, "too-large"),
        (Self::Unreadable, "unreadable"),
        (Self::Special, "special"),
        (Self::BareRepository, "bare-repository"),
        (Self::OtherDisk, "other-disk"),
        (Self::Repository, "repository"),
        (Self::Ignored, "ignored"),
    ];

    pub(crate) fn word(self) -> &'static str {
        Self::ALL.iter().find(|(r, _)| *r == self).map_or("", |(_, w)| w)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "too large",
            Self::Unreadable => "cannot be read",
            Self::Special => "a pipe, socket or device",
            Self::BareRepository => "a bare repository",
            Self::OtherDisk => "on another file system",
            Self::Repository => "a nested repository: its files are covered, its .git is not",
            Self::Ignored => "ignored by git",
        })
    }
}

/// A stored state of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its permanent id.
    pub id: Id,
    /// The id of its files: two snapshots with the same one have the same files.
    pub tree: Id,
    pub time: Time,
    pub mode: Mode,
    /// Paths that it does not hold, sorted. Build output that git ignores is not listed.
    pub uncovered: Vec<Uncovered>,
    /// Number of further paths.
    pub more: usize,
}

impl Snapshot {
    /// What the person should be told once: that only named files are covered, and why.
    pub fn notice(&self) -> Option<String> {
        match self.mode {
            Mode::Full => None,
            Mode::Named(why) => Some(format!(
                "Checkpoints cover only files that agents edit here, because {why}. Changes made by \
                commands cannot be restored."
            )),
        }
    }

    /// Why a path is not covered, when it or a folder above it is listed.
    pub fn uncovered(&self, path: &Path) -> Option<Reason> {
        let hit = |u: &&Uncovered| u.reason != Reason::Repository && path.starts_with(&u.path);
        self.uncovered.iter().find(hit).map(|u| u.reason)
    }
}
