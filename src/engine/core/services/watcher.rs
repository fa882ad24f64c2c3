//! The port to the watcher: changes of files by other programs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_protocol::view::GitState;
use tiller_protocol::{AgentId, FileChange, Notice};
use tiller_tool::cx::SeenFile;
use tiller_tool::shell::Witness;

/// Changes that the watcher saw, after its quiet time.
#[derive(Clone, Debug, Default)]
pub struct WatchReport {
    pub changes: Vec<FileChange>,
    pub git: Option<GitState>,
    /// The watcher fell back to polling, or missed changes.
    pub notice: Option<Notice>,
}

/// Delivers a report to the engine. Waits at most a second while the inbox is full; false when the engine has ended.
pub type WatchSink = Box<dyn Fn(WatchReport) -> bool + Send + Sync>;

/// Watches the workspace. Dropping it ends it.
pub trait Watcher: Send + Sync {
    /// Starts watching, and reporting to `sink`.
    fn start(&self, sink: WatchSink);
    /// True when it is there for hooks alone: they are to see each change, from the first request to the last one.
    fn is_for_hooks(&self) -> bool {
        false
    }
    /// Waits until it sees changes, and until what changed before is reported; some seconds at most. Blocks.
    fn settle(&self) {}
    /// `agent` is about to write these paths.
    fn writing(&self, agent: &AgentId, paths: &[PathBuf]);
    /// `agent` has written these paths.
    fn wrote(&self, agent: &AgentId, paths: &[PathBuf]);
    /// `agent` starts the command `what` (or has ended it): changes meanwhile that its witness saw, or all where it has none, may be
    /// its own.
    fn command(&self, agent: &AgentId, what: &str, witness: Option<&Witness>, running: bool);
    /// Whether anything changed since the last call of [`Self::stale`] for `agent`. Quick.
    fn has_changes(&self, agent: &AgentId) -> bool;
    /// Files of `seen` (what the agent knows, by absolute path) that changed since the last call, not by the agent's
    /// own edits, and that differ from what the agent knows. Reads those files: blocks.
    fn stale(&self, agent: &AgentId, seen: &HashMap<PathBuf, SeenFile>) -> StaleFiles;
    /// Records the text of a file as the agent just read or wrote it.
    fn known(&self, path: &Path, text: &Arc<str>);
    fn pause(&self, paused: bool);
    fn mute(&self, path: &str);
    /// The difference of a file from its state when watching began.
    ///
    /// # Errors
    /// In words.
    fn diff(&self, path: &str) -> Result<String, String>;
}

/// Files that changed since an agent read or wrote them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaleFiles {
    pub files: Vec<StaleFile>,
    /// Number of further files.
    pub more: usize,
}

/// A file that differs from what the agent knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleFile {
    /// Relative to the workspace.
    pub path: String,
    pub deleted: bool,
    /// Lines added and removed compared with what the agent knows, where that is known.
    pub lines: Option<(u32, u32)>,
    /// The agent's command that ran at that time. It or any other program may have made the change.
    pub during: Option<String>,
}
