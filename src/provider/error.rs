//! Errors of providers, classed by their remedy.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Why a request gave no complete reply. Messages never contain keys or header values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderError {
    /// 401, 403: the key is missing or wrong. Not retried.
    #[error("{0}")]
    Auth(String),
    /// The request exceeds the model's window. Compaction may help.
    #[error("{0}")]
    TooLong(String),
    /// 413: the request has too many bytes, which says nothing about the model's window. Compaction may help.
    #[error("{0}")]
    TooLarge(String),
    /// 408, 409, 429, 5xx, 529: retry, not before `after` if given.
    #[error("{message}")]
    Wait { message: String, after: Option<Duration> },
    /// Connection refused or reset, DNS, TLS, time-out, cut in the middle. Retry.
    #[error("{0}")]
    Network(String),
    /// The server took the request and did not begin its reply in time. It may still be computing it, so that the request
    /// is not sent again.
    #[error("{0}")]
    Unanswered(String),
    /// 400, 404, 422, a spend limit, an error event that a retry cannot resolve.
    #[error("{0}")]
    Rejected(String),
}

impl ProviderError {
    /// Whether a retry may succeed.
    pub fn retryable(&self) -> bool {
        matches!(self, Self::Wait { .. } | Self::Network(_))
    }

    /// Whether a shorter conversation may help.
    pub fn too_long(&self) -> bool {
        matches!(self, Self::TooLong(_) | Self::TooLarge(_))
    }
}
