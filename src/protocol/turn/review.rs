//! Review of what a turn changed. "Accepted" is the default: the files already hold it.

use crate::base::word::text_form;
use serde::{Deserialize, Serialize};

use crate::base::ids::EntryId;
use crate::turn::tool::FileDiff;

/// The changes of one turn by file, from its start to now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Review {
    /// The user entry that began the turn.
    pub turn: EntryId,
    pub title: String,
    pub files: Vec<FileDiff>,
    /// Files that the turn changed and that are as they were before it: the turn was undone, or they were changed back. Only where
    /// `files` is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_back: Vec<String>,
}

/// One hunk, or one file, that the person rejects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reject {
    pub path: String,
    /// The hunk as a unified difference with a file header; its reverse is applied. Empty: the whole file is restored
    /// to its state before the turn.
    pub hunk: String,
}

/// A rejected change that stayed, because the file is not as it was after the change. It is sent as text: `path: why`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectConflict {
    pub path: String,
    /// In words; empty: not known.
    pub why: String,
}

impl std::fmt::Display for RejectConflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.path)?;
        if self.why.is_empty() { Ok(()) } else { write!(f, ": {}", self.why) }
    }
}

impl From<&str> for RejectConflict {
    /// From the form in which it is sent.
    fn from(text: &str) -> Self {
        let (path, why) = text.split_once(": ").unwrap_or((text, ""));
        Self { path: path.to_owned(), why: why.to_owned() }
    }
}

text_form!(RejectConflict);
