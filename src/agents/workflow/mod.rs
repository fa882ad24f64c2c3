//! Workflows as the main agent's loop stores and shows them.

mod control;
mod port;
pub(crate) mod run;
pub(crate) mod state;

use tiller_engine::EventScope;
use tiller_engine::crew::{HostEvents, HostSession, HostStorage};
use tiller_protocol::event::StateEvent;
use tiller_protocol::workflow::WorkflowView;
use tiller_protocol::{AgentId, EventBody};
use tiller_store::WorkflowStep;

use crate::driver::WorkflowDriver;
use crate::roster::Roster;
use crate::workflow::state::{StepRecord, StepRef, number};

impl Roster {
    /// Rows of all workflows, for a snapshot.
    pub(crate) fn workflow_rows(&self) -> Vec<WorkflowView> {
        self.flows.values().map(|f| f.view(&self.members)).collect()
    }
}

impl WorkflowDriver<'_> {
    pub(crate) fn show(&mut self, no: u32) {
        let event = self.changed_event(no);
        event.into_iter().for_each(|(scope, event)| self.host.show(scope, event));
    }

    pub(crate) fn changed_event(&self, no: u32) -> Option<(EventScope, EventBody)> {
        let view = self.crew.flows.get(&no)?.view(&self.crew.members);
        Some((self.host.scope(), EventBody::State(StateEvent::WorkflowChanged { view })))
    }

    /// Stores a workflow, and publishes its row when that is done.
    pub(crate) fn store(&mut self, no: u32) {
        let root = self.root();
        let Some(flow) = self.crew.flows.get(&no).filter(|_| !self.host.read_only()) else {
            return self.show(no);
        };
        let ticket = self.host.store().workflows().put(flow.kept(root));
        let events = self.changed_event(no).into_iter().collect();
        self.host.save(ticket, events);
    }

    /// Changes a step and stores it, and publishes the workflow's row when that is done.
    pub(crate) fn change_step(&mut self, no: u32, step: &str, change: impl FnOnce(&mut StepRecord)) {
        let Some(flow) = self.crew.flows.get_mut(&no) else { return };
        let own = flow.steps.entry(step.to_owned()).or_default();
        change(own);
        let report = own.report.as_ref().and_then(|r| serde_json::to_value(r).ok());
        let row = WorkflowStep { state: own.state, agent: own.agent.clone(), report };
        let id = flow.id.clone();
        if self.host.read_only() {
            return self.show(no);
        }
        let ticket = self.host.store().workflows().put_step(self.root(), id, step.to_owned(), row);
        let events = self.changed_event(no).into_iter().collect();
        self.host.save(ticket, events);
    }

    /// An agent was added for a step.
    pub(crate) fn agent_started(&mut self, id: &AgentId) {
        let step = self.crew.members.get(id).and_then(|m| m.order.brief.step.clone());
        let Some(of) = step.as_deref().and_then(StepRef::parse) else { return };
        match (number(of.flow), of.part) {
            (Some(no), None) => self.change_step(no, of.step, |s| s.agent = Some(id.clone())),
            (Some(no), Some(_)) => self.show(no),
            (None, _) => {}
        }
    }
}
