//! Commands of the user to a workflow: pause, abandon a step, retry a step.

use std::collections::BTreeSet;

use tiller_protocol::lock;
use tiller_protocol::workflow::StepState;
use tiller_protocol::{AgentId, AgentState, EntryId};
use tiller_tool::crew::CrewRequest;

use crate::driver::WorkflowDriver;
use crate::roster::Roster;
use crate::roster::member::Member;
use crate::workflow::state::{CrewReplySender, PendingStep, StepRecord, StepRef, WorkflowRun, number};

/// The refusal of requests of an abandoned step.
pub(crate) const ABANDONED: &str = "the user abandoned this step";

impl WorkflowDriver<'_> {
    /// Pauses its agents at their next safe point and starts no steps meanwhile, or resumes all.
    pub(crate) fn pause(&mut self, id: &str, paused: bool) -> Result<String, String> {
        let no = self.crew.workflow_number(id)?;
        let Some(flow) = self.crew.flows.get_mut(&no).filter(|f| f.stop.is_some()) else {
            return Err(format!("workflow w{no} is not running"));
        };
        match (paused, flow.paused.is_some()) {
            (true, true) => return Err(format!("workflow w{no} is already paused")),
            (false, false) => return Err(format!("workflow w{no} is not paused")),
            (true, false) => flow.paused = Some(Vec::new()),
            (false, true) => {}
        }
        let held = if paused { Vec::new() } else { flow.paused.take().unwrap_or_default() };
        for id in self.crew.workflow_agents(no) {
            let state = self.crew.members.get(&id).map(Member::state);
            if paused != (state == Some(AgentState::Paused)) {
                // An agent that has not begun waits in line; an agent that has just ended cannot be paused.
                let _ = self.agents().pause_member(&id, paused);
            }
        }
        self.show(no);
        for held in held {
            match held {
                PendingStep::Begins { step, reply } => {
                    let agent = self.step_started(no, &step);
                    let _ = reply.send(agent);
                }
                PendingStep::Asked { by, call, entry, ask, reply } => {
                    self.agents().request(&by, call, entry, *ask, reply)
                }
            }
        }
        self.agents().start_waiting();
        let word = if paused { "is paused: its agents stop at their next step" } else { "continues" };
        Ok(format!("workflow w{no} {word}"))
    }

    /// Runs a step and all that depend on it again, with a note of the user.
    pub(crate) fn retry_step(
        &mut self,
        id: &str,
        step: &str,
        note: Option<String>,
    ) -> Result<String, String> {
        let no = self.crew.workflow_number(id)?;
        let flow = self.crew.flows.get_mut(&no).ok_or("it no longer exists")?;
        flow.known(step)?;
        if flow.stop.is_some() {
            return Err(format!("workflow w{no} is still running: a step can be retried when it has ended"));
        }
        let again = flow.needing(step);
        if let Some(note) = note.filter(|n| !n.trim().is_empty()) {
            let task = flow.definition.steps.iter_mut().find(|t| t.id.as_deref() == Some(step));
            if let Some(task) = task {
                task.brief.context.push_str(&format!("\n\nThe user says: {}", note.trim()));
            }
        }
        // An interrupted step would continue; a retried step starts again.
        for step in &again {
            self.change_step(no, step, |s| *s = StepRecord::default());
        }
        self.resume(&format!("w{no}"), again.len())
    }

    /// Abandons a step. Steps that depend on it are skipped.
    pub(crate) fn cancel_step(&mut self, id: &str, step: &str) -> Result<String, String> {
        let no = self.crew.workflow_number(id)?;
        let flow = self.crew.flows.get_mut(&no).ok_or("it no longer exists")?;
        flow.known(step)?;
        let state = flow.steps.get(step).map(|s| s.state).unwrap_or_default();
        if flow.stop.is_none() || !matches!(state, StepState::Waiting | StepState::Running) {
            return Err(format!("step {step} is not running: it is {}", state.word()));
        }
        lock(&flow.abandoned).insert(step.to_owned());
        let mine = |brief: &Option<String>| {
            let of = brief.as_deref().and_then(StepRef::parse);
            of.is_some_and(|of| number(of.flow) == Some(no) && of.step == step)
        };
        let agents: Vec<AgentId> =
            self.crew.members.values().filter(|m| mine(&m.order.brief.step)).map(|m| m.id.clone()).collect();
        if state == StepState::Waiting {
            self.change_step(no, step, |s| s.state = StepState::Cancelled);
        }
        agents.iter().for_each(|id| self.agents().cancel_tree(id));
        Ok(format!("step {step} of w{no} was abandoned; steps that need it are skipped"))
    }

    /// Lets a request of a workflow's step pass; `None`: it was refused, or waits until the workflow is resumed.
    pub(crate) fn admit(
        &mut self,
        by: &AgentId,
        from: (&str, Option<EntryId>),
        ask: CrewRequest,
        reply: CrewReplySender,
    ) -> Option<(CrewRequest, CrewReplySender)> {
        let step = match &ask {
            CrewRequest::Run(brief) => brief.step.clone(),
            CrewRequest::Again { agent, .. } | CrewRequest::Continue { agent } => {
                let id = self.crew.find(by, agent).ok();
                id.and_then(|id| self.crew.members.get(&id)?.order.brief.step.clone())
            }
            _ => None,
        };
        let of = step.as_deref().and_then(StepRef::parse);
        let flow = of.as_ref().and_then(|of| self.crew.flows.get_mut(&number(of.flow)?));
        let (Some(of), Some(flow)) = (of, flow) else { return Some((ask, reply)) };
        if lock(&flow.abandoned).contains(of.step) {
            // The step may have ended meanwhile.
            let _ = reply.send(Err(ABANDONED.into()));
            return None;
        }
        let Some(held) = &mut flow.paused else { return Some((ask, reply)) };
        let (call, entry) = (from.0.to_owned(), from.1);
        held.push(PendingStep::Asked { by: by.clone(), call, entry, ask: Box::new(ask), reply });
        None
    }
}

impl Roster {
    /// Agents of its steps that are at work, and those below them.
    pub(crate) fn workflow_agents(&self, no: u32) -> Vec<AgentId> {
        let mut all = BTreeSet::new();
        for id in self.members.keys().filter(|id| self.flow_of(id) == Some(no)) {
            all.insert(id.clone());
            all.extend(self.below(id));
        }
        all.retain(|id| self.members.get(id).is_some_and(|m| m.state().at_work()));
        all.into_iter().collect()
    }
}

impl WorkflowRun {
    /// Checks that it has this step.
    fn known(&self, step: &str) -> Result<(), String> {
        let mut ids = self.definition.steps.iter().filter_map(|t| t.id.as_deref());
        if ids.clone().any(|id| id == step) {
            return Ok(());
        }
        let near = tiller_protocol::nearest::nearest(step, ids.clone());
        Err(match near {
            Some(near) => format!("{} has no step {step}; did you mean {near}?", self.id),
            None => format!(
                "{} has no step {step}; there are: {}",
                self.id,
                ids.by_ref().collect::<Vec<_>>().join(", ")
            ),
        })
    }

    /// A step and all that depend on it, directly or not.
    fn needing(&self, step: &str) -> BTreeSet<String> {
        let mut all = BTreeSet::from([step.to_owned()]);
        loop {
            let before = all.len();
            for task in &self.definition.steps {
                if task.depends_on.iter().any(|d| all.contains(d)) {
                    all.extend(task.id.clone());
                }
            }
            if all.len() == before {
                return all;
            }
        }
    }
}
