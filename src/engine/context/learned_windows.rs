//! Windows of models, learned from servers that refused a request as too long. Stored, so that the next
//! session does not run into the same refusal.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use tiller_protocol::ModelRef;
use tiller_store::Store;

/// The fact of the store that holds them: a JSON object from `provider/model` to tokens.
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

/// In tokens, by model. Shared by all agents of the process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Windows(Arc<RwLock<BTreeMap<String, u64>>>);

impl Windows {
    /// Reads what earlier sessions learned. Reads the store: blocks. What cannot be read is learned anew.
    pub(crate) fn load(&self, store: &Store) {
        let known = store.meta(KEY).ok().flatten().and_then(|text| serde_json::from_str(&text).ok());
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = known.unwrap_or_default();
    }

    /// The window of a model, where one was learned that is smaller than `stated`.
    pub(crate) fn narrowed(&self, model: &ModelRef, stated: Option<u64>) -> Option<u64> {
        let learned = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&model.0).copied();
        match (learned, stated) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Keeps a window. False: it was known.
    pub(crate) fn learn(&self, model: &ModelRef, tokens: u64) -> bool {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(model.0.clone(), tokens) != Some(tokens)
    }

    pub(crate) fn as_json(&self) -> Option<String> {
        serde_json::to_string(&*self.0.read().unwrap_or_else(PoisonError::into_inner)).ok()
    }
}
