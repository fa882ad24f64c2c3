//! Tokens and money of the whole tree, and money of each tier for today. The most that a call can cost is reserved before it
//! and settled after it, the main agent's calls too, so that many cannot overrun together: when what is left does not
//! cover a call, it waits until no other reservation is open, and then runs alone. So a limit is passed by one
//! reply at most.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use tiller_config::agents::Tier;

use tiller_protocol::{AgentId, AgentLimits, Cost, ModelRef, Notice, NoticeKind, Usage};
use tokio::sync::watch;

use crate::context::tokens;
use crate::lock::lock;
use crate::money::allowance::Allowance;
use crate::money::budget::Spending;
use crate::money::call_sum::{CallSum, MissingCost};

/// Number of the changes so far that can make a refused reservation possible.
pub(crate) type Revision = u64;

/// The answer to a reservation for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReservationResult {
    Go,
    /// Retry when the reservations have changed, see [`Reservations::changed_since`].
    Wait(Revision),
    /// A limit is reached; which, as a sentence.
    Over(String),
}

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    limits: AgentLimits,
    tokens: u64,
    cost: u64,
    held: Option<CallEstimate>,
}

/// The most that a call can use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallEstimate {
    pub(crate) tokens: u64,
    /// Millionths of a US dollar; 0: the price is unknown.
    pub(crate) cost: u64,
    /// The part of its input: a call whose input does not fit is not made.
    pub(crate) input_tokens: u64,
    pub(crate) input_cost: u64,
    /// The tier that it counts for, and the limit of that tier for today; `None`: an external program, whose cost counts
    /// for no tier.
    pub(crate) tier: Option<Tier>,
    pub(crate) tier_limit: Option<Cost>,
}

/// What each tier has cost on a day, all agents together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tiers {
    pub(crate) day: String,
    pub(crate) spent: HashMap<Tier, Cost>,
}

#[derive(Debug, Default)]
struct Accounts {
    by_agent: HashMap<AgentId, Account>,
    /// Limits of all children together.
    tree: AgentLimits,
    tokens: u64,
    cost: u64,
    /// The part of the cost that was spent today in this run; earlier runs of the day are in the store.
    today: u64,
    /// What the budgets of session and day leave for all children together, from the start; `None`: no limit.
    left: Option<Cost>,
    tiers: Tiers,
    /// Models without a known price that the user approved for this session, for all its agents.
    approved: HashSet<ModelRef>,
    /// The rest of the tokens and the cost of all agents, and of the cost of session and day, for which the first request of an
    /// agent was too large: with no more than that, no agent like it is started.
    unfit: HashMap<AgentId, [u64; 3]>,
    /// The use of each agent and all below it since the end of its last turn.
    unreported: HashMap<AgentId, CallSum>,
}

impl Accounts {
    /// Open reservations of all agents but `id`.
    fn held<'a>(&'a self, id: Option<&'a AgentId>) -> impl Iterator<Item = (&'a AgentId, CallEstimate)> {
        let others = self.by_agent.iter().filter(move |(who, _)| Some(*who) != id);
        others.filter_map(|(who, account)| Some((who, account.held?)))
    }

    fn add(&mut self, id: &AgentId, tokens: u64, cost: u64) {
        self.tokens = self.tokens.saturating_add(tokens);
        self.cost = self.cost.saturating_add(cost);
        let account = self.by_agent.entry(id.clone()).or_default();
        account.tokens = account.tokens.saturating_add(tokens);
        account.cost = account.cost.saturating_add(cost);
    }

    /// The rest under each limit of all agents; `None`: no limit.
    fn left_of_all(&self) -> [(Option<u64>, &'static str); 3] {
        let left = |most: Option<u64>, used: u64| most.map(|most| most.saturating_sub(used));
        [
            (left(self.tree.tokens, self.tokens), "tokens of all agents"),
            (left(self.tree.cost.map(|c| c.0), self.cost), "cost of all agents"),
            (left(self.left.map(|c| c.0), self.cost), "cost of the session or day"),
        ]
    }

    /// The cost of the tier of this call today.
    fn tier(&self, want: &CallEstimate) -> u64 {
        want.tier.and_then(|tier| self.tiers.spent.get(&tier)).map_or(0, |c| c.0)
    }

    /// The limit that an agent has reached, as a sentence.
    fn over(&self, id: &AgentId) -> Option<String> {
        if id.is_main() {
            // The main agent checks its own limits and asks the user.
            return None;
        }
        let mine = self.by_agent.get(id).copied().unwrap_or_default();
        if let Some(most) = mine.limits.tokens.filter(|m| mine.tokens >= *m) {
            return Some(format!("it reached its limit of {most} tokens"));
        }
        if let Some(most) = mine.limits.cost.filter(|m| mine.cost >= m.0) {
            return Some(format!("it reached its limit of {}", dollars(most.0)));
        }
        let caps = [
            (self.tree.tokens, self.tokens, "the token limit of all agents"),
            (self.tree.cost.map(|c| c.0), self.cost, "the cost limit of all agents"),
            (self.left.map(|c| c.0), self.cost, "the budget of the session or day"),
        ];
        let reached = caps.iter().find(|(most, used, _)| most.is_some_and(|m| *used >= m));
        reached.map(|(.., what)| format!("{what} is reached"))
    }
}

/// Shared by the main agent and all children.
#[derive(Debug, Default)]
pub struct Reservations {
    inner: Mutex<Accounts>,
    /// Advanced after each change of `inner` that can make a refused reservation possible.
    revision: watch::Sender<Revision>,
}

fn dollars(cost: u64) -> String {
    Cost(cost).to_string()
}

impl Reservations {
    pub(crate) fn limit_tree(&self, tokens: Option<u64>, cost: Option<Cost>) {
        lock(&self.inner).tree = AgentLimits { tokens, cost, ..AgentLimits::default() };
        self.advance();
    }

    /// Sets what session and day leave for the children beyond what they have used.
    pub(crate) fn limit_money(&self, left: Option<Cost>) {
        let mut inner = lock(&self.inner);
        let left = left.map(|l| Cost(l.0.saturating_add(inner.cost)));
        // Set before each request of the main agent. An unchanged limit wakes no agent, so that two that wait do not
        // wake each other.
        if std::mem::replace(&mut inner.left, left) == left {
            return;
        }
        drop(inner);
        self.advance();
    }

    pub fn limit(&self, id: &AgentId, limits: AgentLimits) {
        lock(&self.inner).by_agent.entry(id.clone()).or_default().limits = limits;
        self.advance();
    }

    /// Records that the user lets a model without a known price run past the limits of this session.
    pub(crate) fn approve(&self, model: ModelRef) {
        lock(&self.inner).approved.insert(model);
    }

    pub(crate) fn is_approved(&self, model: &ModelRef) -> bool {
        lock(&self.inner).approved.contains(model)
    }

    /// Reserves the most that a call can use, in place of the agent's earlier reservation.
    pub(crate) fn reserve(&self, id: &AgentId, want: CallEstimate) -> ReservationResult {
        let mut inner = lock(&self.inner);
        if let Some(why) = inner.over(id) {
            return ReservationResult::Over(why);
        }
        let tier = inner.tier(&want);
        if want.tier_limit.is_some_and(|m| tier >= m.0) {
            return ReservationResult::Over(format!(
                "today's budget for the tier {} is used up",
                want.tier.map_or("external", Tier::word)
            ));
        }
        // Open reservations of children, of all agents, and of the tier.
        let (mut tokens, mut money, mut all, mut tiers) = (0_u64, 0_u64, 0_u64, 0_u64);
        for (who, held) in inner.held(Some(id)) {
            all = all.saturating_add(held.cost);
            if !who.is_main() {
                tokens = tokens.saturating_add(held.tokens);
                money = money.saturating_add(held.cost);
            }
            if held.tier == want.tier {
                tiers = tiers.saturating_add(held.cost);
            }
        }
        let tree = Some(inner.tree).filter(|_| !id.is_main()).unwrap_or_default();
        let own = inner.by_agent.get(id).copied().unwrap_or_default();
        let limits = Some(own.limits).filter(|_| !id.is_main()).unwrap_or_default();
        let (by_tokens, by_cost) = ((want.tokens, want.input_tokens), (want.cost, want.input_cost));
        let caps = [
            (limits.tokens, own.tokens, 0, by_tokens, "its token limit"),
            (limits.cost.map(|c| c.0), own.cost, 0, by_cost, "its cost limit"),
            (tree.tokens, inner.tokens, tokens, by_tokens, "the token limit of all agents"),
            (tree.cost.map(|c| c.0), inner.cost, money, by_cost, "the cost limit of all agents"),
            (inner.left.map(|c| c.0), inner.cost, all, by_cost, "the budget of the session or day"),
            (want.tier_limit.map(|c| c.0), tier, tiers, by_cost, "today's budget for its tier"),
        ];
        for (at, (most, used, held, (wanted, input), what)) in caps.into_iter().enumerate() {
            let Some(most) = most else { continue };
            let fits = used.saturating_add(held).saturating_add(wanted) <= most;
            if !fits && held > 0 {
                // Read under the lock: a change that this answer does not contain advances it later.
                return ReservationResult::Wait(*self.revision.borrow());
            }
            if used.saturating_add(input) > most {
                // The limits of the agent itself are the first two.
                if !id.is_main()
                    && own.tokens == 0
                    && let Some(at) = at.checked_sub(2)
                    && let Some(unfit) = inner.unfit.entry(id.clone()).or_default().get_mut(at)
                {
                    *unfit = most.saturating_sub(used).max(*unfit);
                }
                return ReservationResult::Over(format!(
                    "{what} is too small for the input of the next request"
                ));
            }
        }
        let held = CallEstimate { tokens: want.tokens.max(1), ..want };
        inner.by_agent.entry(id.clone()).or_default().held = Some(held);
        ReservationResult::Go
    }

    /// Whether any agent but the main one has limits, a reservation or costs here.
    pub(crate) fn has_children(&self) -> bool {
        lock(&self.inner).by_agent.keys().any(|id| !id.is_main())
    }

    /// The limit that an agent has reached, as a sentence.
    pub(crate) fn over(&self, id: &AgentId) -> Option<String> {
        lock(&self.inner).over(id)
    }

    /// What its own limits and those of the tree leave for an agent.
    pub(crate) fn left_for(&self, id: &AgentId) -> Allowance {
        if id.is_main() {
            return Allowance::default();
        }
        let inner = lock(&self.inner);
        let mine = inner.by_agent.get(id).copied().unwrap_or_default();
        let tokens = |most: Option<u64>, used: u64| Allowance {
            tokens: most.map(|m| m.saturating_sub(used)),
            cost: None,
        };
        let cost = |most: Option<Cost>, used: u64| Allowance {
            tokens: None,
            cost: most.map(|m| Cost(m.0.saturating_sub(used))),
        };
        tokens(mine.limits.tokens, mine.tokens)
            .and(cost(mine.limits.cost, mine.cost))
            .and(tokens(inner.tree.tokens, inner.tokens))
            .and(cost(inner.tree.cost, inner.cost))
            .and(cost(inner.left, inner.cost))
    }

    /// Records a call of an agent: against its limits, which the main agent has elsewhere, and in the sums of the agent and of all
    /// above it. [`Self::release`] ends the reservation. `missing`: the meaning of a cost that is `None`.
    pub(crate) fn charge(&self, id: &AgentId, usage: &Usage, cost: Option<Cost>, missing: MissingCost) {
        let mut inner = lock(&self.inner);
        let mut above = Some(id.clone());
        while let Some(agent) = above {
            above = agent.parent();
            inner.unreported.entry(agent).or_default().add(id, usage, cost, missing);
        }
        if !id.is_main() {
            let cost = cost.unwrap_or_default().0;
            inner.today = inner.today.saturating_add(cost);
            inner.add(id, tokens::of_usage(usage), cost);
        }
    }

    /// Returns what an agent and all below it have used since the last call for that agent, the end of its last turn.
    pub(crate) fn take_sum(&self, id: &AgentId) -> CallSum {
        lock(&self.inner).unreported.remove(id).unwrap_or_default()
    }

    /// Ends the reservation of an agent: its call is over or was not made.
    pub fn release(&self, id: &AgentId) {
        if let Some(account) = lock(&self.inner).by_agent.get_mut(id) {
            account.held = None;
        }
        self.advance();
    }

    /// Adds what an agent has used in an earlier run of the program.
    pub fn recall(&self, id: &AgentId, tokens: u64, cost: u64) {
        lock(&self.inner).add(id, tokens, cost);
        self.advance();
    }

    /// Tokens and money that an agent has used.
    pub fn used(&self, id: &AgentId) -> (u64, Cost) {
        lock(&self.inner).by_agent.get(id).map_or((0, Cost(0)), |s| (s.tokens, Cost(s.cost)))
    }

    /// What all children have used in the session, and today. (Earlier runs of the day are
    /// not included in the day.)
    pub(crate) fn spent(&self) -> Spending {
        let inner = lock(&self.inner);
        Spending { session: Cost(inner.cost), day: Cost(inner.today) }
    }

    /// Cost of an agent and all below it.
    pub(crate) fn branch(&self, top: &AgentId) -> Cost {
        let inner = lock(&self.inner);
        let mine = inner.by_agent.iter().filter(|(id, _)| id.is_below(top));
        mine.fold(Cost(0), |sum, (_, account)| sum.plus(Cost(account.cost)))
    }

    /// Open reservations of children, in money.
    pub(crate) fn held(&self) -> Cost {
        let inner = lock(&self.inner);
        inner.held(Some(&AgentId::main())).fold(Cost(0), |sum, (_, held)| sum.plus(Cost(held.cost)))
    }

    /// Resets the sums of the day when the date has changed.
    pub(crate) fn new_day(&self, day: &str) {
        let mut inner = lock(&self.inner);
        if inner.tiers.day != day {
            inner.today = 0;
            inner.tiers = Tiers { day: day.to_owned(), spent: HashMap::new() };
        }
    }

    /// What each tier has cost today.
    pub(crate) fn tiers(&self) -> Tiers {
        lock(&self.inner).tiers.clone()
    }

    /// Merges sums of the tiers from the store. What this run has recorded may not be stored yet, so the larger number
    /// is kept.
    pub(crate) fn learn(&self, known: Tiers) {
        let mut inner = lock(&self.inner);
        if inner.tiers.day != known.day {
            inner.tiers = known;
            return;
        }
        for (tier, cost) in known.spent {
            let mine = inner.tiers.spent.entry(tier).or_default();
            *mine = cost.max(*mine);
        }
    }

    /// Adds the cost of a call to its tier.
    pub(crate) fn paid(&self, tier: Tier, cost: Cost) {
        let mut inner = lock(&self.inner);
        let mine = inner.tiers.spent.entry(tier).or_default();
        *mine = mine.plus(cost);
    }

    /// Why no agent can be started: the limit that is used up; `None`: something is left.
    pub fn empty(&self) -> Option<String> {
        let left = lock(&self.inner).left_of_all();
        let over = left.iter().find(|(left, _)| *left == Some(0))?;
        Some(format!("the limit is used up: {}", over.1))
    }

    /// Why no agent can be started that is like those for which `like` returns true: no more is left than was too little for the
    /// first request of one of them.
    pub fn too_little(&self, like: impl Fn(&AgentId) -> bool) -> Option<String> {
        let inner = lock(&self.inner);
        let left = inner.left_of_all();
        let alike = inner.unfit.iter().filter(|(id, _)| like(id));
        let mut caps = alike.flat_map(|(_, unfit)| left.iter().zip(unfit));
        let small = caps.find(|((left, _), unfit)| left.is_some_and(|left| left <= **unfit))?;
        Some(format!("too little is left for the first request of such an agent: {}", small.0.1))
    }

    fn advance(&self) {
        self.revision.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// Resolves when a change has followed `answered`, the revision of an [`ReservationResult::Wait`]: at once when that was before
    /// this call.
    pub(crate) async fn changed_since(&self, answered: Revision) {
        // The sender is part of `self`: the channel cannot close meanwhile.
        let _ = self.revision.subscribe().wait_for(|now| *now != answered).await;
    }

    /// What is left, as text for the model; empty without limits.
    pub fn left(&self) -> String {
        let inner = lock(&self.inner);
        let mut out = Vec::new();
        if let Some(most) = inner.tree.tokens {
            out.push(format!("{} tokens", most.saturating_sub(inner.tokens)));
        }
        let cap = |a: Option<Cost>, b: Option<Cost>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if let Some(most) = cap(inner.tree.cost, inner.left) {
            out.push(dollars(most.0.saturating_sub(inner.cost)));
        }
        out.join(", ")
    }
}

/// The notice that a limit is reached.
pub(crate) fn limit(why: String) -> Notice {
    Notice::new(NoticeKind::Budget, why).hint("raise the limit, then continue it")
}

#[cfg(test)]
#[path = "reservations_tests.rs"]
mod tests;
