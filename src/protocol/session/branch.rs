//! Branches and tags as clients show them. A branch is a head with an optional name that the person gave it.

use serde::{Deserialize, Serialize};

use crate::base::clock::Time;
use crate::base::ids::EntryId;

/// The name of a branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchName {
    /// The head, by which commands address it. It never changes.
    pub head: String,
    /// The name that the person gave it; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
}

impl BranchName {
    /// The head that a session begins with.
    pub const MAIN: &str = "main";

    const GENERATED: &str = "branch-";

    /// The head of a new branch, from a part of an identifier.
    pub fn generated(id: &str) -> String {
        format!("{}{id}", Self::GENERATED)
    }

    /// Whether a head was named by [`Self::generated`].
    pub fn is_generated(head: &str) -> bool {
        head.starts_with(Self::GENERATED)
    }

    /// The name to show: its label, else its head.
    pub fn word(&self) -> &str {
        if self.label.is_empty() { &self.head } else { &self.label }
    }

    /// Whether both parts are empty: the branch is not known.
    pub fn is_empty(&self) -> bool {
        self.head.is_empty()
    }
}

/// One branch of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchView {
    #[serde(flatten)]
    pub name: BranchName,
    /// Its last entry; `None`: it has no entries.
    pub entry: Option<EntryId>,
    /// Time of that entry.
    pub time: Option<Time>,
    #[serde(default)]
    pub archived: bool,
    /// Whether it is the open branch of this session.
    #[serde(default)]
    pub open: bool,
    /// Process id, as text, of another living process that has it open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_in: Option<String>,
    /// The first words of the person's last message on it.
    #[serde(default)]
    pub words: String,
}

/// A name for one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagView {
    pub name: String,
    pub entry: EntryId,
}
