//! Workflows: steps that wait for each other, as a client shows them.

use serde::{Deserialize, Serialize};

use crate::base::ids::AgentId;

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
    /// `w1`, and so on, in the order in which they were started.
    pub id: String,
    pub name: String,
    pub state: StepState,
    /// Its agents rest, and no step begins, until the person lets it go on.
    #[serde(default, skip_serializing_if = "is_false")]
    pub paused: bool,
    /// In the order of its definition.
    pub steps: Vec<StepView>,
}

impl WorkflowView {
    /// Number and name; one that was given no name has the number alone.
    pub fn called(&self) -> String {
        if self.name == self.id || self.name.is_empty() {
            return self.id.clone();
        }
        format!("{} {}", self.id, self.name)
    }

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
    /// What is to be done, cut short.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub goal: String,
    /// The agent that works at it, or did last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Those that look at what it brought, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reviewers: Vec<AgentId>,
    /// Rounds of its review that were begun, and how many there may be; 0: nobody looks at it.
    #[serde(skip_serializing_if = "is_zero")]
    pub round: u32,
    #[serde(skip_serializing_if = "is_zero")]
    pub rounds: u32,
    /// What came out, or why nothing did.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub said: String,
}

/// A workflow that can be started by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkflowFile {
    pub name: String,
    /// Where it stands.
    pub path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The ids of its steps, in the order of the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// Why it cannot be started, with the place in the file; empty: it can.
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
