//! What one call of a tool touches. Declared by the tool for this very call, judged by `permit`.

use serde::{Deserialize, Serialize};

/// One thing that a call needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "needs", rename_all = "snake_case")]
pub enum Access {
    /// Reads a path (absolute, links resolved as far as it exists).
    Read { path: String, inside: bool },
    /// Creates, changes, moves or deletes a path (absolute). `inside` the workspace or not.
    Write { path: String, inside: bool },
    /// Runs a shell command in `folder`.
    Run { command: String, folder: String, background: bool },
    /// Controls a process of ours (poll, write, kill).
    Process { what: String },
    /// Fetches `url` from `host`.
    Net { url: String, host: String },
    /// Asks the person or keeps the plan: never needs permission.
    Free,
}
