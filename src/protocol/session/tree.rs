//! A session as a tree to browse: its nodes without their texts, and the browser's queries for the rest.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::agents::agent::AgentState;
use crate::base::clock::Time;
use crate::base::ids::{AgentId, EntryId, SessionId};
use crate::base::usage::Cost;
use crate::session::message::Origin;
use crate::session::restore::RestoreFile;

/// A query of the tree browser. Each is answered by the [`TreeReply`] of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum TreeQuery {
    /// All nodes; `None`: of the open session.
    Nodes { session: Option<SessionId> },
    /// For each node, how many files it changed, and which calls failed or replies were cut off.
    Marks { session: SessionId },
    /// The first lines of these entries, of any session.
    Lines { entries: Vec<EntryId> },
    /// Entries that contain words, in the sessions of this project or of all; `text` is as in a search.
    Find {
        text: String,
        #[serde(default)]
        everywhere: bool,
    },
    /// The text of an entry, and the files that it changed.
    Preview { entry: EntryId },
}

/// The answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum TreeReply {
    Nodes { tree: Arc<SessionTree> },
    Marks { session: SessionId, marks: TreeMarks },
    Lines { lines: Vec<TreeLine> },
    Find { text: String, everywhere: bool, found: TreeFound },
    Preview { preview: Box<EntryPreview> },
}

/// A session without its texts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionTree {
    pub session: SessionId,
    pub title: String,
    /// Absolute path of the workspace.
    pub project: String,
    /// Agents, to which nodes refer by index.
    pub agents: Vec<String>,
    pub models: Vec<String>,
    /// In the order in which they were added: a parent stands before its children.
    pub nodes: Vec<TreeNode>,
    pub heads: Vec<TreeHead>,
    pub tags: Vec<TreeTag>,
    /// Sessions of child agents, by the node that started them.
    pub spawned: Vec<TreeSpawned>,
}

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeNode {
    pub id: EntryId,
    /// Its number among all entries of the store, ascending.
    pub seq: i64,
    /// Index of its parent in [`SessionTree::nodes`]; `None` for a root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
    pub kind: NodeKind,
    pub time: Time,
    /// Index in [`SessionTree::agents`].
    pub agent: u16,
    /// Index in [`SessionTree::models`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<u16>,
    /// Tokens that were read and written.
    pub tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    Prefix,
    User,
    Assistant,
    ToolResult,
    /// A call that the call before it made: of a script.
    InnerCall,
    Compaction,
    BranchSummary,
    Checkpoint,
    /// Notes, and kinds of later versions.
    Note,
}

impl NodeKind {
    /// The kind for an [`crate::EntryBody::kind`].
    pub fn of(kind: &str) -> Self {
        match kind {
            "prefix" => Self::Prefix,
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "tool_result" => Self::ToolResult,
            "inner_call" => Self::InnerCall,
            "compaction" => Self::Compaction,
            "branch_summary" => Self::BranchSummary,
            "checkpoint" => Self::Checkpoint,
            _ => Self::Note,
        }
    }
}

/// A branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeHead {
    /// Never changes.
    pub name: String,
    /// The name that the person gave it; empty: none.
    pub label: String,
    /// Index of its last entry; `None`: the branch has no entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    pub archived: bool,
    /// The branch that the session continues on.
    pub current: bool,
    /// Process id of a living process that has it open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_in: Option<u32>,
}

/// A name for one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeTag {
    pub name: String,
    pub node: u32,
}

/// The session of a child agent, attached to an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeSpawned {
    pub session: SessionId,
    pub node: u32,
    pub title: String,
    /// Its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The agent's last state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<AgentState>,
    /// Time of its last entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    pub entries: u64,
    /// Tokens that were read and written.
    #[serde(default, skip_serializing_if = "crate::base::usage::zero")]
    pub tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Files that its calls changed.
    #[serde(default, skip_serializing_if = "crate::base::usage::zero")]
    pub files: u32,
}

/// Facts about entries that stand only in payloads and in the log of file states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeMarks {
    /// Entry numbers with the number of files changed, ascending; the message that begins a turn stands for all of it.
    pub files: Vec<(i64, u32)>,
    /// Numbers of tool results that are not `ok`, ascending.
    pub failed: Vec<i64>,
    /// Numbers of messages that begin no turn, ascending: those that steer, of Tiller, and shell lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<i64>,
}

/// The first line of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeLine {
    pub entry: EntryId,
    /// Not cleaned: may contain anything but line breaks.
    pub text: String,
    /// For a user entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// For a tool result: the call that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<TreeCall>,
}

/// A tool call, as far as a row shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeCall {
    pub name: String,
    /// With long texts shortened.
    pub arguments: serde_json::Value,
}

/// Entries that contain the words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeFound {
    /// By session: numbers of its entries, ascending.
    pub sessions: Vec<(SessionId, Vec<i64>)>,
    /// Whether there are older hits beyond these.
    pub more: bool,
    /// Entries that are not indexed yet, and were not searched.
    pub behind: u64,
}

/// The text of an entry, and the files that it changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryPreview {
    pub entry: EntryId,
    /// Shortened when too long.
    pub text: String,
    pub cut: bool,
    /// Changed files: for a tool result those of the call; for the first message of a turn those of the turn; else
    /// those between the start of the turn and the entry.
    pub files: Vec<RestoreFile>,
    /// More files than are listed.
    pub more: usize,
    /// Why there is no comparison, or other limits that the person should know.
    pub notes: Vec<String>,
}
