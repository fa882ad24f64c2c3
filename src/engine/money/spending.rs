//! Money that all agents of a session have spent.

use std::sync::Arc;

use tiller_protocol::Cost;

use crate::core::Core;
use crate::money::budget::Spending;
use crate::money::reservations::Reservations;

/// Limits the agents of the session, if it has any, to what the budgets of session and day leave.
pub(crate) fn limit_money(core: &Core) {
    if core.identity.owns_session() && core.money.reservations.has_children() {
        set_money_limit(core);
    }
}

/// Limits the agents of the session, present and future, to what the budgets of session and day leave.
pub(crate) fn set_money_limit(core: &Core) {
    core.money.reservations.limit_money(core.money.limits.left(spent_so_far(core)));
}

/// Starts the reservations anew for the session that is open now. What the tiers have cost today is kept.
pub(crate) fn reset_reservations(core: &mut Core) {
    let config = core.services.config();
    let tiers = core.money.reservations.tiers();
    core.money.reservations = Arc::new(Reservations::default());
    core.money.reservations.learn(tiers);
    let limits = &config.agents;
    core.money.reservations.limit_tree(limits.tree_tokens, limits.tree_cost.map(Cost::from_usd));
}

/// What all children of the main agent have spent. For a child it is zero: budgets of session and day are the main
/// agent's.
pub(crate) fn spent_by_children(core: &Core) -> Spending {
    if core.identity.is_child() { Spending::default() } else { core.money.reservations.spent() }
}

/// What all agents, the main one included, have spent in this session and today.
pub(crate) fn spent_so_far(core: &Core) -> Spending {
    let children = spent_by_children(core);
    let (session, day) =
        (core.money.spent.session.plus(children.session), core.money.spent.day.plus(children.day));
    Spending { session, day }
}

/// As [`spent_so_far`], with the reservations of calls that run.
pub(crate) fn spent_and_reserved(core: &Core) -> Spending {
    let spent = spent_so_far(core);
    let held = if core.identity.is_child() { Cost(0) } else { core.money.reservations.held() };
    Spending { session: spent.session.plus(held), day: spent.day.plus(held) }
}
