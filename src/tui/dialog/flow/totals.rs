//! Totals of a step: time, tokens and cost of its agents and of the agents that they started.

use tiller_protocol::{AgentId, AgentState, AgentView, Cost, StepView, WorkflowView};

use super::agents;
use crate::model::Model;

/// Totals of one step, or of all steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StepTotals {
    pub(super) ms: i64,
    pub(super) tokens: u64,
    pub(super) cost: Cost,
    /// The cost of some agents is not known.
    pub(super) unknown: bool,
    /// At least one agent has a cost; the demo model has none.
    pub(super) priced: bool,
}

impl StepTotals {
    fn add(&mut self, model: &Model, a: &AgentView, own: bool) {
        let tokens = a.usage.context().saturating_add(a.usage.output);
        self.tokens = self.tokens.saturating_add(tokens);
        self.cost = self.cost.plus(a.cost.unwrap_or_default());
        let demo = a.model.is_demo();
        self.unknown |= a.cost.is_none() && tokens > 0 && !demo;
        self.priced |= !demo && (a.cost.is_some() || tokens > 0);
        // The time of an agent includes the time of the agents that it started.
        if own {
            self.ms += lasted(model, a);
        }
    }

    /// Of one step.
    pub(super) fn of(model: &Model, step: &StepView) -> Self {
        let own: Vec<&AgentId> = agents(step).collect();
        let mut sum = Self::default();
        for a in &model.crew.agents {
            if own.iter().any(|id| a.id == **id || a.id.is_below(id)) {
                sum.add(model, a, own.contains(&&a.id));
            }
        }
        sum
    }

    /// Of all steps; `ms` is that of all work, side by side or not.
    pub(super) fn of_all(model: &Model, flow: &WorkflowView) -> Self {
        flow.steps.iter().map(|s| Self::of(model, s)).fold(Self::default(), |sum, s| Self {
            ms: sum.ms + s.ms,
            tokens: sum.tokens.saturating_add(s.tokens),
            cost: sum.cost.plus(s.cost),
            unknown: sum.unknown | s.unknown,
            priced: sum.priced | s.priced,
        })
    }
}

/// Milliseconds that an agent worked, as far as is known.
fn lasted(model: &Model, a: &AgentView) -> i64 {
    let took = a.child.as_ref().map_or(0.0, |c| c.took);
    match a.since {
        Some(since) if a.state.at_work() => (model.now.millis() - since.millis()).max(0),
        _ if took > 0.0 => (took * 1000.0) as i64,
        _ => 0,
    }
}

/// The agent of a step to show: a working agent, else the worker.
pub(super) fn agent<'m>(model: &'m Model, step: &StepView) -> Option<&'m AgentView> {
    let busy = |id: &&AgentId| model.row(id).is_some_and(|a| a.state.at_work());
    let id = agents(step).find(busy).or(step.agent.as_ref())?;
    model.row(id)
}

/// A question of one of its agents, or of an agent below them, is open.
pub(super) fn waits(model: &Model, step: &StepView) -> bool {
    let asks = |id: &AgentId| model.questions.open.iter().any(|k| k.agent == *id || k.agent.is_below(id));
    let rests = |id: &AgentId| model.row(id).is_some_and(|a| a.state == AgentState::Waiting);
    agents(step).any(|id| asks(id) || rests(id))
}
