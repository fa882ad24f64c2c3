//! The groups of the list: what needs the person first, what has ended last.

use tiller_protocol::{AgentState, AgentView, StepState, WorkflowView};

use super::totals::{ended, waits};
use crate::model::Model;

/// A group of the list, in the order of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AgentGroup {
    NeedsYou,
    Running,
    Waiting,
    Finished,
}

impl AgentGroup {
    pub(super) const ALL: [Self; 4] = [Self::NeedsYou, Self::Running, Self::Waiting, Self::Finished];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::NeedsYou => "Needs you",
            Self::Running => "Running",
            Self::Waiting => "Waiting",
            Self::Finished => "Finished",
        }
    }

    /// Of an agent. An interrupted agent waits to be continued.
    pub(super) fn of(model: &Model, a: &AgentView) -> Self {
        match a.state {
            _ if waits(model, a) => Self::NeedsYou,
            AgentState::Running => Self::Running,
            AgentState::Interrupted => Self::Waiting,
            state if ended(state) => Self::Finished,
            _ => Self::Waiting,
        }
    }

    /// Of a workflow's own row; the agents of its steps stand with it, except those that need the person.
    pub(super) fn of_flow(flow: &WorkflowView) -> Self {
        match (flow.state, flow.paused) {
            (StepState::Waiting | StepState::Interrupted, _) | (StepState::Running, true) => Self::Waiting,
            (StepState::Running, false) => Self::Running,
            (StepState::Done | StepState::Failed | StepState::Skipped | StepState::Cancelled, _) => {
                Self::Finished
            }
        }
    }
}
