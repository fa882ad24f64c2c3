//! Limits of money and tokens.

use std::sync::Arc;

use super::CrewHost;
use crate::money;
use crate::money::reservations::Reservations;

/// Limits of money and tokens.
pub trait HostBudget {
    /// Starts the reservations of the tree anew, for the session that is open now. What was spent today is kept.
    fn reset_reservations(&mut self) -> Arc<Reservations>;

    /// Limits all agents to what the budgets of session and day leave.
    fn limit_money(&mut self);
}

impl HostBudget for CrewHost<'_> {
    fn reset_reservations(&mut self) -> Arc<Reservations> {
        money::spending::reset_reservations(self.core);
        Arc::clone(&self.core.money.reservations)
    }

    fn limit_money(&mut self) {
        money::spending::set_money_limit(self.core);
    }
}
