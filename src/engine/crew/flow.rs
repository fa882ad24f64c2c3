//! A workflow as the main agent's task keeps it: each step's state, its agent, what it brought.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tiller_protocol::event::StateEvent;
use tiller_protocol::workflow::{StepState, StepView, WorkflowView};
use tiller_protocol::{AgentId, EventBody, SessionId, Time};
use tiller_store::{WorkflowRow, WorkflowStep};
use tiller_tool::crew::{CrewReply, Report, Workflow};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::core::Core;
use crate::saves::{After, Then};

/// Characters of what a step brought that its row shows.
const SAID: usize = 500;

/// Beside what it is made of, who asked for it is kept under this name.
const BY: &str = "by";

/// One workflow.
pub(crate) struct Flow {
    pub(crate) id: String,
    /// Who asked for it: its steps are that one's agents, and have no more than it, whoever lets it go on.
    pub(crate) by: AgentId,
    pub(crate) made_of: Workflow,
    pub(crate) state: StepState,
    pub(crate) created: Time,
    pub(crate) steps: BTreeMap<String, FlowStep>,
    /// While it runs: stops it.
    pub(crate) stop: Option<CancellationToken>,
    /// The call that waits for it.
    pub(crate) reply: Option<oneshot::Sender<Result<CrewReply, String>>>,
}

/// One step of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FlowStep {
    pub(crate) state: StepState,
    pub(crate) agent: Option<AgentId>,
    pub(crate) report: Option<Report>,
}

impl Flow {
    /// Its name, for people.
    pub(crate) fn name(&self) -> String {
        if self.made_of.name.is_empty() { self.id.clone() } else { self.made_of.name.clone() }
    }

    /// Its row.
    pub(crate) fn view(&self) -> WorkflowView {
        let step = |task: &tiller_tool::crew::Task| {
            let id = task.id.clone().unwrap_or_default();
            let own = self.steps.get(&id).cloned().unwrap_or_default();
            let by = task.brief.cli.clone().or_else(|| task.brief.agent.clone());
            let said = own.report.as_ref().map(|r| crate::job::cut(&super::member::words(r), SAID));
            StepView {
                id,
                needs: task.depends_on.clone(),
                state: own.state,
                by: by.unwrap_or_default(),
                agent: own.agent,
                said: said.unwrap_or_default(),
            }
        };
        let steps = self.made_of.steps.iter().map(step).collect();
        WorkflowView { id: self.id.clone(), name: self.name(), state: self.state, steps }
    }

    /// As it is kept, without its steps.
    fn kept(&self, root: SessionId) -> WorkflowRow {
        let mut definition = serde_json::to_value(&self.made_of).unwrap_or_default();
        definition[BY] = self.by.0.as_str().into();
        WorkflowRow {
            root,
            id: self.id.clone(),
            definition,
            state: self.state,
            created: self.created,
            steps: BTreeMap::new(),
        }
    }

    /// What is not to be run again.
    pub(crate) fn brought(&self) -> BTreeMap<String, Report> {
        let done = self.steps.iter().filter(|(_, s)| s.state == StepState::Done);
        done.filter_map(|(id, s)| Some((id.clone(), s.report.clone()?))).collect()
    }

    /// From the store. What was at work when Tiller ended is interrupted.
    pub(crate) fn from_row(mut row: WorkflowRow) -> Self {
        let by = row.definition.as_object_mut().and_then(|d| d.remove(BY));
        let by = by.and_then(|by| by.as_str().map(|by| AgentId(by.to_owned())));
        let rest = |state| if state == StepState::Running { StepState::Interrupted } else { state };
        let step = |s: WorkflowStep| FlowStep {
            state: rest(s.state),
            agent: s.agent,
            report: s.report.and_then(|r| serde_json::from_value(r).ok()),
        };
        Self {
            id: row.id,
            by: by.unwrap_or_else(AgentId::main),
            made_of: serde_json::from_value(row.definition).unwrap_or_default(),
            state: rest(row.state),
            created: row.created,
            steps: row.steps.into_iter().map(|(id, s)| (id, step(s))).collect(),
            stop: None,
            reply: None,
        }
    }
}

/// How a step stands that ended so.
pub(crate) fn state_of(report: &Report) -> StepState {
    match report.status.as_str() {
        "done" => StepState::Done,
        "skipped" => StepState::Skipped,
        "cancelled" => StepState::Cancelled,
        "interrupted" => StepState::Interrupted,
        _ => StepState::Failed,
    }
}

impl Core {
    /// Rows of all workflows, for a snapshot.
    pub(crate) fn flow_rows(&self) -> Vec<WorkflowView> {
        self.crew.flows.values().map(Flow::view).collect()
    }

    pub(crate) fn show_flow(&self, no: u32) {
        if let Some(flow) = self.crew.flows.get(&no) {
            self.bus
                .publish(&self.place(), EventBody::State(StateEvent::WorkflowChanged { view: flow.view() }));
        }
    }

    /// Writes a workflow down as it is now, and shows it.
    pub(crate) fn keep_flow(&mut self, no: u32) {
        self.show_flow(no);
        let Some(flow) = self.crew.flows.get(&no).filter(|_| !self.s.read_only) else { return };
        let ticket = self.w.store.put_workflow(flow.kept(self.s.id));
        self.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
    }

    /// Changes a step, writes it down and shows it.
    pub(crate) fn change_step(&mut self, no: u32, step: &str, change: impl FnOnce(&mut FlowStep)) {
        let Some(flow) = self.crew.flows.get_mut(&no) else { return };
        let own = flow.steps.entry(step.to_owned()).or_default();
        change(own);
        let report = own.report.as_ref().and_then(|r| serde_json::to_value(r).ok());
        let row = WorkflowStep { state: own.state, agent: own.agent.clone(), report };
        let id = flow.id.clone();
        if !self.s.read_only {
            let ticket = self.w.store.put_step(self.s.id, id, step.to_owned(), row);
            self.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
        }
        self.show_flow(no);
    }

    /// An agent was taken on for a step: `w1/build`.
    pub(crate) fn step_taken(&mut self, id: &AgentId) {
        let step = self.crew.members.get(id).and_then(|m| m.order.brief.step.clone());
        let Some((flow, step)) = step.as_deref().and_then(|s| s.split_once('/')) else { return };
        if let Some(no) = number(flow) {
            self.change_step(no, step, |s| s.agent = Some(id.clone()));
        }
    }
}

/// `w1` is 1.
pub(crate) fn number(id: &str) -> Option<u32> {
    id.trim().strip_prefix('w')?.parse().ok()
}
