//! Tokens and money.

use serde::{Deserialize, Serialize};

/// Token counts of one call, or a sum of them. `input` counts tokens that were neither read from nor
/// written to a cache. Sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// Part of `output` that was reasoning.
    pub reasoning: u64,
    /// At least one of the counts is an estimate: the server did not count, or the reply ended before it did.
    #[serde(skip_serializing_if = "zero")]
    pub estimated: bool,
}

impl Usage {
    /// All tokens that the model read.
    pub fn context(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Adds `other`, saturating.
    pub fn add(&mut self, other: &Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
        self.estimated |= other.estimated;
    }
}

/// Money in millionths of a US dollar. Integers, so that sums are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cost(pub u64);

impl Cost {
    /// In dollars.
    pub fn usd(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// From dollars; negative and non-finite amounts are 0, huge ones saturate.
    pub fn from_usd(usd: f64) -> Self {
        // `as` saturates, and maps NaN to 0.
        Self((usd * 1e6).round().max(0.0) as u64)
    }

    /// Adds, saturating.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// `$0.83`; small amounts to a tenth of a cent, since `$0.00` would read as free.
impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            0 => f.write_str("$0.00"),
            1..500 => f.write_str("<$0.001"),
            500..99_500 => write!(f, "${:.3}", self.usd()),
            _ => write!(f, "${:.2}", self.usd()),
        }
    }
}

/// Whether a value is zero or empty; such fields are left out of JSON.
pub(crate) fn zero<T: Default + PartialEq>(n: &T) -> bool {
    *n == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_amounts_are_not_said_to_be_nothing() {
        let said = |usd| Cost::from_usd(usd).to_string();
        assert_eq!([said(0.0), said(0.0004), said(0.005)], ["$0.00", "<$0.001", "$0.005"]);
        assert_eq!([said(0.00828), said(0.2), said(12.345)], ["$0.008", "$0.20", "$12.35"]);
    }
}
