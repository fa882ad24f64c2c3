//! The files of the workspace: snapshots and the watcher.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Snapshots of the workspace's files, stored outside the workspace, for restore and undo. Changes take effect at the
/// next start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Snapshots {
    /// Take snapshots.
    pub enabled: bool,
    /// Maximum file size in MiB; larger files are not covered.
    pub file_mb: u64,
    /// Maximum size in MiB of the snapshots of one folder; the oldest are removed first.
    pub quota_mb: u64,
    /// In a folder with more files than this, only files that an agent edits are covered.
    pub files: usize,
    /// What to do with a tool call when no snapshot can be taken before it (on a full disk, for example), so
    /// that its changes could not be undone.
    pub on_failure: OnSnapshotFailure,
}

/// What to do with a tool call when no snapshot can be taken before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnSnapshotFailure {
    /// Ask, in every mode; if no one can answer, refuse the call.
    #[default]
    Ask,
    /// Run the call and show a notice that it cannot be undone.
    Run,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self {
            enabled: true,
            file_mb: 16,
            quota_mb: 2048,
            files: 200_000,
            on_failure: OnSnapshotFailure::default(),
        }
    }
}

/// The file watcher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Watch {
    /// Watch the files of the folder.
    pub enabled: bool,
    /// Milliseconds without further changes before a change is reported.
    pub debounce: u64,
    /// Patterns to ignore in addition to .gitignore, in its syntax.
    pub ignore: Vec<String>,
    /// Start a turn at a comment that ends in `tiller!`.
    pub comments: bool,
    /// Poll for changes instead of using file system events.
    pub poll: bool,
}

impl Default for Watch {
    fn default() -> Self {
        Self { enabled: true, debounce: 200, ignore: Vec::new(), comments: false, poll: false }
    }
}
