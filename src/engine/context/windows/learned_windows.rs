//! The store of context windows that servers stated when they rejected a request as too long.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tiller_protocol::{ModelRef, Time};
use tiller_store::Store;

/// Key of the store's fact: a JSON object from `provider/model` to the learned window.
pub(crate) const KEY: &str = "windows";
/// Plausible sizes, in tokens: any other number in a message is something else.
pub(crate) const PLAUSIBLE: std::ops::RangeInclusive<u64> = 512..=100_000_000;
/// Milliseconds after which a learned window is forgotten: servers are reconfigured.
pub(crate) const AGE: i64 = 30 * 24 * 3600 * 1000;

/// The window that a server stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LearnedWindow {
    /// The window in tokens.
    pub(crate) tokens: u64,
    /// No number was given: nine tenths of a request that was refused. Of this session only.
    #[serde(skip)]
    pub(crate) guessed: bool,
    /// The configured window at that time. When it differs now, the user has corrected it.
    pub(crate) stated: Option<u64>,
    pub(crate) time: Time,
}

/// Learned windows by model. Shared by all agents of the process.
#[derive(Clone, Debug, Default)]
pub(crate) struct LearnedWindows(Arc<RwLock<BTreeMap<String, LearnedWindow>>>);

impl LearnedWindows {
    /// Loads what earlier sessions learned. Reads the store: blocks. Unreadable entries are ignored.
    pub(crate) fn load(&self, store: &Store) {
        let text = store.meta(KEY).ok().flatten().unwrap_or_default();
        let known: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap_or_default();
        let known = known.into_iter().filter_map(|(m, v)| Some((m, serde_json::from_value(v).ok()?)));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = known.collect();
    }

    /// The window of a model, where one was learned that is smaller than `stated`.
    pub(crate) fn narrowed(&self, model: &ModelRef, stated: Option<u64>, now: Time) -> Option<u64> {
        let learned = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&model.0).copied();
        let holds =
            |l: &LearnedWindow| l.stated == stated && now.millis().saturating_sub(l.time.millis()) < AGE;
        match (learned.filter(holds).map(|l| l.tokens), stated) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    pub(crate) fn learn(&self, model: &ModelRef, learned: LearnedWindow) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(model.0.clone(), learned);
    }

    /// Records that the server accepted a request of this size. True: a smaller window was learned, and is forgotten.
    pub(crate) fn took(&self, model: &ModelRef, tokens: u64) -> bool {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let wrong = known.get(&model.0).is_some_and(|l| l.tokens < tokens);
        if wrong {
            known.remove(&model.0);
        }
        wrong
    }

    pub(crate) fn as_json(&self) -> Option<String> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let stated: BTreeMap<_, _> = known.iter().filter(|(_, learned)| !learned.guessed).collect();
        serde_json::to_string(&stated).ok()
    }
}
