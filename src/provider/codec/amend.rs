//! Remembers what a server refused and leaves it out of later requests, so that one refusal does not end a session.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use crate::codec::request::Request;

/// Which parts of the thinking effort a request carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EffortSupport {
    /// The chosen effort.
    #[default]
    Effort,
    /// No effort field.
    Nothing,
    /// Reasoning turned off: with tools, OpenAI's Chat Completions accept nothing else.
    Least,
}

/// What one provider refused. Kept in memory only: after a restart it is tried once more.
#[derive(Debug, Default)]
pub(crate) struct Amendments {
    /// Sessions (by [`Request::cache_key`]) whose thoughts the server refused.
    thoughts: Mutex<HashSet<String>>,
    /// For each session, the number of its oldest images that contain a refused one.
    images: Mutex<HashMap<String, usize>>,
    /// Models that refused the effort field of a request.
    effort: Mutex<HashMap<String, EffortSupport>>,
}

/// Phrases of a refusal of thoughts or of other blocks that are sent back to their author.
const THOUGHTS: &[&str] = &[
    "blocks in the latest assistant message cannot be modified",
    "must remain as they were in the original response",
    "invalid `signature` in `thinking` block",
    "invalid signature in thinking block",
    "thought signature",
    "thought_signature",
    "thoughtsignature",
    "encrypted content",
    "encrypted_content",
    "required following item",
    "required 'reasoning' item",
    "reasoning_content",
    "reasoning_details",
    // Blocks of unknown kinds are sent back unchanged, and are left out together with thoughts.
    "does not match any of the expected tags",
    "items are not persisted",
];

/// Phrases of a refusal of the effort.
const EFFORT: &[&str] = &[
    "reasoning_effort",
    "reasoning.effort",
    "reasoning effort",
    "output_config",
    "thinking.type",
    "thinking.enabled",
    "budget_tokens",
    "thinking_level",
    "thinkinglevel",
    "thinking level",
    "thinking_budget",
    "thinkingbudget",
    "thinking budget",
    "thinkingconfig",
    "thinking_config",
    "does not support thinking",
    "thinking is not supported",
    "must start with a thinking block",
];

/// Phrases of a refusal of an image.
const IMAGES: &[&str] = &[
    "could not process image",
    "unable to process input image",
    "image dimensions exceed",
    "image exceeds",
    "many-image requests",
    "too many images",
    "image.source",
    "image_url",
    "image url",
    "input_image",
    "invalid image",
    "invalid_image",
    "unsupported image",
    "valid image",
    "image data",
    "image format",
    "image parse",
    "inline_data",
    "inlinedata",
    "base64",
];

fn has(said: &str, words: &[&str]) -> bool {
    words.iter().any(|w| said.contains(w))
}

impl Amendments {
    /// The server refused `request`, which holds this many images, with this message. True: the next request leaves out
    /// the refused part.
    pub(crate) fn take(&self, request: &Request, said: &str, images: impl FnOnce() -> usize) -> bool {
        let said = said.to_lowercase();
        if has(&said, EFFORT) {
            let mut effort = self.effort.lock().unwrap_or_else(PoisonError::into_inner);
            let told = effort.entry(request.model.clone()).or_default();
            let next = match told {
                EffortSupport::Effort => EffortSupport::Nothing,
                EffortSupport::Nothing => EffortSupport::Least,
                EffortSupport::Least => return false,
            };
            *told = next;
            return true;
        }
        // A thinking block without its signature, or at another place than its own.
        let moved =
            said.contains("thinking") && (said.contains("signature") || said.contains("conversation"));
        if has(&said, THOUGHTS) || moved {
            let mut thoughts = self.thoughts.lock().unwrap_or_else(PoisonError::into_inner);
            return thoughts.insert(request.cache_key.clone());
        }
        if has(&said, IMAGES) {
            let now = images();
            let mut refused = self.images.lock().unwrap_or_else(PoisonError::into_inner);
            let before = refused.insert(request.cache_key.clone(), now).unwrap_or(0);
            return now > before;
        }
        false
    }

    /// Whether thoughts are sent back to the model that wrote them.
    pub(crate) fn thoughts(&self, request: &Request) -> bool {
        !self.thoughts.lock().unwrap_or_else(PoisonError::into_inner).contains(&request.cache_key)
    }

    /// How many of the oldest images to leave out, because the server refused one of them.
    pub(crate) fn images(&self, request: &Request) -> usize {
        let refused = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        refused.get(&request.cache_key).copied().unwrap_or(0)
    }

    pub(crate) fn told(&self, model: &str) -> EffortSupport {
        self.effort.lock().unwrap_or_else(PoisonError::into_inner).get(model).copied().unwrap_or_default()
    }
}
