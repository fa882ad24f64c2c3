//! Failures, classed by what helps.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Why a request gave no (whole) reply. Messages never hold keys or header values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderError {
    /// 401, 403: the key is missing or wrong. Not retried.
    #[error("{0}")]
    Auth(String),
    /// The request is over the model's window, or 413. Compaction may help.
    #[error("{0}")]
    TooLong(String),
    /// 408, 409, 429, 5xx, 529: try again, not before `after` if given.
    #[error("{message}")]
    Wait { message: String, after: Option<Duration> },
    /// Refused, reset, DNS, TLS, time-out, cut in the middle. Try again.
    #[error("{0}")]
    Network(String),
    /// 400, 404, 422, a spend limit, an error event that no retry mends.
    #[error("{0}")]
    Rejected(String),
}

impl ProviderError {
    /// Whether trying the same again may work.
    pub fn retryable(&self) -> bool {
        matches!(self, Self::Wait { .. } | Self::Network(_))
    }
}
