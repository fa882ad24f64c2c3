//! The operation log: how each operation moved a head, and how to invert it. Undo adds a row and never removes one.

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
    /// A title for `/ops`.
    pub title: String,
    /// The operation that this one undoes or redoes: the original, never an undo itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<OpId>,
    /// The operation that was done together with this one, and stands before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<OpId>,
    pub change: OpChange,
}

impl Op {
    /// The stored title of a branch that was made to begin before an earlier message.
    pub const FORK: &str = "fork";

    /// Whether it made a branch that begins before an earlier message. Other moves to a branch are stored in the same form:
    /// only the title of the row differs.
    pub fn is_fork(&self) -> bool {
        self.title == Self::FORK
    }

    /// The original operation: itself, or the operation that it undoes or redoes.
    pub fn root(&self) -> OpId {
        let within = if let OpChange::Files { of, .. } = &self.change { *of } else { None };
        self.of.or(within).unwrap_or(self.id)
    }
}

/// The turn that an operation on files belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnOp {
    /// The user entry that began it.
    pub entry: EntryId,
    pub began: Time,
    /// Its branch, by the name of the head.
    pub head: String,
    /// The states before and after its changes, oldest first; others changed files in between.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<(String, String)>,
    /// Folders that it made or removed, and that are empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
}

/// The change of an operation, with enough data to invert it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum OpChange {
    /// The conversation continues at head `name`, which moved from `before` to `after`.
    Head {
        name: String,
        before: Option<EntryId>,
        after: Option<EntryId>,
        /// The head that was left, when it is not `name`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
    },
    /// The entries up to `before` on head `name` were summarised as `after`.
    Compaction { name: String, before: Option<EntryId>, after: EntryId },
    /// The session was renamed.
    Title { before: String, after: String },
    /// Files were restored: the snapshots before and after, and the changed files.
    Files {
        before: String,
        after: String,
        files: Vec<StepFile>,
        /// The restore that this one undoes or redoes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<OpId>,
        /// The turn that changed them, or whose changes were taken back; `None`: a restore.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<Box<TurnOp>>,
    },
    /// Archived or brought back.
    Archived { before: bool, after: bool },
    /// The person named branch `name`; empty: no name.
    Label { name: String, before: String, after: String },
    /// Branch `name` was archived or brought back.
    BranchArchived { name: String, before: bool, after: bool },
    /// Tag `name` was moved to another entry, or removed.
    Tag { name: String, before: Option<EntryId>, after: Option<EntryId> },
}
