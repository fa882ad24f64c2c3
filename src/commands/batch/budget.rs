//! The money of a batch: each case reserves its part before it starts, so that all of them together cannot exceed it.

use tiller_protocol::Cost;

/// Less than this is not worth a case.
const LEAST: Cost = Cost(100);

/// What is left is not enough for one more case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

/// What all cases may cost, and have cost.
#[derive(Debug)]
pub(super) struct Budget {
    /// `None`: without a limit.
    limit: Option<Cost>,
    spent: Cost,
    reserved: Cost,
    /// The least that a case gets: more than each share that was too small for one request.
    least: Cost,
}

impl Budget {
    /// `spent`: the cost of the cases that have a result.
    pub(super) fn new(limit: Option<Cost>, spent: Cost) -> Self {
        Self { limit, spent, reserved: Cost::default(), least: LEAST }
    }

    /// The limit for one more case, which is reserved: its own, or an equal part of what is left for as many as can start
    /// now, or more where that was too small for a case before; `None`: it has none.
    ///
    /// # Errors
    /// When too little is left.
    pub(super) fn reserve(&mut self, own: Option<Cost>, starting: usize) -> Result<Option<Cost>, Exhausted> {
        let Some(limit) = self.limit else { return Ok(own) };
        let left = Cost(limit.0.saturating_sub(self.spent.plus(self.reserved).0));
        let share = Cost(left.0 / u64::try_from(starting.max(1)).unwrap_or(u64::MAX));
        let share = if share < self.least { left.min(Cost(self.least.0.saturating_mul(2))) } else { share };
        let part = own.map_or(share, |own| own.min(left));
        // A limit of the case itself is the person's word.
        let own = own.is_some_and(|own| own == part && own >= LEAST);
        if part < self.least && !own {
            return Err(Exhausted);
        }
        self.reserved = self.reserved.plus(part);
        Ok(Some(part))
    }

    /// A case with this share could not make one request.
    pub(super) fn too_small(&mut self, share: Cost) {
        self.least = self.least.max(Cost(share.0.saturating_add(1)));
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
        let mut budget = Budget::new(Some(usd(1.0)), usd(0.2));
        assert_eq!(budget.reserve(None, 2), Ok(Some(usd(0.4))));
        assert_eq!(budget.reserve(Some(usd(5.0)), 1), Ok(Some(usd(0.4))));
        assert_eq!(budget.reserve(None, 1), Err(Exhausted), "all of it is reserved");
        budget.give_back(Some(usd(0.4)), usd(0.1));
        assert_eq!(budget.reserve(Some(usd(0.05)), 1), Ok(Some(usd(0.05))));
        budget.give_back(Some(usd(0.05)), usd(0.05));
        budget.give_back(Some(usd(0.4)), usd(0.45));
        assert_eq!(budget.spent(), usd(0.8));
        assert_eq!(budget.reserve(None, 1), Ok(Some(usd(0.2))));
        // A share that was too small is not given again: fewer cases run at the same time, or none.
        let mut budget = Budget::new(Some(usd(1.0)), usd(0.0));
        assert_eq!(budget.reserve(None, 4), Ok(Some(usd(0.25))));
        budget.give_back(Some(usd(0.25)), usd(0.0));
        budget.too_small(usd(0.25));
        assert_eq!(budget.reserve(None, 4), Ok(Some(Cost(500_002))));
        assert_eq!(budget.reserve(None, 3), Ok(Some(Cost(499_998))));
        assert_eq!(budget.reserve(None, 2), Err(Exhausted));
        budget.give_back(Some(Cost(500_002)), usd(0.3));
        budget.give_back(Some(Cost(499_998)), usd(0.5));
        assert_eq!(budget.reserve(None, 1), Err(Exhausted), "less is left than was too small");
        assert_eq!(budget.reserve(Some(usd(0.1)), 1), Ok(Some(usd(0.1))), "its own limit");
        assert_eq!(budget.reserve(Some(usd(0.5)), 1), Err(Exhausted));
        let mut free = Budget::new(None, usd(0.2));
        assert_eq!(free.reserve(None, 3), Ok(None));
        free.give_back(None, usd(0.1));
        assert_eq!(free.spent(), usd(0.3));
    }
}
