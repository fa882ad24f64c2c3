//! Two branches (or any two entries) side by side: messages, cost, changed files, and the output of a command on each.

use crate::base::word::text_form;
use serde::{Deserialize, Serialize};

use crate::base::ids::EntryId;
use crate::base::usage::{Cost, Usage};
use crate::session::restore::{RestoreFile, StepFile};
use crate::turn::tool::ToolOutcome;

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The end of a branch, by its head.
    Branch(String),
    Entry(EntryId),
}

/// Two sides, compared from left to right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    pub left: Side,
    pub right: Side,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The last common entry; `None`: there is none.
    pub base: Option<EntryId>,
    /// Its first line.
    pub base_line: String,
    pub left: ComparedSide,
    pub right: ComparedSide,
    /// What differs from left to right: `added` is only at the right. No conflicts.
    pub files: Vec<RestoreFile>,
    /// More files than are listed.
    pub more: usize,
    /// Limits of the comparison that the person should know.
    pub notes: Vec<String>,
}

/// One side since the last common entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparedSide {
    /// Its name for the person.
    pub name: String,
    pub entry: Option<EntryId>,
    /// Number of entries since.
    pub entries: u64,
    /// Messages, oldest first; only the last ones when there are many.
    pub said: Vec<SaidLine>,
    /// Includes the agents that were started there.
    pub usage: Usage,
    /// `None`: no price was known.
    pub cost: Option<Cost>,
    /// Number of those agents.
    #[serde(default, skip_serializing_if = "crate::base::usage::zero")]
    pub agents: u32,
    /// What it changed since.
    pub files: Vec<StepFile>,
}

/// What an entry in few words comes from. It is sent as text: `you`, `agent`, or the name of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Speaker {
    You,
    Agent,
    Summary,
    Checkpoint,
    Note,
    Tool(String),
}

impl std::fmt::Display for Speaker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::You => "you",
            Self::Agent => "agent",
            Self::Summary => "summary",
            Self::Checkpoint => "checkpoint",
            Self::Note => "note",
            Self::Tool(name) => name,
        })
    }
}

impl From<&str> for Speaker {
    /// From the form in which it is sent.
    fn from(text: &str) -> Self {
        match text {
            "you" => Self::You,
            "agent" => Self::Agent,
            "summary" => Self::Summary,
            "checkpoint" => Self::Checkpoint,
            "note" => Self::Note,
            tool => Self::Tool(tool.to_owned()),
        }
    }
}

text_form!(Speaker);

/// An entry, shortened to a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaidLine {
    pub entry: EntryId,
    pub who: Speaker,
    pub text: String,
}

/// What to take of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakePart {
    pub path: String,
    /// Only this hunk of the difference from left to right, unified, with a file header; `None`: the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hunk: Option<String>,
}

/// A file that was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakeConflict {
    pub path: String,
    pub why: String,
    /// The merge with its marks, where both changed the same lines.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub marked: String,
}

/// The result of a command on one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideRun {
    pub name: String,
    pub outcome: ToolOutcome,
    /// `None`: it was ended by a signal.
    pub exit: Option<i32>,
    /// Run time in seconds.
    pub seconds: f64,
    /// The end of its output.
    pub tail: String,
}
