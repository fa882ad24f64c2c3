//! Masking of secrets in everything that is written: by known values, and by their form.

pub(crate) mod command;
pub(crate) mod hint;
pub(crate) mod named;
pub(crate) mod names;
pub(crate) mod open;
pub(crate) mod pattern;
pub(crate) mod pem;
pub(crate) mod shapes;
pub(crate) mod stream;
pub(crate) mod structure;
pub(crate) mod values;
pub(crate) mod variables;
pub(crate) mod views;

use std::borrow::Cow;

use tiller_protocol::mask::{Secret, mask};

use crate::redact::pattern::Span;

pub use crate::redact::stream::RedactStream;

/// A text is written in a text, which is written in a text, at most so often.
const DEPTH: usize = 3;

/// Shorter known values would mangle ordinary text.
const MIN_KNOWN: usize = 6;

/// Finds secrets and masks them. Made once, at start; holds the known values in memory only.
#[derive(Clone, Default)]
pub struct Redactor {
    pub(crate) known: Vec<String>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} known values)", self.known.len())
    }
}

impl Redactor {
    /// `known`: values that must never be written, such as keys from the environment.
    pub fn new(known: impl IntoIterator<Item = String>) -> Self {
        let mut all: Vec<String> = Vec::new();
        for value in known {
            let value = value.trim().to_owned();
            if value.len() < MIN_KNOWN {
                continue;
            }
            // The forms in which it may be written.
            let json = serde_json::Value::from(value.as_str()).to_string();
            all.push(json.trim_matches('"').to_owned());
            all.push(percent(&value));
            all.push(base64(value.as_bytes()));
            all.push(value);
        }
        // Longest first, so that one inside another is not what is found.
        all.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
        all.dedup();
        Self { known: all }
    }

    /// True when there is something to mask.
    pub fn finds(&self, text: &str) -> bool {
        !self.spans(text).is_empty()
    }

    /// What there is to mask, in order, without overlap.
    pub fn secrets(&self, text: &str) -> Vec<Secret> {
        self.spans(text).into_iter().map(|(range, name)| Secret { range, name }).collect()
    }

    /// The text with secrets masked; borrowed when there is none.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let spans = self.spans(text);
        if spans.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for (span, name) in spans {
            out.push_str(&text[at..span.start]);
            out.push_str(&mask(name));
            at = span.end;
        }
        out.push_str(&text[at..]);
        Cow::Owned(out)
    }

    /// Masks every text in a JSON value (keys are kept).
    pub fn redact_json(&self, value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => {
                if let Cow::Owned(clean) = self.redact(text) {
                    *text = clean;
                }
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(|v| self.redact_json(v)),
            serde_json::Value::Object(map) => {
                for (key, value) in map.iter_mut() {
                    match value {
                        // The name makes a secret of its value: look at both together.
                        serde_json::Value::String(text) => {
                            let joined = format!("{key}: {text:?}");
                            if let Cow::Owned(clean) = self.redact(text) {
                                *text = clean;
                            } else if self.spans(&joined).iter().any(|(s, _)| s.end > key.len() + 2) {
                                *text = mask("secret");
                            }
                        }
                        other => self.redact_json(other),
                    }
                }
            }
            _ => {}
        }
    }

    /// Places of secrets, in order, without overlap.
    fn spans(&self, text: &str) -> Vec<Span> {
        self.spans_of(text, DEPTH)
    }

    /// As many times as `depth` says a text is looked for in the text.
    fn spans_of(&self, text: &str, depth: usize) -> Vec<Span> {
        let mut found: Vec<Span> = Vec::new();
        // First: where two begin at one place, the name of the first is shown.
        structure::structured(text, &mut found);
        for value in &self.known {
            found.extend(text.match_indices(value.as_str()).map(|(i, v)| (i..i + v.len(), "known key")));
        }
        pem::keys(text, &mut found);
        shapes::shapes(text, &mut found);
        named::in_addresses(text, &mut found);
        named::assigned(text, &mut found);
        command::given(text, &mut found);
        if depth > 0 {
            views::each(text, |view| view.spans(&self.spans_of(&view.text, depth - 1), &mut found));
        }
        if found.is_empty() {
            return found;
        }
        found.sort_by(|a, b| a.0.start.cmp(&b.0.start).then(b.0.end.cmp(&a.0.end)));
        let mut out: Vec<Span> = Vec::with_capacity(found.len());
        for (span, name) in found {
            match out.last_mut() {
                Some((last, _)) if span.start < last.end => last.end = last.end.max(span.end),
                _ => out.push((span, name)),
            }
        }
        out
    }
}

/// Whether something is named whose value is secret, wherever that value is.
pub(crate) fn names_a_secret(text: &str) -> bool {
    command::SIGNS.iter().any(|s| text.contains(s))
        || HEADS.iter().any(|s| text.contains(s))
        || names::NAMES.any(text.as_bytes())
}

/// Beginnings of lines whose rest is secret, and that no name in them says.
const HEADS: &[&str] = &["earer", "EARER", "uthorization:", "UTHORIZATION:", "ookie:", "OOKIE:"];

fn percent(value: &str) -> String {
    value
        .bytes()
        .map(|b| {
            if b.is_ascii_alphanumeric() || b"-_.~".contains(&b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}

/// Without padding, so that it is found in the middle of a longer text that begins with it.
fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks_exact(3) {
        let n = (u32::from(chunk[0]) << 16) | (u32::from(chunk[1]) << 8) | u32::from(chunk[2]);
        for shift in [18, 12, 6, 0] {
            out.push(char::from(SIGNS[(n >> shift) as usize & 63]));
        }
    }
    out
}

#[cfg(test)]
#[path = "tests/corpus_tests.rs"]
mod corpus_tests;
#[cfg(test)]
#[path = "tests/quick_tests.rs"]
mod quick_tests;
#[cfg(test)]
#[path = "tests/redact_tests.rs"]
mod tests;
