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
}

impl Budget {
    /// `spent`: the cost of the cases that have a result.
    pub(super) fn new(limit: Option<Cost>, spent: Cost) -> Self {
        Self { limit, spent, reserved: Cost::default() }
    }

    /// The limit for one more case, which is reserved: its own, or an equal part of what is left for as many as can start
    /// now; `None`: it has none.
    ///
    /// # Errors
    /// When too little is left.
    pub(super) fn reserve(&mut self, own: Option<Cost>, starting: usize) -> Result<Option<Cost>, Exhausted> {
        let Some(limit) = self.limit else { return Ok(own) };
        let left = Cost(limit.0.saturating_sub(self.spent.plus(self.reserved).0));
        let part = Cost(left.0 / u64::try_from(starting.max(1)).unwrap_or(u64::MAX));
        let part = own.map_or(part, |own| own.min(left));
        if part < LEAST {
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
        let mut free = Budget::new(None, usd(0.2));
        assert_eq!(free.reserve(None, 3), Ok(None));
        free.give_back(None, usd(0.1));
        assert_eq!(free.spent(), usd(0.3));
    }
}
