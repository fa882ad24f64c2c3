//! Two branches (or any two entries) side by side: what was said, what it cost, which files differ, and what a
//! command gives on each.

use serde::{Deserialize, Serialize};

use crate::base::ids::EntryId;
use crate::base::usage::{Cost, Usage};
use crate::session::restore::{RestoreFile, StepFile};
use crate::turn::tool::ToolOutcome;

/// One of the two.
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

/// What came out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The last entry of both; `None`: they have none.
    pub base: Option<EntryId>,
    /// Its first line.
    pub base_line: String,
    pub left: ComparedSide,
    pub right: ComparedSide,
    /// What differs from left to right: `added` is only at the right. No conflicts.
    pub files: Vec<RestoreFile>,
    /// More files than are listed.
    pub more: usize,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// One side since the last entry of both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparedSide {
    /// What it is called.
    pub name: String,
    pub entry: Option<EntryId>,
    /// Entries since.
    pub entries: u64,
    /// What was said, oldest first; only the last of many.
    pub said: Vec<SaidLine>,
    /// With that of the agents that it started.
    pub usage: Usage,
    /// `None`: no price was known.
    pub cost: Option<Cost>,
    /// How many those were.
    #[serde(default, skip_serializing_if = "crate::base::usage::zero")]
    pub agents: u32,
    /// What it changed since.
    pub files: Vec<StepFile>,
}

/// An entry in few words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaidLine {
    pub entry: EntryId,
    /// `you`, `agent`, or the name of a tool.
    pub who: String,
    pub text: String,
}

/// What is taken of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakePart {
    pub path: String,
    /// Only this hunk of the difference from left to right, unified, with a file header; `None`: the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hunk: Option<String>,
}

/// A file that was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotTaken {
    pub path: String,
    pub why: String,
    /// The merge with its marks, where both changed the same lines.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub marked: String,
}

/// What a command gave on one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideRun {
    pub name: String,
    pub outcome: ToolOutcome,
    /// `None`: it was ended.
    pub exit: Option<i32>,
    /// Seconds.
    pub seconds: f64,
    /// The end of what it said.
    pub tail: String,
}
