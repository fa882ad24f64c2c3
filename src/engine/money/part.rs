//! The part of the loop's state that belongs to budgets.

use std::sync::Arc;

use tiller_protocol::Cost;

use crate::money::budget::{Limits, Spending};
use crate::money::reservations::Reservations;

/// Limits and spending.
pub(crate) struct MoneyPart {
    pub(crate) limits: Limits,
    pub(crate) spent: Spending,
    /// The day that `spent` is of, in the user's time zone.
    pub(crate) day: String,
    /// The remaining budget in the last line about it that went to the model.
    pub(crate) announced_left: Option<Cost>,
    /// What calls of all agents of the session may cost: one for the main agent and its children.
    pub(crate) reservations: Arc<Reservations>,
    /// Limit of this run's cost.
    pub(crate) max_cost: Option<Cost>,
}
