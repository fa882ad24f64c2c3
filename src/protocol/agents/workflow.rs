//! Workflows: steps with dependencies, as a client shows them.

use serde::{Deserialize, Serialize};

use crate::base::ids::AgentId;

/// State of a step, or of a whole workflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// It waits for other steps.
    #[default]
    Waiting,
    Running,
    Done,
    Failed,
    /// Not run, because a step that it needs did not succeed.
    Skipped,
    Cancelled,
    /// It was running when Tiller ended.
    Interrupted,
}

impl StepState {
    /// The word for people, models and scripts.
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

    /// For a sentence about it: `is done`, `failed`.
    pub fn predicate(self) -> String {
        match self {
            Self::Failed => "failed".to_owned(),
            state => format!("is {}", state.word()),
        }
    }
}

/// A workflow of this session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkflowView {
    /// `w1`, `w2`, ..., in the order of their start.
    pub id: String,
    pub name: String,
    pub state: StepState,
    /// Its agents are paused, and no step starts until the person continues it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub paused: bool,
    /// In the order of the definition.
    pub steps: Vec<StepView>,
}

impl WorkflowView {
    /// Number and name; the number alone when it has no name.
    pub fn called(&self) -> String {
        if self.name == self.id || self.name.is_empty() {
            return self.id.clone();
        }
        format!("{} {}", self.id, self.name)
    }

    /// Number of finished steps.
    pub fn done(&self) -> usize {
        self.steps.iter().filter(|s| s.state == StepState::Done).count()
    }
}

/// A step of a workflow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepView {
    pub id: String,
    /// Ids of the steps that must finish before this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    pub state: StepState,
    /// Its role or program; empty: none was named.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The task of the step, shortened.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub goal: String,
    /// The agent that works on it, or did so last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The agents that reviewed its result, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reviewers: Vec<AgentId>,
    /// Review rounds that were started, and how many are allowed; 0: no review.
    #[serde(skip_serializing_if = "is_zero")]
    pub round: u32,
    #[serde(skip_serializing_if = "is_zero")]
    pub rounds: u32,
    /// The result, or why there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub said: String,
}

/// A workflow that can be started by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkflowFile {
    pub name: String,
    /// Path of its file.
    pub path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The ids of its steps, in the order of the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// Why it cannot be started, with the line of the file; empty when it can.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub wrong: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(b: &bool) -> bool {
    !*b
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}
