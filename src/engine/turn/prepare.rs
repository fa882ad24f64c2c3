//! Decides whether the next request may be sent: by budgets, tiers and the size of the context, or by the user.

use crate::context::effort;
use crate::money;
use crate::questions::asking;
use crate::session::model;
use tiller_config::agents::Tier;
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{AskBody, Cost, Notice, NoticeKind};
use tiller_provider::models;

use super::{Input, Prepared};
use crate::context::compaction::compact;
use crate::context::request;
use crate::core::Core;
use crate::core::services::Human;
use crate::money::budget::LimitReached;
use crate::money::reservations::{ReservationResult, limit};
use crate::questions::about::About;

/// Checks budgets, tiers and the size of the context before the next request.
pub(crate) fn prepare(core: &mut Core, may_compact: bool) {
    if let tiller_store::Health::Failing(_) = &*core.services.store.health().borrow() {
        // The turn waits until saving works again; the banner shows the reason.
        core.with_live(|l| l.deferred_check = Some(may_compact));
        return;
    }
    if core
        .child_driver()
        .defer_while_paused(crate::crew::child::identity::DeferredStep::Prepare { may_compact })
    {
        return;
    }
    if core.identity.external().is_some() {
        // An external program has its own model, prices and context.
        return match core.child_driver().reserve_request(false) {
            ReservationResult::Go => core.turn.inputs.push_back(Input::Prepared(Prepared::Go)),
            ReservationResult::Wait(answered) => core.child_driver().wait_for_budget(may_compact, answered),
            ReservationResult::Over(why) => {
                let stop = Prepared::Stop { status: TurnStatus::Limit, notice: limit(why) };
                core.turn.inputs.push_back(Input::Prepared(stop));
            }
        };
    }
    let Some(turn) = core.turn.live.as_ref().map(|l| l.no) else { return };
    money::roll_day(core);
    crate::money::spending::limit_money(core);
    // Limits of session and day are checked by the main agent: the reservations hold what they leave for the other
    // agents.
    let checks_budgets = core.identity.owns_session();
    if let Some(notice) = checks_budgets
        .then(|| core.money.limits.warning(crate::money::spending::spent_and_reserved(core)))
        .flatten()
    {
        core.notice(notice);
    }
    if let Some(over) = over_budget(core).filter(|_| checks_budgets) {
        if core.services.user.human == Human::Absent {
            let stop = Prepared::Stop { status: TurnStatus::Limit, notice: over.notice() };
            return core.turn.inputs.push_back(Input::Prepared(stop));
        }
        let dollars = |c: Cost| c.to_string();
        let body = AskBody::Budget {
            what: over.which.words().into(),
            spent: dollars(over.spent),
            limit: dollars(over.limit),
            next: over.next.map(dollars),
        };
        return asking::ask_self(core, About::Budget { turn, which: over.which }, body);
    }
    let config = core.services.config();
    let tiers = &config.tiers;
    let tier = model::tier(core);
    if let Some(limit) = money::tier_over(core, tier) {
        let notice = Notice::new(
            NoticeKind::Budget,
            format!("today's budget for the tier {} is used up: {limit}", tier.word()),
        )
        .hint("choose another model with /model, then continue");
        let stop = Prepared::Stop { status: TurnStatus::Limit, notice };
        return core.turn.inputs.push_back(Input::Prepared(stop));
    }
    if let Some(unpriced) = money::unpriced(core, &core.session.model, tier) {
        if core.services.user.human == Human::Absent {
            let stop = Prepared::Stop { status: TurnStatus::Limit, notice: unpriced.notice() };
            return core.turn.inputs.push_back(Input::Prepared(stop));
        }
        let body = AskBody::Unpriced { model: unpriced.model.0.clone(), why: unpriced.why() };
        return asking::ask_self(core, About::Unpriced { turn }, body);
    }
    if tier == Tier::Deep && !tiers.deep_allowed && !core.session.approvals.deep {
        if core.services.user.human == Human::Absent {
            let notice = Notice::new(
                NoticeKind::Denied,
                "the expensive model needs an approval, and no one is available to give it",
            )
            .hint("set tiers.deep_allowed in config.toml");
            let stop = Prepared::Stop { status: TurnStatus::Refused, notice };
            return core.turn.inputs.push_back(Input::Prepared(stop));
        }
        let why = "this session uses it as its model".into();
        let body = AskBody::DeepTier { model: core.session.model.0.clone(), why };
        return asking::ask_self(core, About::Deep { turn }, body);
    }
    let due = may_compact
        && compact::due(
            &core.session.history.path,
            &core.services.config().context,
            model::window(core),
            core.context.compacted,
        );
    let go = if due { Prepared::Compact } else { Prepared::Go };
    match core.child_driver().reserve_request(due) {
        ReservationResult::Go => core.turn.inputs.push_back(Input::Prepared(go)),
        // The agent waits until others have settled their reservations.
        ReservationResult::Wait(answered) => core.child_driver().wait_for_budget(may_compact, answered),
        // Another agent spent something meanwhile.
        ReservationResult::Over(_) if checks_budgets && over_budget(core).is_some() => {
            prepare(core, may_compact);
        }
        ReservationResult::Over(why) => {
            let stop = Prepared::Stop { status: TurnStatus::Limit, notice: limit(why) };
            core.turn.inputs.push_back(Input::Prepared(stop));
        }
    }
}

/// The hard limit of session or day that does not allow the next request.
pub(crate) fn over_budget(core: &Core) -> Option<LimitReached> {
    let input = models::cost(&core.session.next_request(), &model::model_info(core, &core.session.model));
    core.money.limits.over_with(crate::money::spending::spent_so_far(core), input.unwrap_or_default())
}

pub(crate) fn settings(core: &Core) -> request::RequestSettings {
    request::RequestSettings {
        model: core.session.model.clone(),
        session: core.session.id,
        max_output: None,
        effort: effort::effort(core),
    }
}
