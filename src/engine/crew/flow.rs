//! A workflow as the main agent's task keeps it: each step's state, its agent, what it brought.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use tiller_protocol::event::StateEvent;
use tiller_protocol::workflow::{StepState, StepView, WorkflowView};
use tiller_protocol::{AgentId, EntryId, EventBody, SessionId, Time};
use tiller_store::{WorkflowRow, WorkflowStep};
use tiller_tool::crew::{CrewAsk, CrewReply, Report, Workflow};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::member::Member;
use crate::bus::Place;
use crate::core::Core;
use crate::core::saves::{After, Then};

/// Characters of what a step is to do, or brought, that its row shows.
const SAID: usize = 500;

/// To the requester.
pub(crate) type Reply = oneshot::Sender<Result<CrewReply, String>>;

/// Steps that the user abandoned, for the task that runs them.
pub(crate) type GivenUp = Arc<Mutex<BTreeSet<String>>>;
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
    pub(crate) reply: Option<Reply>,
    /// The main agent was told of its end.
    pub(crate) announced: bool,
    /// It rests: what its steps want to begin meanwhile.
    pub(crate) paused: Option<Vec<Held>>,
    pub(crate) given_up: GivenUp,
}

/// What waits until a workflow goes on.
pub(crate) enum Held {
    Begins { step: String, reply: oneshot::Sender<Option<String>> },
    Asked { by: AgentId, call: String, entry: Option<EntryId>, ask: Box<CrewAsk>, reply: Reply },
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

    /// Its row. Who looks at what a step brought is known by the tasks of the crew.
    pub(crate) fn view(&self, crew: &BTreeMap<AgentId, Member>) -> WorkflowView {
        let step = |task: &tiller_tool::crew::Task| {
            let id = task.id.clone().unwrap_or_default();
            let own = self.steps.get(&id).cloned().unwrap_or_default();
            let (reviewers, round) = self.reviewers(&id, own.agent.as_ref(), crew);
            let by = task.brief.cli.clone().or_else(|| task.brief.agent.clone());
            let said = own.report.as_ref().map(|r| crate::job::cut(&super::member::words(r), SAID));
            StepView {
                id,
                needs: task.depends_on.clone(),
                state: own.state,
                by: by.unwrap_or_default(),
                goal: crate::job::cut(task.brief.goal.trim(), SAID),
                agent: own.agent,
                reviewers,
                round,
                rounds: task.review.as_ref().map_or(0, |r| r.rounds),
                said: said.unwrap_or_default(),
            }
        };
        let steps = self.made_of.steps.iter().map(step).collect();
        let paused = self.paused.is_some();
        WorkflowView { id: self.id.clone(), name: self.name(), state: self.state, paused, steps }
    }

    /// Those that look at what this agent brought for a step, oldest first, and in which round they are.
    fn reviewers(
        &self,
        step: &str,
        agent: Option<&AgentId>,
        crew: &BTreeMap<AgentId, Member>,
    ) -> (Vec<AgentId>, u32) {
        let Some(first) = agent.map(order) else { return (Vec::new(), 0) };
        let part = |m: &Member| {
            let of = Step::of(m.order.brief.step.as_deref()?)?;
            (of.flow == self.id && of.step == step && order(&m.id) > first).then_some(of.part?.parse().ok())
        };
        let mut all: Vec<(u32, AgentId, Option<u32>)> =
            crew.values().filter_map(|m| Some((order(&m.id), m.id.clone(), part(m)?))).collect();
        all.sort();
        let round = all.iter().filter_map(|(_, _, round)| *round).max().unwrap_or(0);
        (all.into_iter().map(|(_, id, _)| id).collect(), round)
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
            announced: self.announced,
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
            announced: row.announced,
            paused: None,
            given_up: GivenUp::default(),
        }
    }
}

/// Agents are numbered as they are started.
fn order(id: &AgentId) -> u32 {
    id.name().trim_start_matches('a').parse().unwrap_or(0)
}

/// What an agent is there for: `w1/build`, or a part of that beside the work itself: `w1/build#2` looks at it in the
/// second round.
pub(crate) struct Step<'a> {
    pub(crate) flow: &'a str,
    pub(crate) step: &'a str,
    pub(crate) part: Option<&'a str>,
}

impl<'a> Step<'a> {
    pub(crate) fn of(text: &'a str) -> Option<Self> {
        let (flow, rest) = text.split_once('/')?;
        let (step, part) = rest.split_once('#').map_or((rest, None), |(step, part)| (step, Some(part)));
        Some(Self { flow, step, part })
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
        let Some(flow) = self.crew.flows.get(&no).filter(|_| !self.s.read_only) else {
            return self.show_flow(no);
        };
        let ticket = self.w.store.put_workflow(flow.kept(self.s.id));
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
        if self.s.read_only {
            return self.show_flow(no);
        }
        let ticket = self.w.store.put_step(self.s.id, id, step.to_owned(), row);
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

/// `w1` is 1.
pub(crate) fn number(id: &str) -> Option<u32> {
    id.trim().strip_prefix('w')?.parse().ok()
}
