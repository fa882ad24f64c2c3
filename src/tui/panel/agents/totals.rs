//! Totals of an agent and all agents below it.

use tiller_protocol::{AgentState, AgentView, Cost};

use crate::model::Model;

/// True when the agent has ended, for good or until it is continued.
pub(super) fn ended(state: AgentState) -> bool {
    matches!(state, AgentState::Done | AgentState::Failed | AgentState::Cancelled | AgentState::Interrupted)
}

/// True when the agent waits for the person: by its state, or because a question of it is open.
pub(super) fn waits(model: &Model, a: &AgentView) -> bool {
    a.state == AgentState::Waiting || model.questions.open.iter().any(|k| k.agent == a.id)
}

/// The totals of an agent and all below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AgentTotals {
    pub(super) tokens: u64,
    pub(super) cost: Cost,
    /// The cost of some agents is not known.
    pub(super) unknown: bool,
    pub(super) files: u32,
    pub(super) agents: u32,
    /// One of them waits for the person.
    pub(super) waits: bool,
}

impl AgentTotals {
    pub(super) fn add(&mut self, other: Self) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.cost = self.cost.plus(other.cost);
        self.unknown |= other.unknown;
        self.files = self.files.saturating_add(other.files);
        self.agents = self.agents.saturating_add(other.agents);
        self.waits |= other.waits;
    }

    pub(super) fn of(model: &Model, a: &AgentView) -> Self {
        let tokens = a.usage.context().saturating_add(a.usage.output);
        Self {
            tokens,
            cost: a.cost.unwrap_or_default(),
            unknown: a.cost.is_none() && tokens > 0 && !a.model.is_demo(),
            files: a.child.as_ref().map_or(0, |c| c.files),
            agents: 1,
            waits: waits(model, a),
        }
    }
}
