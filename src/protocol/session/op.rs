//! The operation log: what moved a head, and how to move it back. Undo adds a row, never removes one.

use serde::{Deserialize, Serialize};

use crate::base::clock::Time;
use crate::base::ids::{CommandId, EntryId, OpId, SessionId};
use crate::session::restore::StepFile;

/// One operation on a session's heads or properties.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Op {
    pub id: OpId,
    pub session: SessionId,
    pub time: Time,
    /// The operation before it.
    pub parent: Option<OpId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<CommandId>,
    /// In words, for `/ops`.
    pub title: String,
    /// The operation that this one undoes or redoes: the first of its kind, never an undo itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<OpId>,
    /// It was done in one with this operation, which stands before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<OpId>,
    pub change: OpChange,
}

impl Op {
    /// The operation that this one is about: itself, or the one that it undoes or redoes.
    pub fn root(&self) -> OpId {
        let within = if let OpChange::Files { of, .. } = &self.change { *of } else { None };
        self.of.or(within).unwrap_or(self.id)
    }
}

/// What an operation changed; holds enough to be inverted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum OpChange {
    /// The conversation goes on at head `name`, which stands at `after`; before, it stood at `before`.
    Head {
        name: String,
        before: Option<EntryId>,
        after: Option<EntryId>,
        /// The head that was left, when it is another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
    },
    /// What was said up to `before` on head `name` was summarised at `after`.
    Compaction { name: String, before: Option<EntryId>, after: EntryId },
    /// The session was renamed.
    Title { before: String, after: String },
    /// Files went back to a state (or forth again): snapshots of before and after, and what changed.
    Files {
        before: String,
        after: String,
        files: Vec<StepFile>,
        /// The restore that this one undoes or redoes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<OpId>,
    },
    /// Archived or brought back.
    Archived { before: bool, after: bool },
    /// Branch `name` was given a name by the person; empty: none.
    Label { name: String, before: String, after: String },
    /// Branch `name` was put away or brought back.
    BranchArchived { name: String, before: bool, after: bool },
    /// Tag `name` was put on another entry, or taken off.
    Tag { name: String, before: Option<EntryId>, after: Option<EntryId> },
}
