//! Runs delegated work: the tasks of a call, a goal that is split into parts, the steps of a workflow.
//!
//! | file | contents |
//! | --- | --- |
//! | `schedule` | tasks start when those that they depend on are done |
//! | `attempt` | one task: its agent, retries, the check of its answer |
//! | `answer` | answers as JSON that must match a schema |
//! | `review` | a critic's verdict; a reviewer that sends work back |
//! | `split` | a goal is split into parts, and their results are combined |

mod answer;
mod attempt;
mod review;
mod schedule;
mod split;

use async_trait::async_trait;
use tiller_tool::crew::{Goal, Report, SharedCrew, Task, Workflow};

/// The implementation of [`tiller_tool::crew::Delegation`]. It has no state: what is remembered of a run is with the
/// [`CrewPort`](tiller_tool::crew::CrewPort) of the call or the workflow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delegation;

#[async_trait]
impl tiller_tool::crew::Delegation for Delegation {
    async fn tasks(&self, tasks: Vec<Task>, crew: SharedCrew) -> Vec<Report> {
        schedule::run_all(tasks, &crew).await
    }

    async fn goal(&self, goal: Goal, crew: SharedCrew) -> Result<Vec<Report>, String> {
        split::run(&goal, &crew).await
    }
}

impl Delegation {
    /// Runs the steps of a workflow; the reports are in the order of the steps.
    pub(crate) async fn workflow(&self, workflow: Workflow, crew: SharedCrew) -> Vec<Report> {
        let with_label = |mut step: Task| {
            if step.brief.label.is_none() {
                step.brief.label.clone_from(&step.id);
            }
            step
        };
        schedule::run_all(workflow.steps.into_iter().map(with_label).collect(), &crew).await
    }
}

#[cfg(test)]
mod tests;
