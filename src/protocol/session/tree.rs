//! A session as a tree that can be browsed: its nodes without their words, and what a browser asks for besides.

use serde::{Deserialize, Serialize};

use crate::agents::agent::AgentState;
use crate::base::clock::Time;
use crate::base::ids::{AgentId, EntryId, SessionId};
use crate::base::usage::Cost;
use crate::session::message::Origin;
use crate::session::restore::RestoreFile;

/// What a browser of trees asks. Each is answered by the [`TreeReply`] of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum TreeQuery {
    /// All nodes; `None`: of the open session.
    Nodes { session: Option<SessionId> },
    /// How many files each node changed, and which calls failed or replies were cut.
    Marks { session: SessionId },
    /// The first lines of these entries, of any session.
    Lines { entries: Vec<EntryId> },
    /// Entries that hold words, of the sessions of this project or of all; `text` is as in a search.
    Find {
        text: String,
        #[serde(default)]
        everywhere: bool,
    },
    /// What an entry says, and what it changed.
    Preview { entry: EntryId },
}

/// The answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum TreeReply {
    Nodes { tree: Box<SessionTree> },
    Marks { session: SessionId, marks: TreeMarks },
    Lines { lines: Vec<TreeLine> },
    Find { text: String, everywhere: bool, found: TreeFound },
    Preview { preview: Box<EntryPreview> },
}

/// A session, without its words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionTree {
    pub session: SessionId,
    pub title: String,
    /// Absolute path of the workspace.
    pub project: String,
    /// Names that nodes refer to by their place here.
    pub agents: Vec<String>,
    pub models: Vec<String>,
    /// In the order in which they were added: a parent stands before its children.
    pub nodes: Vec<TreeNode>,
    pub heads: Vec<TreeHead>,
    pub tags: Vec<TreeTag>,
    /// Sessions of subagents, by the node that they hang off.
    pub spawned: Vec<TreeSpawned>,
}

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeNode {
    pub id: EntryId,
    /// Its number among all entries; grows with each that is added.
    pub seq: i64,
    /// Place of its parent in [`SessionTree::nodes`]; `None` for a root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
    pub kind: NodeKind,
    pub time: Time,
    /// Place in [`SessionTree::agents`].
    pub agent: u16,
    /// Place in [`SessionTree::models`].
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
    Compaction,
    BranchSummary,
    Checkpoint,
    /// Notes, and kinds of later versions.
    Note,
}

impl NodeKind {
    /// By [`crate::EntryBody::kind`].
    pub fn of(kind: &str) -> Self {
        match kind {
            "prefix" => Self::Prefix,
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "tool_result" => Self::ToolResult,
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
    /// What the person calls it; empty: nothing.
    pub label: String,
    /// Place of its last entry; `None`: nothing was said on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    pub archived: bool,
    /// The one that the session goes on with.
    pub current: bool,
    /// A living process that has it open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_in: Option<u32>,
}

/// A name for one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeTag {
    pub name: String,
    pub node: u32,
}

/// A session that hangs off an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeSpawned {
    pub session: SessionId,
    pub node: u32,
    pub title: String,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// How the agent stood last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<AgentState>,
    /// When something was last said in it.
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

/// What stands only in payloads and in the log of file states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeMarks {
    /// Entry number and how many files it changed; a user message stands for its whole turn. By number.
    pub files: Vec<(i64, u32)>,
    /// Numbers of tool results that are not `ok`, growing.
    pub failed: Vec<i64>,
}

/// The first line of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeLine {
    pub entry: EntryId,
    /// Not cleaned: it may hold anything but line breaks.
    pub text: String,
    /// Of a user entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Of a tool result: the call that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<TreeCall>,
}

/// A call of a tool, as far as a row shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeCall {
    pub name: String,
    /// Long texts in it are cut.
    pub arguments: serde_json::Value,
}

/// Entries that hold the words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeFound {
    /// By session: the numbers of its entries, growing.
    pub sessions: Vec<(SessionId, Vec<i64>)>,
    /// There are more, which are older.
    pub more: bool,
    /// Entries that the index does not know yet: they were not looked at.
    pub behind: u64,
}

/// What an entry says, and what it changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryPreview {
    pub entry: EntryId,
    /// Its words, cut when there are too many.
    pub text: String,
    pub cut: bool,
    /// What differs in the workspace between the start of its turn and it; for the message that begins a turn,
    /// between its start and its end; for a tool result, what that call changed.
    pub files: Vec<RestoreFile>,
    /// More files than are listed.
    pub more: usize,
    /// What a person should know: why there is no comparison.
    pub notes: Vec<String>,
}
