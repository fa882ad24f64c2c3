//! Costs: prices of calls, spending per session, day and tier, and the budget line in the prompt.

use crate::session::model;
use tiller_config::agents::Tier;

use tiller_protocol::{Cost, ModelRef, Notice, NoticeKind, Usage};
use tiller_provider::{models, registry};
use tiller_store::ModelCall;

use crate::core::Core;
use crate::money::allowance::Allowance;
use crate::money::call_sum::MissingCost;
use crate::money::reservations::limit;
use crate::money::today::Today;

pub(crate) mod allowance;
pub mod budget;
pub(crate) mod call_sum;
pub(crate) mod part;
pub mod reservations;
pub(crate) mod spending;
pub(crate) mod today;

/// A hard limit that cannot be kept, because the model has no price.
#[derive(Clone, Debug)]
pub(crate) struct Unpriced {
    pub(crate) model: ModelRef,
    of: String,
    limit: Cost,
    /// The `kind` that `[providers.NAME]` needs, where `config.toml` has no such section yet.
    kind: Option<String>,
}

impl Unpriced {
    /// Text for the user.
    pub(crate) fn why(&self) -> String {
        let Self { of, limit, .. } = self;
        format!("its price is not known, so the budget of {of} ({limit}) cannot be enforced")
    }

    /// The notice when no user can be asked, or the answer was no.
    pub(crate) fn notice(&self) -> Notice {
        let (name, id) = (self.model.provider(), self.model.model());
        let first = match &self.kind {
            Some(kind) => format!("[providers.{name}]\nkind = \"{kind}\"\n"),
            None => String::new(),
        };
        Notice::new(NoticeKind::Budget, format!("{} was not called: {}", self.model, self.why()))
            .hint(format!(
                "add its price at the end of config.toml, in dollars per million tokens (0 for free):\n\
                 {first}[providers.{name}.models.\"{id}\"]\ninput = 3.0\noutput = 15.0"
            ))
            .hint("or choose a model with a price, or remove the budget")
    }
}

/// The tier's hard limit for today, when it is used up.
pub(crate) fn tier_over(core: &Core, tier: Tier) -> Option<Cost> {
    let limit = tier_limit(core, tier)?;
    (core.money.reservations.tiers().spent.get(&tier).copied().unwrap_or_default() >= limit).then_some(limit)
}

/// What a tier may cost in a day.
pub(crate) fn tier_limit(core: &Core, tier: Tier) -> Option<Cost> {
    core.services.config().budget.tiers.get(tier.word()).map(|usd| Cost::from_usd(*usd))
}

/// A hard limit that cannot be enforced for `model`, because its price is not known and the user did not approve it. A
/// server on this machine charges nothing, whatever its name in the settings.
pub(crate) fn unpriced(core: &Core, model: &ModelRef, tier: Tier) -> Option<Unpriced> {
    let config = core.services.config();
    if core.money.reservations.is_approved(model) {
        return None;
    }
    let of_tier = || {
        let usd = config.budget.tiers.get(tier.word())?;
        Some((format!("the tier {}", tier.word()), Cost::from_usd(*usd)))
    };
    // A limit of the command line holds for the agents that the main one starts, too.
    let of_agent =
        || Some(("this agent".to_owned(), core.money.reservations.left_for(&core.identity.id).cost?));
    let (of, limit) = core.money.limits.first_hard().or_else(of_tier).or_else(of_agent)?;
    let local = is_local(core, model);
    let one = Usage { input: 1, output: 1, ..Usage::default() };
    let known = models::cost(&one, &model::model_info(core, model)).is_some();
    (!local && !known && !model::is_demo(core, model)).then(|| {
        let listed = config.providers.contains_key(model.provider());
        let kind = registry::builtin_kind(model.provider()).filter(|_| !listed).map(str::to_owned);
        Unpriced { model: model.clone(), of, limit, kind }
    })
}

/// Returns true when the address of a model's server is on this machine, where it charges nothing.
fn is_local(core: &Core, model: &ModelRef) -> bool {
    model::provider(core, model).is_ok_and(|server| server.is_local())
}

/// Why a side call (a title, a summary, a question) may not be made. It never exceeds a limit, and no question is
/// asked. Whether its input fits is checked when it is sent: [`left_beside`].
pub(crate) fn may_ask(core: &Core, model: &ModelRef) -> Result<(), Notice> {
    if model::is_demo(core, model) {
        return Ok(());
    }
    let tier = model::tier_of(core, model);
    if let Some(why) = core.money.reservations.over(&core.identity.id) {
        return Err(limit(why));
    }
    if let Some(over) = core.money.limits.over(crate::money::spending::spent_and_reserved(core)) {
        return Err(over.notice());
    }
    if let Some(limit) = tier_over(core, tier) {
        let why = format!("today's budget for the tier {} is used up: {limit}", tier.word());
        return Err(Notice::new(NoticeKind::Budget, why).hint("choose another model with /model"));
    }
    if let Some(unpriced) = unpriced(core, model, tier) {
        return Err(unpriced.notice());
    }
    if tier == Tier::Deep && !core.services.config().tiers.deep_allowed && !core.session.approvals.deep {
        let why = "the expensive model is not yet approved in this session";
        return Err(Notice::new(NoticeKind::Denied, why).hint("send a message first; Tiller then asks you"));
    }
    Ok(())
}

/// What is left for a side call that counts for `tier`.
pub(crate) fn left_beside(core: &Core, tier: Tier) -> Allowance {
    let spent = core.money.reservations.tiers().spent.get(&tier).copied().unwrap_or_default();
    let of_tier = tier_limit(core, tier).map(|limit| Cost(limit.0.saturating_sub(spent.0)));
    let left = Allowance { tokens: None, cost: core.money.limits.left(spending::spent_and_reserved(core)) };
    let of_agents = core.money.reservations.left_for(&core.identity.id);
    left.and(Allowance { tokens: None, cost: of_tier }).and(of_agents)
}

/// Why a tool may not ask a server of the settings, as a sentence without a full stop. `price`: of the request, where it
/// is known. Such requests count for the cheap tier.
pub(crate) fn may_spend(core: &Core, price: Option<Cost>) -> Result<(), String> {
    if let Some(why) = core.money.reservations.over(&core.identity.id) {
        return Err(why);
    }
    let spent = crate::money::spending::spent_and_reserved(core);
    if let Some(over) = core.money.limits.over_with(spent, price.unwrap_or_default()) {
        return Err(over.notice().message);
    }
    if let Some(limit) = tier_over(core, SERVER_TIER) {
        return Err(format!("today's budget for the tier {} is used up: {limit}", SERVER_TIER.word()));
    }
    let left = left_beside(core, SERVER_TIER).cost;
    match (price, left) {
        (Some(price), Some(left)) if price > left => {
            Err(format!("the request costs about {price}, and {left} is left in the budget"))
        }
        (None, Some(_)) => Err("its price is not known, so the budget cannot be enforced".into()),
        _ => Ok(()),
    }
}

/// The tier of requests that tools make to servers of the settings.
const SERVER_TIER: Tier = Tier::Fast;

/// Counts a request of a tool to a server of the settings, whose cost the tool knows.
pub(crate) fn book_server(
    core: &mut Core,
    open: bool,
    model: &ModelRef,
    usage: Usage,
    cost: Option<Cost>,
) -> ModelCall {
    let call = book_cost(core, model, SERVER_TIER, usage, cost);
    if open {
        count(core, &call);
    }
    call
}

/// Counts a call of a model against session, day and tier.
pub(crate) fn book(core: &mut Core, model: &ModelRef, tier: Tier, usage: Usage) -> ModelCall {
    let call = book_elsewhere(core, model, tier, usage);
    count(core, &call);
    call
}

/// Counts a call for the session that is open.
fn count(core: &mut Core, call: &ModelCall) {
    let usage = call.usage;
    core.session.totals.usage.add(&usage);
    if let Some(cost) = call.cost {
        core.session.totals.cost = Some(core.session.totals.cost.unwrap_or_default().plus(cost));
        core.money.spent.session = core.money.spent.session.plus(cost);
    }
    let missing = if is_local(core, &call.model) { MissingCost::Free } else { MissingCost::Unknown };
    core.child_driver().charge(&usage, call.cost, missing);
    crate::money::spending::limit_money(core);
}

/// Like [`book`], for a session that is no longer open.
pub(crate) fn book_elsewhere(core: &mut Core, model: &ModelRef, tier: Tier, usage: Usage) -> ModelCall {
    let cost =
        (usage != Usage::default()).then(|| models::cost(&usage, &model::model_info(core, model))).flatten();
    book_cost(core, model, tier, usage, cost)
}

/// Counts a cost for the day and the tier.
fn book_cost(core: &mut Core, model: &ModelRef, tier: Tier, usage: Usage, cost: Option<Cost>) -> ModelCall {
    roll_day(core);
    if let Some(cost) = cost {
        core.money.spent.day = core.money.spent.day.plus(cost);
        core.money.reservations.paid(tier, cost);
    }
    ModelCall {
        agent: core.identity.id.clone(),
        model: model.clone(),
        tier: tier.word().into(),
        time: core.services.clock.now(),
        usage,
        cost,
    }
}

/// Whether anything of the day is limited.
pub(crate) fn day_matters(core: &Core) -> bool {
    let config = core.services.config();
    let b = &config.budget;
    b.day_soft.is_some() || b.day_hard.is_some() || !b.tiers.is_empty()
}

/// Starts a new day at local midnight.
pub(crate) fn roll_day(core: &mut Core) {
    if !day_matters(core) {
        return;
    }
    let today = core.services.store.costs().day(core.services.clock.now());
    if today != core.money.day {
        core.money.reservations.new_day(&today);
        core.money.day = today;
        core.money.spent.day = Cost(0);
        core.money.limits.new_day(&core.services.config().budget);
    }
}

/// Takes the spending of the day from the store, other processes included. Our own calls may not be stored yet, so the
/// larger number counts.
pub(crate) fn day_read(core: &mut Core, read: Today) {
    roll_day(core);
    if read.tiers.day != core.money.day {
        return;
    }
    // It includes the cost of our agents, which is counted with the children.
    let others = Cost(read.all.0.saturating_sub(spending::spent_by_children(core).day.0));
    core.money.spent.day = core.money.spent.day.max(others);
    core.money.reservations.learn(read.tiers);
}

/// Reports the budget to the model when it has changed by a fifth since the last time.
pub(crate) fn tell_budget(core: &mut Core) {
    let Some(left) = core.money.limits.left(crate::money::spending::spent_so_far(core)) else { return };
    let told = core.money.announced_left.unwrap_or(Cost(u64::MAX));
    if left.0 < told.0 / 5 * 4 {
        // The first value is only recorded, since the prefix contains it.
        if core.money.announced_left.is_some() {
            core.context.news.set("budget", format!("budget left: {left}"));
        }
        core.money.announced_left = Some(left);
    }
}
