//! What a server has refused once is left out of later requests, so that one refusal does not end a session.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use crate::codec::request::Request;

/// Which parts of the thinking effort a request carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EffortSupport {
    /// What the person chose.
    #[default]
    Effort,
    /// Nothing.
    Nothing,
    /// Not to think: OpenAI takes tools over Chat Completions only then.
    Least,
}

/// The refusals of one provider. Kept in memory only: after a restart the server is asked once more.
#[derive(Debug, Default)]
pub(crate) struct Amendments {
    /// Sessions (by [`Request::cache_key`]) whose thoughts the server does not take back.
    thoughts: Mutex<HashSet<String>>,
    /// Images of a session, the oldest first, one of which the server does not take.
    images: Mutex<HashMap<String, usize>>,
    /// Models that refused the effort field of a request.
    effort: Mutex<HashMap<String, EffortSupport>>,
}

/// Words of a refusal that is about thoughts, or what else went back to the server that wrote it.
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
    // Blocks of a kind that Tiller does not know go back as they came, and stay away with the thoughts.
    "does not match any of the expected tags",
    "items are not persisted",
];

/// Words of a refusal that is about effort.
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

/// Words of a refusal that is about an image.
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
    /// The server refused `request`, which holds so many images, with these words. True: the next request leaves out
    /// what it did not like.
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
        // A thinking block without its signature, or in another place than it was written for.
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

    /// Whether thoughts go back to the model that wrote them.
    pub(crate) fn thoughts(&self, request: &Request) -> bool {
        !self.thoughts.lock().unwrap_or_else(PoisonError::into_inner).contains(&request.cache_key)
    }

    /// How many of the oldest images do not go out, because the server refused one of them.
    pub(crate) fn images(&self, request: &Request) -> usize {
        let refused = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        refused.get(&request.cache_key).copied().unwrap_or(0)
    }

    pub(crate) fn told(&self, model: &str) -> EffortSupport {
        self.effort.lock().unwrap_or_else(PoisonError::into_inner).get(model).copied().unwrap_or_default()
    }
}
