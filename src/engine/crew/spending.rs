//! Money that all agents of a session have spent.

use crate::core::Core;
use crate::money::budget::Spending;

/// Limits the agents to what the budgets of session and day leave.
pub(crate) fn limit_money(core: &Core) {
    if core.identity.child.is_none() && !core.crew.members.is_empty() {
        core.crew.reservations.limit_money(core.money.limits.left(spent_so_far(core)));
    }
}

/// What all agents, the main one included, have spent in this session and today.
pub(crate) fn spent_so_far(core: &Core) -> Spending {
    let crew = core.crew.reservations.spent();
    let (session, day) = (core.money.spent.session.plus(crew.session), core.money.spent.day.plus(crew.day));
    Spending { session, day }
}

/// As [`spent_so_far`], with the reservations of calls that run.
pub(crate) fn spent_and_reserved(core: &Core) -> Spending {
    let (spent, held) = (spent_so_far(core), core.crew.reservations.held());
    Spending { session: spent.session.plus(held), day: spent.day.plus(held) }
}
