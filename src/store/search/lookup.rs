//! How far a search goes, and what ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tiller_protocol::{SearchQuery, Time};

use crate::error::{Result, StoreError};

/// Cancels a search from another thread. The default never does.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Option<Arc<AtomicBool>>);

impl Cancel {
    /// One that can be cancelled.
    pub fn new() -> Self {
        Self(Some(Arc::default()))
    }

    /// Ends the search soon with [`StoreError::Cancelled`].
    pub fn cancel(&self) {
        if let Some(flag) = &self.0 {
            flag.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// # Errors
    /// When it was cancelled.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(StoreError::Cancelled) } else { Ok(()) }
    }
}

/// How much of what is new is indexed before a search, and what ends it.
#[derive(Clone, Debug)]
pub struct Lookup {
    /// New entries that are indexed at most.
    pub most: u64,
    /// Time after which no more entries are indexed; some hundred are in any case. `None`: no limit.
    pub within: Option<Duration>,
    pub cancel: Cancel,
}

impl Lookup {
    /// Up to this number of new entries.
    pub fn most(most: u64) -> Self {
        Self { most, within: None, cancel: Cancel::default() }
    }

    /// As many new entries as can be indexed while a person waits: half a second.
    pub fn prompt() -> Self {
        Self { most: u64::MAX, within: Some(Duration::from_millis(500)), cancel: Cancel::default() }
    }
}

/// The first and the last millisecond that a query asks for; the last is excluded.
pub(crate) fn bounds(query: &SearchQuery) -> (i64, i64) {
    (query.since.map_or(i64::MIN, Time::millis), query.until.map_or(i64::MAX, Time::millis))
}
