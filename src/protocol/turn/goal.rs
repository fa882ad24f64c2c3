//! A goal: the agent goes on by itself, turn after turn, until a check holds or a limit is reached.

use serde::{Deserialize, Serialize};

use crate::base::usage::Cost;

/// What the person wants, and how far it may go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    pub text: String,
    pub check: GoalCheck,
    /// Turns at most; 1 at least.
    pub turns: u32,
    /// What it may cost from now on. `None`: the session's own budget alone holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

/// Who says that it is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum GoalCheck {
    /// A command of the person's, run in the workspace: it is reached when it ends with 0.
    Command { line: String },
    /// The fast tier reads the conversation and judges.
    Judge,
}

/// Where it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GoalView {
    pub goal: Goal,
    pub state: GoalState,
    /// Turns that it took so far.
    pub done: u32,
    /// What it cost so far; `None`: not known.
    #[serde(default)]
    pub spent: Option<Cost>,
    /// What the last check said, or why it stopped; a line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last: String,
}

/// What is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalState {
    /// A turn runs, or is about to.
    Working,
    /// The check runs.
    Checking,
    /// It waits for the person: they stopped it, a turn failed, a limit was reached, or Tiller was restarted.
    Stopped,
    Reached,
}

impl GoalState {
    /// The engine goes on by itself.
    pub fn active(self) -> bool {
        matches!(self, Self::Working | Self::Checking)
    }
}
