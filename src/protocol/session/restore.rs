//! Restoring files to an earlier state: the preview, and the request.

use serde::{Deserialize, Serialize};

use crate::base::clock::Time;
use crate::base::ids::SessionId;
use crate::turn::feed::ChangeKind;

/// A changed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepFile {
    /// Relative to the workspace, as [`crate::base::names::written`] writes it.
    pub path: String,
    pub kind: ChangeKind,
    /// The author of the change, where it is not the subject of the whole list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
    /// Only some of the hunks that could be restored were restored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partly: bool,
}

/// The author of a change between two states of the workspace, when it was not a call of the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum By {
    /// The person, or a program of theirs.
    Outside,
    /// As `Outside`, or these commands of the session, which ran in the background.
    Background { commands: String },
    /// A call of another session.
    Session { session: SessionId, title: String },
}

impl std::fmt::Display for By {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Outside => f.write_str("you or another program"),
            Self::Background { commands } => write!(f, "you, or a background command: {commands}"),
            Self::Session { title, .. } if title.is_empty() => f.write_str("another session"),
            Self::Session { title, .. } => write!(f, "the session {title}"),
        }
    }
}

/// What is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreWhat {
    /// The conversation only.
    Talk,
    Files,
    Both,
}

impl RestoreWhat {
    /// Whether the files change.
    pub fn files(self) -> bool {
        self != Self::Talk
    }

    /// Whether the conversation goes back.
    pub fn talk(self) -> bool {
        self != Self::Files
    }
}

/// The effect of a restore that has not been done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestorePreview {
    /// The first line of the message at that entry, or the name of the checkpoint.
    pub title: String,
    /// When the state was saved; `None`: the files of that moment were not saved.
    pub time: Option<Time>,
    pub files: Vec<RestoreFile>,
    /// More files than are listed.
    pub more: usize,
    /// Differing paths that stay as they are in any case, each with the reason.
    pub left: Vec<String>,
    /// Limits that the person should know: what the checkpoint does not cover.
    pub notes: Vec<String>,
    /// Messages of the person at the entry and after it, which would leave the branch; `None`: the entry is not on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
}

/// One file of a preview.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreFile {
    /// As [`crate::base::names::written`] writes it.
    pub path: String,
    /// How it would change.
    pub kind: ChangeKind,
    pub added: u32,
    pub removed: u32,
    /// Unified, from the present state to the restored one; empty for binary or too large files.
    pub diff: String,
    /// Why the file stays as it is unless the person decides otherwise: it has changes that are not the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<String>,
}

/// The result of a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreDone {
    /// Files that changed.
    pub files: Vec<StepFile>,
    /// Paths that stayed as they were, each with the reason.
    pub left: Vec<String>,
}
