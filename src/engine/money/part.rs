//! The part of the loop's state that belongs to budgets.

use tiller_protocol::Cost;

use crate::money::budget::{Limits, Spending};

/// Limits and spending.
pub(crate) struct MoneyPart {
    pub(crate) limits: Limits,
    pub(crate) spent: Spending,
    /// The day that `spent` is of, in the user's time zone.
    pub(crate) day: String,
    /// The remaining budget in the last line about it that went to the model.
    pub(crate) announced_left: Option<Cost>,
    /// Limit of this run's cost.
    pub(crate) max_cost: Option<Cost>,
}
