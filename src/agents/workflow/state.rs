//! A workflow that runs, and what its steps report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use tiller_engine::ClientId;
use tiller_protocol::workflow::{StepState, StepView, WorkflowView};
use tiller_protocol::{AgentId, AgentState, CommandId, EntryId, SessionId, Time};
use tiller_store::{WorkflowRow, WorkflowStep};
use tiller_tool::crew::{CrewReply, CrewRequest, Report, ReportStatus, Workflow};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::roster::member::Member;

/// Most bytes of a step's goal and result in its row.
pub(crate) const SAID: usize = 500;

/// The way back to the call that sent a request.
pub(crate) type CrewReplySender = oneshot::Sender<Result<CrewReply, String>>;

/// Steps that the user abandoned, for the task that runs them.
pub(crate) type AbandonedSteps = Arc<Mutex<BTreeSet<String>>>;

/// The key of the starting agent in the stored definition.
pub(crate) const BY: &str = "by";

/// One workflow.
pub(crate) struct WorkflowRun {
    pub(crate) id: String,
    /// The agent that started it. Its steps are below this agent and never have more rights, also after a resume.
    pub(crate) by: AgentId,
    pub(crate) definition: Workflow,
    pub(crate) state: StepState,
    pub(crate) created: Time,
    pub(crate) steps: BTreeMap<String, StepRecord>,
    /// Stops it; set while it runs.
    pub(crate) stop: Option<CancellationToken>,
    /// The call that waits for it.
    pub(crate) reply: Option<CrewReplySender>,
    /// The main agent has been notified of its end.
    pub(crate) announced: bool,
    /// Set while it is paused: the steps and requests that wait.
    pub(crate) paused: Option<Vec<PendingStep>>,
    pub(crate) abandoned: AbandonedSteps,
}

/// A step or request that waits until a paused workflow is resumed.
pub(crate) enum PendingStep {
    Begins { step: String, reply: oneshot::Sender<Option<String>> },
    Asked { by: AgentId, call: String, entry: Option<EntryId>, ask: Box<CrewRequest>, reply: CrewReplySender },
}

/// One step of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StepRecord {
    pub(crate) state: StepState,
    pub(crate) agent: Option<AgentId>,
    pub(crate) report: Option<Report>,
}

impl WorkflowRun {
    /// Its name for the user.
    pub(crate) fn name(&self) -> String {
        if self.definition.name.is_empty() { self.id.clone() } else { self.definition.name.clone() }
    }

    /// Its row. `crew`: to find the reviewers of each step.
    pub(crate) fn view(&self, crew: &BTreeMap<AgentId, Member>) -> WorkflowView {
        let step = |task: &tiller_tool::crew::Task| {
            let id = task.id.clone().unwrap_or_default();
            let own = self.steps.get(&id).cloned().unwrap_or_default();
            let (reviewers, round) = self.reviewers(&id, own.agent.as_ref(), crew);
            let by = task.brief.cli.clone().or_else(|| task.brief.agent.clone());
            let said = own
                .report
                .as_ref()
                .map(|r| crate::text::ends(crate::roster::member::words(r), SAID, crate::text::IN_SESSION));
            StepView {
                id,
                needs: task.depends_on.clone(),
                state: own.state,
                by: by.unwrap_or_default(),
                goal: crate::text::cut(task.brief.goal.trim(), SAID),
                agent: own.agent,
                reviewers,
                round,
                rounds: task.review.as_ref().map_or(0, |r| r.rounds),
                said: said.unwrap_or_default(),
            }
        };
        let steps = self.definition.steps.iter().map(step).collect();
        let paused = self.paused.is_some();
        WorkflowView { id: self.id.clone(), name: self.name(), state: self.state, paused, steps }
    }

    /// The agents that review the result of this agent, oldest first, and the present round.
    pub(crate) fn reviewers(
        &self,
        step: &str,
        agent: Option<&AgentId>,
        crew: &BTreeMap<AgentId, Member>,
    ) -> (Vec<AgentId>, u32) {
        let Some(first) = agent.map(order) else { return (Vec::new(), 0) };
        let part = |m: &Member| {
            let of = StepRef::parse(m.order.brief.step.as_deref()?)?;
            (of.flow == self.id && of.step == step && order(&m.id) > first).then_some(of.part?.parse().ok())
        };
        let mut all: Vec<(u32, AgentId, Option<u32>)> =
            crew.values().filter_map(|m| Some((order(&m.id), m.id.clone(), part(m)?))).collect();
        all.sort();
        let round = all.iter().filter_map(|(_, _, round)| *round).max().unwrap_or(0);
        (all.into_iter().map(|(_, id, _)| id).collect(), round)
    }

    /// Its row in the store, without its steps.
    pub(crate) fn kept(&self, root: SessionId) -> WorkflowRow {
        let mut definition = serde_json::to_value(&self.definition).unwrap_or_default();
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

    /// The reports of steps that are done and not run again.
    pub(crate) fn finished_reports(&self) -> BTreeMap<String, Report> {
        let done = self.steps.iter().filter(|(_, s)| s.state == StepState::Done);
        done.filter_map(|(id, s)| Some((id.clone(), s.report.clone()?))).collect()
    }

    /// From the store. What ran when Tiller ended is interrupted.
    pub(crate) fn from_row(mut row: WorkflowRow) -> Self {
        let by = row.definition.as_object_mut().and_then(|d| d.remove(BY));
        let by = by.and_then(|by| by.as_str().map(|by| AgentId(by.to_owned())));
        let rest = |state| if state == StepState::Running { StepState::Interrupted } else { state };
        let step = |s: WorkflowStep| StepRecord {
            state: rest(s.state),
            agent: s.agent,
            report: s.report.and_then(|r| serde_json::from_value(r).ok()),
        };
        Self {
            id: row.id,
            by: by.unwrap_or_else(AgentId::main),
            definition: serde_json::from_value(row.definition).unwrap_or_default(),
            state: rest(row.state),
            created: row.created,
            steps: row.steps.into_iter().map(|(id, s)| (id, step(s))).collect(),
            stop: None,
            reply: None,
            announced: row.announced,
            paused: None,
            abandoned: AbandonedSteps::default(),
        }
    }
}

/// The number of an agent; agents are numbered in the order of their start.
pub(crate) fn order(id: &AgentId) -> u32 {
    id.name().trim_start_matches('a').parse().unwrap_or(0)
}

/// The step that an agent works on: `w1/build`, or a part of it beside the work: `w1/build#2` reviews it in the
/// second round.
pub(crate) struct StepRef<'a> {
    pub(crate) flow: &'a str,
    pub(crate) step: &'a str,
    pub(crate) part: Option<&'a str>,
}

impl<'a> StepRef<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (flow, rest) = text.split_once('/')?;
        let (step, part) = rest.split_once('#').map_or((rest, None), |(step, part)| (step, Some(part)));
        Some(Self { flow, step, part })
    }
}

/// The state of a step with this report.
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

/// Who started a workflow and gets the reply.
pub(crate) enum Starter {
    Call { by: AgentId, call: String, entry: Option<EntryId>, reply: CrewReplySender },
    Person { client: ClientId, cause: CommandId },
}

/// To the main agent's loop, about its workflows.
pub(crate) enum WorkflowMsg {
    /// A workflow was found and checked.
    Checked {
        starter: Starter,
        flow: Result<Workflow, String>,
    },
    /// A step begins. The reply is the agent that was interrupted at it.
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
    Ended {
        no: u32,
        reports: Vec<Report>,
    },
}
