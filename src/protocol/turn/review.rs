//! Review of what a turn changed. "Accepted" is the default: the files already hold it.

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
}

/// One hunk, or one file, that the person rejects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reject {
    pub path: String,
    /// The hunk as a unified difference with a file header; its reverse is applied. Empty: the whole file is restored
    /// to its state before the turn.
    pub hunk: String,
}
