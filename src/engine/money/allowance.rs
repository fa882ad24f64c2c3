//! What limits leave for a request.

use tiller_config::schema::ModelInfo;
use tiller_protocol::{Cost, Usage};
use tiller_provider::models;

/// What the limits leave for a side call; `None`: any amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allowance {
    pub(crate) tokens: Option<u64>,
    pub(crate) cost: Option<Cost>,
}

impl Allowance {
    /// The smaller of each.
    pub(crate) fn and(self, other: Self) -> Self {
        let tokens = self.tokens.into_iter().chain(other.tokens).min();
        Self { tokens, cost: self.cost.into_iter().chain(other.cost).min() }
    }

    /// Why a request with this many input tokens is not made; `None`: it fits.
    pub(crate) fn refuses(self, input: u64, info: &ModelInfo) -> Option<String> {
        if let Some(left) = self.tokens.filter(|left| input > *left) {
            return Some(format!(
                "the request was not sent: its input has about {input} tokens, and {left} are left of the limit"
            ));
        }
        let cost = models::cost(&Usage { input, ..Usage::default() }, info).unwrap_or_default();
        let left = self.cost.filter(|left| cost > *left)?;
        Some(format!(
            "the request was not sent: its input alone costs about {cost}, and {left} is left of the budget"
        ))
    }
}
