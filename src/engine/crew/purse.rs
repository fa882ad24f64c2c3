//! Tokens and money of the whole tree. What a call may cost is taken out before it and settled after it, so that
//! many agents cannot overrun together: when what is left does not cover a call, it waits until nobody else has
//! anything taken out, and then goes alone. So a limit is passed by one reply at most.

use std::collections::HashMap;
use std::sync::Mutex;

use tiller_protocol::{AgentId, AgentLimits, Cost};
use tokio::sync::Notify;

use crate::budget::Spent;
use crate::world::lock;

/// What an agent hears that wants to make a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Go,
    /// Ask again when somebody has settled.
    Wait,
    /// A limit is reached; whose, in words.
    Over(String),
}

#[derive(Clone, Copy, Debug, Default)]
struct Sheet {
    limits: AgentLimits,
    tokens: u64,
    cost: u64,
    held: Option<(u64, u64)>,
}

#[derive(Debug, Default)]
struct Inner {
    sheets: HashMap<AgentId, Sheet>,
    /// Limits of all children together.
    tree: AgentLimits,
    tokens: u64,
    cost: u64,
    /// Of the cost, what was used today in this run: what was before stands in the day's books.
    today: u64,
    /// What the session and the day leave for all children together, counted from the start; `None`: no limit.
    left: Option<Cost>,
}

impl Inner {
    fn held(&self) -> (u64, u64) {
        let each = self.sheets.values().filter_map(|s| s.held);
        each.fold((0, 0), |sum, h| (sum.0 + h.0, sum.1 + h.1))
    }

    fn add(&mut self, id: &AgentId, tokens: u64, cost: u64) {
        self.tokens = self.tokens.saturating_add(tokens);
        self.cost = self.cost.saturating_add(cost);
        let sheet = self.sheets.entry(id.clone()).or_default();
        sheet.held = None;
        sheet.tokens = sheet.tokens.saturating_add(tokens);
        sheet.cost = sheet.cost.saturating_add(cost);
    }

    /// The limit that is reached for an agent, in words.
    fn over(&self, id: &AgentId) -> Option<String> {
        let mine = self.sheets.get(id).copied().unwrap_or_default();
        if let Some(most) = mine.limits.tokens.filter(|m| mine.tokens >= *m) {
            return Some(format!("its limit of {most} tokens is reached"));
        }
        if let Some(most) = mine.limits.cost.filter(|m| mine.cost >= m.0) {
            return Some(format!("its limit of {} is reached", dollars(most.0)));
        }
        let caps = [
            (self.tree.tokens, self.tokens, "the limit of tokens of all agents"),
            (self.tree.cost.map(|c| c.0), self.cost, "the limit of money of all agents"),
            (self.left.map(|c| c.0), self.cost, "the budget of the session or of today"),
        ];
        let reached = caps.iter().find(|(most, used, _)| most.is_some_and(|m| *used >= m));
        reached.map(|(.., what)| format!("{what} is reached"))
    }
}

/// Shared by the main agent and all children.
#[derive(Debug, Default)]
pub(crate) struct Purse {
    inner: Mutex<Inner>,
    settled: Notify,
}

fn dollars(cost: u64) -> String {
    format!("${:.2}", Cost(cost).usd())
}

impl Purse {
    pub(crate) fn limit_tree(&self, tokens: Option<u64>, cost: Option<Cost>) {
        let mut inner = lock(&self.inner);
        inner.tree = AgentLimits { tokens, cost, ..AgentLimits::default() };
        drop(inner);
        self.settled.notify_waiters();
    }

    /// What session and day leave for the children, besides what they have used already.
    pub(crate) fn limit_money(&self, left: Option<Cost>) {
        let mut inner = lock(&self.inner);
        let used = inner.cost;
        inner.left = left.map(|l| Cost(l.0.saturating_add(used)));
        drop(inner);
        self.settled.notify_waiters();
    }

    pub(crate) fn limit(&self, id: &AgentId, limits: AgentLimits) {
        lock(&self.inner).sheets.entry(id.clone()).or_default().limits = limits;
        self.settled.notify_waiters();
    }

    /// Takes out what a call may use at most. `cost`: 0 where the price is not known.
    pub(crate) fn reserve(&self, id: &AgentId, tokens: u64, cost: u64) -> Answer {
        let mut inner = lock(&self.inner);
        if let Some(why) = inner.over(id) {
            return Answer::Over(why);
        }
        let (held_tokens, held_cost) = inner.held();
        let caps = [
            (inner.tree.tokens, inner.tokens, held_tokens, tokens),
            (inner.tree.cost.map(|c| c.0), inner.cost, held_cost, cost),
            (inner.left.map(|c| c.0), inner.cost, held_cost, cost),
        ];
        for (most, used, held, wanted) in caps {
            let Some(most) = most else { continue };
            let fits = used.saturating_add(held).saturating_add(wanted) <= most;
            if !fits && (held_tokens > 0 || held_cost > 0) {
                return Answer::Wait;
            }
        }
        inner.sheets.entry(id.clone()).or_default().held = Some((tokens.max(1), cost));
        Answer::Go
    }

    /// The limit that is reached for an agent, in words.
    pub(crate) fn over(&self, id: &AgentId) -> Option<String> {
        lock(&self.inner).over(id)
    }

    /// A call is over: what it used takes the place of what was taken out for it.
    pub(crate) fn settle(&self, id: &AgentId, tokens: u64, cost: u64) {
        let mut inner = lock(&self.inner);
        inner.today = inner.today.saturating_add(cost);
        inner.add(id, tokens, cost);
        drop(inner);
        self.settled.notify_waiters();
    }

    /// Nothing came of the call.
    pub(crate) fn release(&self, id: &AgentId) {
        if let Some(sheet) = lock(&self.inner).sheets.get_mut(id) {
            sheet.held = None;
        }
        self.settled.notify_waiters();
    }

    /// What an agent has used before (in an earlier run of the program).
    pub(crate) fn recall(&self, id: &AgentId, tokens: u64, cost: u64) {
        lock(&self.inner).add(id, tokens, cost);
        self.settled.notify_waiters();
    }

    /// Tokens and money that an agent has used.
    pub(crate) fn used(&self, id: &AgentId) -> (u64, Cost) {
        lock(&self.inner).sheets.get(id).map_or((0, Cost(0)), |s| (s.tokens, Cost(s.cost)))
    }

    /// What all children have used in the session, and today. (What stands in the day's books from before this run is
    /// left out of the day.)
    pub(crate) fn spent(&self) -> Spent {
        let inner = lock(&self.inner);
        Spent { session: Cost(inner.cost), day: Cost(inner.today) }
    }

    /// What they have taken out for calls that are under way.
    pub(crate) fn held(&self) -> Cost {
        Cost(lock(&self.inner).held().1)
    }

    /// At midnight the day's books begin anew.
    pub(crate) fn new_day(&self) {
        lock(&self.inner).today = 0;
    }

    /// Whether nothing is left for one more agent, and why.
    pub(crate) fn empty(&self) -> Option<String> {
        let inner = lock(&self.inner);
        let caps = [
            (inner.tree.tokens, inner.tokens, "tokens of all agents"),
            (inner.tree.cost.map(|c| c.0), inner.cost, "money of all agents"),
            (inner.left.map(|c| c.0), inner.cost, "money of the session or of today"),
        ];
        let over = caps.iter().find(|(most, used, _)| most.is_some_and(|m| *used >= m))?;
        Some(format!("the {} that may be used are used up", over.2))
    }

    /// Resolves at the next change.
    pub(crate) async fn changed(&self) {
        self.settled.notified().await;
    }

    /// What is left, in words for the model; empty without limits.
    pub(crate) fn left(&self) -> String {
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

#[cfg(test)]
#[path = "purse_tests.rs"]
mod tests;
