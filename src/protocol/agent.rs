//! One row of the agents panel. This issue knows the main agent and its running tools; children follow.

use serde::{Deserialize, Serialize};

use crate::ids::AgentId;
use crate::usage::{Cost, Usage};

/// What an agent is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    #[default]
    Idle,
    Queued,
    Running,
    /// Waits for a person's answer.
    Waiting,
    Paused,
    Done,
    Failed,
    Cancelled,
    Interrupted,
}

/// An agent as the panel shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentView {
    pub id: AgentId,
    pub parent: Option<AgentId>,
    pub label: String,
    pub state: AgentState,
    /// What it does now, for instance `edit src/x.rs`; empty when nothing.
    #[serde(default)]
    pub act: String,
    pub model: String,
    #[serde(default)]
    pub usage: Usage,
    /// `None`: not known.
    #[serde(default)]
    pub cost: Option<Cost>,
    /// Tokens of the last request, and the model's window when known.
    #[serde(default)]
    pub context: u64,
    #[serde(default)]
    pub window: Option<u64>,
    /// When the current turn began; `None` while idle.
    #[serde(default)]
    pub since: Option<crate::clock::Time>,
}
