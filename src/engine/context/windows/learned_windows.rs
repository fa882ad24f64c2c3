//! Windows of models, learned from servers that refused a request as too long. Stored, so that the next
//! session does not run into the same refusal.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tiller_protocol::{ModelRef, Time};
use tiller_store::Store;

/// The fact of the store that holds them: a JSON object from `provider/model` to what was learned.
pub(crate) const KEY: &str = "windows";
/// No model has a smaller window, and none a larger one: other numbers of a message are something else.
pub(crate) const PLAUSIBLE: std::ops::RangeInclusive<u64> = 512..=100_000_000;
/// What stands right before the number that is the window, in the words of vendors and of local servers.
pub(crate) const BEFORE: &[&str] = &[
    "context length is ",
    "context length of ",
    "context length (",
    "context size (",
    "context size of ",
    "context window of ",
    "context window is ",
    "context window (",
    "tokens allowed (",
    "maximum of ",
    "limit of ",
    "limit is ",
    "n_ctx: ",
    "n_ctx = ",
    "n_ctx\":",
];
/// What stands right behind it.
pub(crate) const BEHIND: &[&str] = &[" maximum", " tokens maximum", " max "];

/// Milliseconds for which a window counts as known: servers are set up anew.
pub(crate) const AGE: i64 = 30 * 24 * 3600 * 1000;

/// What a server's refusal said of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Learned {
    /// The window in tokens.
    pub(crate) tokens: u64,
    /// The window that was stated for the model then. Where another one is stated now, the person has corrected it.
    pub(crate) stated: Option<u64>,
    pub(crate) time: Time,
}

/// By model. Shared by all agents of the process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Windows(Arc<RwLock<BTreeMap<String, Learned>>>);

impl Windows {
    /// Reads what earlier sessions learned. Reads the store: blocks. What cannot be read is learned anew.
    pub(crate) fn load(&self, store: &Store) {
        let text = store.meta(KEY).ok().flatten().unwrap_or_default();
        let known: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap_or_default();
        let known = known.into_iter().filter_map(|(m, v)| Some((m, serde_json::from_value(v).ok()?)));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = known.collect();
    }

    /// The window of a model, where one was learned that is smaller than `stated`.
    pub(crate) fn narrowed(&self, model: &ModelRef, stated: Option<u64>, now: Time) -> Option<u64> {
        let learned = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&model.0).copied();
        let holds = |l: &Learned| l.stated == stated && now.millis().saturating_sub(l.time.millis()) < AGE;
        match (learned.filter(holds).map(|l| l.tokens), stated) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    pub(crate) fn learn(&self, model: &ModelRef, learned: Learned) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(model.0.clone(), learned);
    }

    /// The server took a request of so many tokens. True: a smaller window was learned, and is forgotten.
    pub(crate) fn took(&self, model: &ModelRef, tokens: u64) -> bool {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let wrong = known.get(&model.0).is_some_and(|l| l.tokens < tokens);
        if wrong {
            known.remove(&model.0);
        }
        wrong
    }

    pub(crate) fn as_json(&self) -> Option<String> {
        serde_json::to_string(&*self.0.read().unwrap_or_else(PoisonError::into_inner)).ok()
    }
}
