//! Remembers what a server refused and leaves it out of later requests, so that one refusal does not end a session.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use crate::codec::request::Request;

/// The parts of the thinking effort that a request carries.
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

/// The options that a request may carry and a server may refuse, by the names in messages and in the file of
/// [`Learned`](crate::registry::learned::Learned). No permission and no limit that a person set is among them.
pub(crate) const OPTIONS: &[&str] = &[
    "stream_options",
    "prompt_cache_key",
    "cache_control",
    PROGRESS,
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "parallel_tool_calls",
    "store",
    "include",
    "strict",
    SUMMARY,
    SYSTEM,
    NULL_CONTENT,
    EFFORT_FIELD,
    EFFORT_CHOICE,
];
/// Summaries of thoughts: OpenAI gives them to verified organisations only, and refuses the whole request of others.
pub(crate) const SUMMARY: &str = "reasoning.summary";
/// How far the server has read the prompt.
pub(crate) const PROGRESS: &str = "return_progress";
/// A message with the role of the system; its text is then sent in the first message of the user.
pub(crate) const SYSTEM: &str = "system";
/// Null as the text of a reply that has only calls.
pub(crate) const NULL_CONTENT: &str = "null content";
/// The chosen effort.
const EFFORT_FIELD: &str = "effort";
/// A request without an effort: the server asks for none in words.
const EFFORT_CHOICE: &str = "default effort";

/// The options of one model that its server refused.
pub(crate) type Refused = BTreeSet<&'static str>;

/// The refusals of one provider. Thoughts and images are kept in memory only, and are tried once more after a restart.
#[derive(Debug, Default)]
pub(crate) struct Amendments {
    /// Sessions (by [`Request::cache_key`]) whose thoughts the server refused.
    thoughts: Mutex<HashSet<String>>,
    /// For each session, the number of its oldest images that contain a refused one.
    images: Mutex<HashMap<String, usize>>,
    /// Options by model.
    options: Mutex<BTreeMap<String, Refused>>,
    /// Models whose server is not asked for its progress any more, since it refused a request with it and did not say why.
    /// Not kept: it may have been something else.
    doubted: Mutex<HashSet<String>>,
    /// The most output tokens of a reply, by model, as the server stated it.
    outputs: Mutex<HashMap<String, u64>>,
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

/// Phrases that say that a field itself is refused, and not its value.
const UNKNOWN: &[&str] = &[
    "unsupported",
    "not supported",
    "not support",
    "n't support",
    "unrecognized",
    "unrecognised",
    "not recognized",
    "not recognised",
    "unknown",
    "unexpected",
    "extra input",
    "extra field",
    "extra_forbidden",
    "extraneous",
    "additional propert",
    "not permitted",
    "not allowed",
    "not accepted",
    "not implemented",
    "not enabled",
    "not available",
    "no such",
    "cannot be used",
    "can't be used",
    "invalid parameter",
    "invalid argument",
    "invalid field",
    "is deprecated",
    "instead",
    "should be removed",
    "only allowed when",
];

/// Phrases of a refusal of the system's role.
const SYSTEM_ROLE: &[&str] = &[
    "system role not supported",
    "system role is not supported",
    "system messages are not supported",
    "system message is not supported",
    "system prompt is not supported",
    "does not support system",
    "doesn't support system",
    "system_instruction is not supported",
    "developer instruction is not enabled",
    "does not support the system role",
    "system instruction is not enabled",
];

/// Phrases of a refusal that names no part of the request.
const VAGUE: &[&str] = &[
    "bad request",
    "bad_request",
    "badrequest",
    "invalid request",
    "invalid_request",
    "invalid body",
    "request body",
    "invalid json",
    "invalid input",
    "invalid payload",
    "malformed",
    "unprocessable",
    "validation",
    "schema",
    "extra input",
    "extra field",
    "additional propert",
    "unknown field",
    "unknown parameter",
    "unknown argument",
    "unexpected field",
    "unexpected parameter",
    "unexpected keyword",
    "unrecognized",
    "unrecognised",
    // Without a word.
    "refused the request (400).",
    "refused the request (422).",
];

/// Phrases of a limit of the output.
const AT_MOST: &[&str] =
    &["at most", "maximum", "less than or equal", "<=", "too large", "exceed", "must be between", "range"];

fn has(said: &str, words: &[&str]) -> bool {
    words.iter().any(|w| said.contains(w))
}

/// True when the message names a field. A word of everyday language must be marked as a name.
fn names(said: &str, field: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_word = !field.contains(['_', '.']);
    said.match_indices(field).any(|(at, _)| {
        let (before, after) = (&said[..at], &said[at + field.len()..]);
        let whole = !before.ends_with(part) && !after.starts_with(part);
        let quoted = before.ends_with(['\'', '"', '`']) && after.starts_with(['\'', '"', '`']);
        let marked = [
            "parameter ",
            "parameter: ",
            "parameters: ",
            "argument ",
            "argument: ",
            "supplied: ",
            "field ",
            "field: ",
            "body.",
            "body -> ",
        ]
        .iter()
        .any(|mark| before.ends_with(mark));
        whole && (!is_word || quoted || marked)
    })
}

/// A refusal of a request.
#[derive(Clone, Copy)]
pub(crate) struct Refusal<'a> {
    /// The server's message.
    pub(crate) said: &'a str,
    /// The server says that it failed: then its words refuse an option only, since anything else may pass.
    pub(crate) failed: bool,
    /// A person limits the output, so that the limit is never left out.
    pub(crate) bound: bool,
}

/// The names of a limit of the output; the first two are of one format.
const LIMITS: [&str; 3] = ["max_tokens", "max_completion_tokens", "max_output_tokens"];

impl Amendments {
    /// The server refused `request`. `sent`: the options in it; `asked`: its limit of the output. Returns what the next request
    /// leaves out; `None`: nothing more.
    pub(crate) fn take(
        &self,
        request: &Request,
        refusal: Refusal<'_>,
        sent: &[&'static str],
        asked: Option<u64>,
        images: impl FnOnce() -> usize,
    ) -> Option<&'static str> {
        let said = refusal.said.to_lowercase();
        let model = request.model.as_str();
        if let Some(option) = self.refused_option(model, &said, sent, refusal.bound) {
            return Some(option);
        }
        if refusal.failed {
            return None;
        }
        self.part(request, &said, asked, images).or_else(|| {
            // A field of no published format is the first to go where a refusal names nothing.
            let doubtful = sent.contains(&PROGRESS) && has(&said, VAGUE);
            let mut doubted = self.doubted.lock().unwrap_or_else(PoisonError::into_inner);
            (doubtful && doubted.insert(model.to_owned())).then_some(PROGRESS)
        })
    }

    /// The part of the request that the message refuses, beside options.
    fn part(
        &self,
        request: &Request,
        said: &str,
        asked: Option<u64>,
        images: impl FnOnce() -> usize,
    ) -> Option<&'static str> {
        let model = request.model.as_str();
        if let Some(most) = asked.and_then(|asked| stated_output(said, asked)) {
            let mut outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
            return outputs
                .insert(model.to_owned(), most)
                .is_none_or(|before| before > most)
                .then_some("long replies");
        }
        if has(said, EFFORT) {
            let next = match self.told(model) {
                EffortSupport::Effort => EFFORT_FIELD,
                EffortSupport::Nothing => EFFORT_CHOICE,
                EffortSupport::Least => return None,
            };
            self.refuse(model, next);
            return Some("the thinking effort");
        }
        // A thinking block without its signature, or at another place than its own.
        let moved =
            said.contains("thinking") && (said.contains("signature") || said.contains("conversation"));
        if has(said, THOUGHTS) || moved {
            let mut thoughts = self.thoughts.lock().unwrap_or_else(PoisonError::into_inner);
            return thoughts.insert(request.cache_key.clone()).then_some("earlier thinking");
        }
        if has(said, IMAGES) {
            let now = images();
            let mut refused = self.images.lock().unwrap_or_else(PoisonError::into_inner);
            let before = refused.insert(request.cache_key.clone(), now).unwrap_or(0);
            return (now > before).then_some("an image");
        }
        None
    }

    /// The option that the message refuses.
    fn refused_option(
        &self,
        model: &str,
        said: &str,
        sent: &[&'static str],
        bound: bool,
    ) -> Option<&'static str> {
        let refuses = |option: &&&'static str| match **option {
            SYSTEM => has(said, SYSTEM_ROLE),
            SUMMARY => said.contains("reasoning summar") || said.contains(SUMMARY),
            NULL_CONTENT => {
                said.contains("content")
                    && has(
                        said,
                        &["null", "none is not", "nonetype", "valid string", "is required", "missing field"],
                    )
                    && !said.contains("reasoning_content")
            }
            option => names(said, option) && has(said, UNKNOWN),
        };
        let option = sent.iter().find(refuses).copied()?;
        // A limit of the output goes under its other name before it is left out.
        let last = option == LIMITS[2] || LIMITS.iter().any(|name| self.refused(model, name));
        if bound && last && LIMITS.contains(&option) {
            return None;
        }
        self.refuse(model, option).then_some(option)
    }

    /// Notes a refusal. False: it was known.
    fn refuse(&self, model: &str, option: &'static str) -> bool {
        let mut options = self.options.lock().unwrap_or_else(PoisonError::into_inner);
        options.entry(model.to_owned()).or_default().insert(option)
    }

    /// Sends the limit of the output again where it was left out: a person has set one since.
    pub(crate) fn keep_limit(&self, model: &str) {
        let mut options = self.options.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(refused) = options.get_mut(model) else { return };
        refused.remove(LIMITS[2]);
        if LIMITS[..2].iter().all(|name| refused.contains(name)) {
            for name in &LIMITS[..2] {
                refused.remove(name);
            }
        }
    }

    /// True when the model's server refused this option.
    pub(crate) fn refused(&self, model: &str, option: &str) -> bool {
        let doubted = || self.doubted.lock().unwrap_or_else(PoisonError::into_inner).contains(model);
        if option == PROGRESS && doubted() {
            return true;
        }
        let options = self.options.lock().unwrap_or_else(PoisonError::into_inner);
        options.get(model).is_some_and(|refused| refused.contains(option))
    }

    /// Of all models.
    pub(crate) fn options(&self) -> BTreeMap<String, Refused> {
        self.options.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes over what was learned earlier.
    pub(crate) fn recall(&self, known: BTreeMap<String, Refused>) {
        *self.options.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }

    /// The limit of the output that the model's server stated.
    pub(crate) fn output(&self, model: &str) -> Option<u64> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner).get(model).copied()
    }

    /// True when thoughts are sent back to the model that wrote them.
    pub(crate) fn thoughts(&self, request: &Request) -> bool {
        !self.thoughts.lock().unwrap_or_else(PoisonError::into_inner).contains(&request.cache_key)
    }

    /// How many of the oldest images to leave out, because the server refused one of them.
    pub(crate) fn images(&self, request: &Request) -> usize {
        let refused = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        refused.get(&request.cache_key).copied().unwrap_or(0)
    }

    pub(crate) fn told(&self, model: &str) -> EffortSupport {
        match (self.refused(model, EFFORT_FIELD), self.refused(model, EFFORT_CHOICE)) {
            (_, true) => EffortSupport::Least,
            (true, false) => EffortSupport::Nothing,
            (false, false) => EffortSupport::Effort,
        }
    }
}

/// The limit of the output that a message states for a request that asked for more.
fn stated_output(said: &str, asked: u64) -> Option<u64> {
    let of_output = has(
        said,
        &[
            "max_tokens",
            "max_completion_tokens",
            "max_output_tokens",
            "maxoutputtokens",
            "completion tokens",
            "output tokens",
            "max_new_tokens",
        ],
    );
    if !of_output || !has(said, AT_MOST) {
        return None;
    }
    let numbers = said
        .split(|c: char| !c.is_ascii_digit() && c != ',')
        .filter_map(|digits| digits.trim_matches(',').replace(',', "").parse::<u64>().ok());
    numbers.filter(|n| (256..asked).contains(n)).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p17_a_field_is_named_as_a_whole_and_everyday_words_only_as_names() {
        for (said, field, named) in [
            ("unsupported parameter: 'max_tokens'", "max_tokens", true),
            ("use max_completion_tokens", "max_tokens", false),
            ("body.stream_options: extra inputs are not permitted", "stream_options", true),
            ("my_stream_options", "stream_options", false),
            ("unknown parameter: 'store'.", "store", true),
            ("unrecognized request argument supplied: store", "store", true),
            ("the document store is unknown", "store", false),
            ("include the field", "include", false),
        ] {
            assert_eq!(names(said, field), named, "{said} {field}");
        }
    }

    #[test]
    fn p17_a_stated_limit_of_the_output_is_read() {
        for (said, most) in [
            (
                "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for x",
                Some(8192),
            ),
            (
                "max_tokens is too large: 32000. this model supports at most 16384 completion tokens",
                Some(16_384),
            ),
            ("max_tokens must be less than or equal to `8,192`", Some(8192)),
            ("invalid max_tokens value, the valid range of max_tokens is [1, 8192]", Some(8192)),
            ("range of max_tokens should be [1, 65536]", None),
            ("max_tokens is required", None),
            ("at most 9000 tokens per minute", None),
        ] {
            assert_eq!(stated_output(said, 32_000), most, "{said}");
        }
    }
}
