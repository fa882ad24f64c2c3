//! Going back to what the files were: the preview, and what is to be done.

use serde::{Deserialize, Serialize};

use crate::base::clock::Time;
use crate::base::ids::SessionId;
use crate::turn::feed::ChangeKind;

/// A file that something changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepFile {
    /// Relative to the workspace, as [`crate::base::names::written`] writes it.
    pub path: String,
    pub kind: ChangeKind,
    /// Who changed it, where that is not what the whole list is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
    /// Only some hunks of what could have been restored were.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partly: bool,
}

/// Who changed a file between two states that a session saw, when the session's own calls did not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum By {
    /// The person, or a program of theirs.
    Outside,
    /// That too, or these commands of this session, which ran in the background.
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

/// What a restore would do. Nothing is changed yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestorePreview {
    /// The first line of what was said there, or the name of the checkpoint.
    pub title: String,
    /// When the state was kept; `None`: the files of that moment were not kept.
    pub time: Option<Time>,
    pub files: Vec<RestoreFile>,
    /// More files than are listed.
    pub more: usize,
    /// What differs and stays as it is in any case: path and why.
    pub left: Vec<String>,
    /// What a person should know: what a checkpoint does not cover.
    pub notes: Vec<String>,
}

/// One file of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreFile {
    /// As [`crate::base::names::written`] writes it.
    pub path: String,
    /// What would happen to it.
    pub kind: ChangeKind,
    pub added: u32,
    pub removed: u32,
    /// Unified, from now to then; empty when it is no text or too large.
    pub diff: String,
    /// Why it stays as it is unless the person says otherwise: somebody else changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<String>,
}

/// A restore that was done, in words for the person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreDone {
    /// Files that changed.
    pub files: Vec<StepFile>,
    /// What stayed as it was: path and why.
    pub left: Vec<String>,
}
