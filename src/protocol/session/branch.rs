//! Branches and tags, as the person sees them. A branch is a head with a name of the person's.

use serde::{Deserialize, Serialize};

use crate::base::clock::Time;
use crate::base::ids::EntryId;

/// What a branch is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchName {
    /// The head: what commands know it by. It never changes.
    pub head: String,
    /// What the person calls it; empty: it has no name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
}

impl BranchName {
    /// The word for it: its name, else its head's.
    pub fn word(&self) -> &str {
        if self.label.is_empty() { &self.head } else { &self.label }
    }

    /// Nothing is known of it.
    pub fn is_empty(&self) -> bool {
        self.head.is_empty()
    }
}

/// One branch of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchView {
    #[serde(flatten)]
    pub name: BranchName,
    /// Its last entry; `None`: nothing was said on it.
    pub entry: Option<EntryId>,
    /// When that was.
    pub time: Option<Time>,
    #[serde(default)]
    pub archived: bool,
    /// It is the one that is open here.
    #[serde(default)]
    pub open: bool,
    /// Another living process that has it open: its number, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_in: Option<String>,
    /// The first words of what the person said last on it.
    #[serde(default)]
    pub words: String,
}

/// A name for one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagView {
    pub name: String,
    pub entry: EntryId,
}
