//! Workflows: steps that wait for each other, as a client shows them.

use serde::{Deserialize, Serialize};

use crate::ids::AgentId;

/// How a step stands, or all of a workflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// It waits for other steps.
    #[default]
    Waiting,
    Running,
    Done,
    Failed,
    /// Left out, because a step that it needs was not done.
    Skipped,
    Cancelled,
    /// It was at work when Tiller ended.
    Interrupted,
}

impl StepState {
    /// For people, models and scripts.
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }
}

/// A workflow of this session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkflowView {
    /// `w1`, and so on, in the order in which they were started.
    pub id: String,
    pub name: String,
    pub state: StepState,
    /// In the order of its definition.
    pub steps: Vec<StepView>,
}

impl WorkflowView {
    /// Steps that are done.
    pub fn done(&self) -> usize {
        self.steps.iter().filter(|s| s.state == StepState::Done).count()
    }
}

/// A step of a workflow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepView {
    pub id: String,
    /// Steps that must be done before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    pub state: StepState,
    /// Its role or program, in a word; empty: none was named.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The agent that works at it, or did last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// What came out, or why nothing did.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub said: String,
}
