//! The sum of calls whose costs may not be known.

use std::collections::HashSet;

use tiller_protocol::{AgentId, Cost, Usage};

/// The meaning of a cost that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingCost {
    /// The model has no price.
    Unknown,
    /// The server is on this machine and charges nothing.
    Free,
    /// A program of another vendor, which may report it later.
    Later,
}

/// The sum of calls, those of failed requests included.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallSum {
    pub(crate) usage: Usage,
    cost: Option<Cost>,
    unpriced: bool,
    /// Programs that have not reported a cost since they used something.
    open: HashSet<AgentId>,
}

impl CallSum {
    /// Adds a call of an agent. `missing`: the meaning of a cost that is `None`.
    pub(crate) fn add(&mut self, id: &AgentId, usage: &Usage, cost: Option<Cost>, missing: MissingCost) {
        self.usage.add(usage);
        match cost {
            Some(cost) => {
                self.cost = Some(self.cost.unwrap_or_default().plus(cost));
                self.open.remove(id);
            }
            None if missing == MissingCost::Later => drop(self.open.insert(id.clone())),
            None => self.unpriced |= missing == MissingCost::Unknown,
        }
    }

    /// Returns the cost of all calls; `None` when one of them has none that is known.
    pub(crate) fn cost(&self) -> Option<Cost> {
        self.cost.filter(|_| !self.unpriced && self.open.is_empty())
    }
}
