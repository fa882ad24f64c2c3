//! A workflow as the main agent's task keeps it: each step's state, its agent, what it brought.

use tiller_protocol::event::StateEvent;
use tiller_protocol::workflow::WorkflowView;
use tiller_protocol::{AgentId, EventBody};
use tiller_store::WorkflowStep;

use crate::bus::Place;
use crate::core::Core;
use crate::core::saves::{After, Then};
use crate::crew::flow_state::{FlowStep, Step, number};

impl Core {
    /// Rows of all workflows, for a snapshot.
    pub(crate) fn flow_rows(&self) -> Vec<WorkflowView> {
        self.crew.flows.values().map(|f| f.view(&self.crew.members)).collect()
    }

    pub(crate) fn show_flow(&mut self, no: u32) {
        let event = self.flow_event(no);
        event.into_iter().for_each(|(place, event)| self.show(place, event));
    }

    fn flow_event(&self, no: u32) -> Option<(Place, EventBody)> {
        let view = self.crew.flows.get(&no)?.view(&self.crew.members);
        Some((self.place(), EventBody::State(StateEvent::WorkflowChanged { view })))
    }

    /// Writes a workflow down as it is now, and shows it when that is on disk.
    pub(crate) fn keep_flow(&mut self, no: u32) {
        let Some(flow) = self.crew.flows.get(&no).filter(|_| !self.session.read_only) else {
            return self.show_flow(no);
        };
        let ticket = self.services.store.workflows().put(flow.kept(self.session.id));
        let events = self.flow_event(no).into_iter().collect();
        self.saves.push(ticket, After { events, then: Then::Nothing });
    }

    /// Changes a step, writes it down and shows it when that is on disk.
    pub(crate) fn change_step(&mut self, no: u32, step: &str, change: impl FnOnce(&mut FlowStep)) {
        let Some(flow) = self.crew.flows.get_mut(&no) else { return };
        let own = flow.steps.entry(step.to_owned()).or_default();
        change(own);
        let report = own.report.as_ref().and_then(|r| serde_json::to_value(r).ok());
        let row = WorkflowStep { state: own.state, agent: own.agent.clone(), report };
        let id = flow.id.clone();
        if self.session.read_only {
            return self.show_flow(no);
        }
        let ticket = self.services.store.workflows().put_step(self.session.id, id, step.to_owned(), row);
        let events = self.flow_event(no).into_iter().collect();
        self.saves.push(ticket, After { events, then: Then::Nothing });
    }

    /// An agent was taken on for a step.
    pub(crate) fn step_taken(&mut self, id: &AgentId) {
        let step = self.crew.members.get(id).and_then(|m| m.order.brief.step.clone());
        let Some(of) = step.as_deref().and_then(Step::of) else { return };
        match (number(of.flow), of.part) {
            (Some(no), None) => self.change_step(no, of.step, |s| s.agent = Some(id.clone())),
            (Some(no), Some(_)) => self.show_flow(no),
            (None, _) => {}
        }
    }
}
