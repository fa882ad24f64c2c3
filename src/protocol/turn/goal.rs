//! A goal: the agent works turn after turn until a check passes or a limit is reached.

use serde::{Deserialize, Serialize};

use crate::base::usage::Cost;

/// The goal and its limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    pub text: String,
    pub check: GoalCheck,
    /// Maximum number of turns; at least 1.
    pub turns: u32,
    /// Budget in dollars from now on. `None`: only the session's budget applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

/// How the goal is checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum GoalCheck {
    /// A command of the person's, run in the workspace: the goal is reached when it exits with 0.
    Command { line: String },
    /// The fast model tier reads the conversation and decides.
    Judge,
}

/// State of a goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GoalView {
    pub goal: Goal,
    pub state: GoalState,
    /// Turns taken so far.
    pub done: u32,
    /// Cost so far; `None`: not known.
    #[serde(default)]
    pub spent: Option<Cost>,
    /// The output of the last check, or why it stopped; one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last: String,
}

/// Phase of a goal.
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
    /// Whether the engine continues by itself.
    pub fn active(self) -> bool {
        matches!(self, Self::Working | Self::Checking)
    }
}
