//! The money of a batch: each case reserves its part before it starts, so that all of them together cannot exceed it.

use tiller_protocol::Cost;

/// Less than this is not worth a case.
const LEAST: Cost = Cost(100);

/// Too little is left for a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

/// The money of all cases: its limit, and its use so far.
#[derive(Debug)]
pub(super) struct Budget {
    /// `None`: without a limit.
    limit: Option<Cost>,
    spent: Cost,
    reserved: Cost,
}

impl Budget {
    /// `spent`: the cost of the cases that have a result.
    pub(super) fn new(limit: Option<Cost>, spent: Cost) -> Self {
        Self { limit, spent, reserved: Cost::default() }
    }

    /// The limit for one more case, which is reserved: its own, or an equal part of what is left for as many as can start
    /// now; `None`: it has none. `failed`: the largest share that did not suffice for this case. It gets twice as much, or the rest.
    ///
    /// # Errors
    /// When too little is left for this case.
    pub(super) fn reserve(
        &mut self,
        own: Option<Cost>,
        failed: Cost,
        starting: usize,
    ) -> Result<Option<Cost>, Exhausted> {
        let Some(limit) = self.limit else { return Ok(own) };
        let left = Cost(limit.0.saturating_sub(self.spent.plus(self.reserved).0));
        let share = Cost(left.0 / u64::try_from(starting.max(1)).unwrap_or(u64::MAX));
        let share = share.max(Cost(failed.0.saturating_mul(2))).max(LEAST).min(left);
        let part = own.map_or(share, |own| own.min(left));
        // A limit of the case itself is the person's word.
        let own = own.is_some_and(|own| own == part && own >= LEAST);
        if (part < LEAST || part <= failed) && !own {
            return Err(Exhausted);
        }
        self.reserved = self.reserved.plus(part);
        Ok(Some(part))
    }

    /// A case has ended with this cost.
    pub(super) fn give_back(&mut self, reserved: Option<Cost>, cost: Cost) {
        if self.limit.is_some() {
            self.reserved = Cost(self.reserved.0.saturating_sub(reserved.unwrap_or_default().0));
        }
        self.spent = self.spent.plus(cost);
    }

    pub(super) fn spent(&self) -> Cost {
        self.spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_share_what_is_left_and_never_reserve_more() {
        let usd = Cost::from_usd;
        let none = Cost::default();
        let mut budget = Budget::new(Some(usd(1.0)), usd(0.2));
        assert_eq!(budget.reserve(None, none, 2), Ok(Some(usd(0.4))));
        assert_eq!(budget.reserve(Some(usd(5.0)), none, 1), Ok(Some(usd(0.4))));
        assert_eq!(budget.reserve(None, none, 1), Err(Exhausted), "all of it is reserved");
        budget.give_back(Some(usd(0.4)), usd(0.1));
        assert_eq!(budget.reserve(Some(usd(0.05)), none, 1), Ok(Some(usd(0.05))));
        budget.give_back(Some(usd(0.05)), usd(0.05));
        budget.give_back(Some(usd(0.4)), usd(0.45));
        assert_eq!(budget.spent(), usd(0.8));
        assert_eq!(budget.reserve(None, none, 1), Ok(Some(usd(0.2))));
        // A share that did not suffice is not given to the same case again; others are not held up by it.
        let mut budget = Budget::new(Some(usd(1.0)), none);
        let failed = usd(0.25);
        assert_eq!(budget.reserve(None, failed, 4), Ok(Some(usd(0.5))));
        assert_eq!(budget.reserve(None, usd(0.5), 3), Err(Exhausted), "no more is left than did not suffice");
        assert_eq!(budget.reserve(None, usd(0.4), 3), Ok(Some(usd(0.5))));
        budget.give_back(Some(usd(0.5)), usd(0.3));
        assert_eq!(budget.reserve(None, failed, 1), Err(Exhausted));
        assert_eq!(budget.reserve(None, none, 4), Ok(Some(usd(0.05))), "another case");
        assert_eq!(budget.reserve(Some(usd(0.1)), failed, 1), Ok(Some(usd(0.1))), "its own limit");
        assert_eq!(budget.reserve(Some(usd(0.5)), failed, 1), Err(Exhausted));
        let mut free = Budget::new(None, usd(0.2));
        assert_eq!(free.reserve(None, none, 3), Ok(None));
        free.give_back(None, usd(0.1));
        assert_eq!(free.spent(), usd(0.3));
    }
}
