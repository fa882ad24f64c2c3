//! Budgets: spending against limits.

use tiller_config::schema::Budget;
use tiller_protocol::{Cost, Notice, NoticeKind};

/// Cost so far, as far as prices are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    pub session: Cost,
    pub day: Cost,
}

/// The present limits. The user can raise the hard ones.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    session_soft: Option<Cost>,
    session_hard: Option<Cost>,
    day_soft: Option<Cost>,
    day_hard: Option<Cost>,
    warned_session: bool,
    warned_day: bool,
}

/// Which hard limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitScope {
    Session,
    Day,
}

impl LimitScope {
    /// Text for the user.
    pub fn words(self) -> &'static str {
        match self {
            Self::Session => "this session",
            Self::Day => "today",
        }
    }
}

/// A hard limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitReached {
    pub which: LimitScope,
    pub spent: Cost,
    pub limit: Cost,
    /// Cost of the next request's input, when the limit is not reached yet but this does not fit.
    pub next: Option<Cost>,
}

impl LimitReached {
    /// Text for the user.
    pub fn notice(self) -> Notice {
        let Self { which, spent, limit, next } = self;
        let of = which.words();
        let message = match next {
            None => format!("the budget of {of} is used up: {spent} of {limit}"),
            Some(next) => format!(
                "the next request was not sent: its input alone costs about {next}, and {spent} of \
                {limit} in the budget of {of} is already spent"
            ),
        };
        Notice::new(NoticeKind::Budget, message).hint("raise it with /budget, then continue")
    }
}

/// Returns true for the message of a [`LimitReached::notice`] about the session: also of another process, and of another machine.
pub fn is_used_up(message: &str) -> bool {
    let of = LimitScope::Session.words();
    message.contains(&format!("the budget of {of} is used up"))
        || message.contains("its input alone costs") && message.contains(&format!("in the budget of {of}"))
}

impl Limits {
    pub fn new(budget: &Budget) -> Self {
        let cost = |usd: Option<f64>| usd.map(Cost::from_usd);
        Self {
            session_soft: cost(budget.session_soft),
            session_hard: cost(budget.session_hard),
            day_soft: cost(budget.day_soft),
            day_hard: cost(budget.day_hard),
            ..Self::default()
        }
    }

    /// Resets the session's limits to those of the configuration; those of the day stay.
    pub fn new_session(&mut self, budget: &Budget) {
        let Self { session_soft, session_hard, .. } = Self::new(budget);
        (self.session_soft, self.session_hard, self.warned_session) = (session_soft, session_hard, false);
    }

    /// Resets the day's limits to those of the configuration.
    pub fn new_day(&mut self, budget: &Budget) {
        let Self { day_soft, day_hard, .. } = Self::new(budget);
        (self.day_soft, self.day_hard, self.warned_day) = (day_soft, day_hard, false);
    }

    /// Sets the session's hard limit: from the configuration, the command line or the user.
    pub fn set_session(&mut self, limit: Cost) {
        self.session_hard = Some(limit);
        self.warned_session = false;
    }

    /// Raises the limit that was reached.
    pub fn raise(&mut self, which: LimitScope, to: Cost) {
        match which {
            LimitScope::Session => self.set_session(to),
            LimitScope::Day => self.day_hard = Some(to),
        }
    }

    /// A hard limit that does not allow another request.
    pub fn over(&self, spent: Spending) -> Option<LimitReached> {
        self.over_with(spent, Cost(0))
    }

    /// A hard limit that does not allow another request whose input costs `input`.
    pub fn over_with(&self, spent: Spending, input: Cost) -> Option<LimitReached> {
        let check = |which, spent: Cost, limit: Option<Cost>| {
            let limit = limit.filter(|l| spent >= *l || spent.plus(input) > *l)?;
            Some(LimitReached { which, spent, limit, next: (spent < limit).then_some(input) })
        };
        check(LimitScope::Session, spent.session, self.session_hard)
            .or_else(|| check(LimitScope::Day, spent.day, self.day_hard))
    }

    /// Returns a warning, once for each soft limit that was passed.
    pub fn warning(&mut self, spent: Spending) -> Option<Notice> {
        let rows = [
            (LimitScope::Session, spent.session, self.session_soft, &mut self.warned_session),
            (LimitScope::Day, spent.day, self.day_soft, &mut self.warned_day),
        ];
        for (which, spent, limit, warned) in rows {
            if let Some(limit) = limit.filter(|l| spent >= *l && !*warned) {
                *warned = true;
                let message =
                    format!("{} has cost {spent}, more than the warning limit of {limit}", which.words());
                return Some(Notice::new(NoticeKind::Budget, message));
            }
        }
        None
    }

    /// The first hard limit that is set, and a name for it.
    pub fn first_hard(&self) -> Option<(String, Cost)> {
        let of = |which: LimitScope, limit: Option<Cost>| limit.map(|l| (which.words().to_owned(), l));
        of(LimitScope::Session, self.session_hard).or_else(|| of(LimitScope::Day, self.day_hard))
    }

    /// What may still be spent; `None` without limits.
    pub fn left(&self, spent: Spending) -> Option<Cost> {
        let left = |limit: Option<Cost>, spent: Cost| limit.map(|l| Cost(l.0.saturating_sub(spent.0)));
        match (left(self.session_hard, spent.session), left(self.day_hard, spent.day)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(usd: f64) -> Spending {
        Spending { session: Cost::from_usd(usd), day: Cost::from_usd(usd) }
    }

    #[test]
    fn soft_limits_warn_once_and_hard_ones_stop_until_they_are_raised() {
        let mut l = Limits::new(&Budget {
            session_soft: Some(1.0),
            session_hard: Some(2.0),
            day_hard: Some(3.0),
            ..Budget::default()
        });
        assert!(l.warning(spent(0.5)).is_none());
        assert!(l.warning(spent(1.0)).is_some());
        assert!(l.warning(spent(1.5)).is_none());
        assert_eq!(l.left(spent(1.5)), Some(Cost::from_usd(0.5)));
        assert!(l.over(spent(1.99)).is_none());
        assert!(l.over_with(spent(1.99), Cost::from_usd(0.01)).is_none(), "it fits exactly");
        let next = l.over_with(spent(1.99), Cost::from_usd(0.02)).unwrap();
        assert_eq!((next.which, next.next), (LimitScope::Session, Some(Cost::from_usd(0.02))));
        assert!(next.notice().message.contains("its input alone costs about $0.020"), "{:?}", next.notice());
        assert!(is_used_up(&next.notice().message), "{:?}", next.notice());
        assert!(is_used_up(&l.over(spent(2.0)).unwrap().notice().message));
        assert!(!is_used_up(
            "its price is not known, so the budget of this session ($5.00) cannot be enforced"
        ));
        assert_eq!(l.over(spent(2.0)).unwrap().which, LimitScope::Session);
        l.raise(LimitScope::Session, Cost::from_usd(10.0));
        assert!(l.over(spent(2.5)).is_none());
        let day = l.over(spent(3.0)).unwrap();
        assert_eq!(day.which, LimitScope::Day);
        assert!(!is_used_up(&day.notice().message));
        assert!(Limits::default().over(spent(1e9)).is_none());
    }
}
