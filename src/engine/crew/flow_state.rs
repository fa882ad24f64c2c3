//! A workflow that runs, and what its steps report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use tiller_protocol::workflow::{StepState, StepView, WorkflowView};
use tiller_protocol::{AgentId, AgentState, CommandId, EntryId, SessionId, Time};
use tiller_store::{StoreError, WorkflowRow, WorkflowStep};
use tiller_tool::crew::{CrewReply, CrewRequest, Report, ReportStatus, Workflow};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::bus::ClientId;
use crate::crew::member::Member;

/// Characters of what a step is to do, or brought, that its row shows.
pub(crate) const SAID: usize = 500;

/// To the requester.
pub(crate) type Reply = oneshot::Sender<Result<CrewReply, String>>;

/// Steps that the user abandoned, for the task that runs them.
pub(crate) type GivenUp = Arc<Mutex<BTreeSet<String>>>;

/// Beside what it is made of, who asked for it is kept under this name.
pub(crate) const BY: &str = "by";

/// One workflow.
pub(crate) struct Flow {
    pub(crate) id: String,
    /// The agent that asked for it. Its steps belong to this agent and never have more rights, also after a resume.
    pub(crate) by: AgentId,
    pub(crate) made_of: Workflow,
    pub(crate) state: StepState,
    pub(crate) created: Time,
    pub(crate) steps: BTreeMap<String, FlowStep>,
    /// While it runs: stops it.
    pub(crate) stop: Option<CancellationToken>,
    /// The call that waits for it.
    pub(crate) reply: Option<Reply>,
    /// The main agent has received its end.
    pub(crate) announced: bool,
    /// It rests: what its steps want to begin meanwhile.
    pub(crate) paused: Option<Vec<PendingStep>>,
    pub(crate) given_up: GivenUp,
}

/// What waits until a workflow goes on.
pub(crate) enum PendingStep {
    Begins { step: String, reply: oneshot::Sender<Option<String>> },
    Asked { by: AgentId, call: String, entry: Option<EntryId>, ask: Box<CrewRequest>, reply: Reply },
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
            let said = own.report.as_ref().map(|r| crate::job::words::cut(&super::member::words(r), SAID));
            StepView {
                id,
                needs: task.depends_on.clone(),
                state: own.state,
                by: by.unwrap_or_default(),
                goal: crate::job::words::cut(task.brief.goal.trim(), SAID),
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
    pub(crate) fn reviewers(
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
    pub(crate) fn kept(&self, root: SessionId) -> WorkflowRow {
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
pub(crate) fn order(id: &AgentId) -> u32 {
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
    match report.status {
        ReportStatus::Agent(AgentState::Done) => StepState::Done,
        ReportStatus::Skipped => StepState::Skipped,
        ReportStatus::Agent(AgentState::Cancelled) => StepState::Cancelled,
        ReportStatus::Agent(AgentState::Interrupted) => StepState::Interrupted,
        _ => StepState::Failed,
    }
}

/// `w1` is 1.
pub(crate) fn number(id: &str) -> Option<u32> {
    id.trim().strip_prefix('w')?.parse().ok()
}

/// Who started a workflow, and how that one hears of it.
pub(crate) enum Starter {
    Call { by: AgentId, call: String, entry: Option<EntryId>, reply: Reply },
    Person { client: ClientId, cause: CommandId },
}

/// What the main agent's task hears of its workflows.
pub(crate) enum FlowMsg {
    /// It was found and looked at.
    Checked {
        starter: Starter,
        flow: Result<Workflow, String>,
    },
    /// A step begins. Answered with the agent that was interrupted at it.
    Begins {
        no: u32,
        step: String,
        reply: oneshot::Sender<Option<String>>,
    },
    Ends {
        no: u32,
        step: String,
        report: Box<Report>,
        reply: oneshot::Sender<()>,
    },
    Over {
        no: u32,
        reports: Vec<Report>,
    },
    /// Those of a session that was opened.
    Kept {
        root: SessionId,
        rows: Result<Vec<WorkflowRow>, StoreError>,
    },
}
