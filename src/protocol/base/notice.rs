//! The one form of an error that a person sees, on screen and headless alike.

use serde::{Deserialize, Serialize};

/// The area of the cause, which tells who can correct it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// For information.
    Info,
    /// The request cannot be carried out as given.
    User,
    /// Configuration or usage is wrong.
    Config,
    /// A rule or a person refused.
    Denied,
    /// A model or the network failed.
    Network,
    /// A budget or limit was reached.
    Budget,
    /// The store could not be written.
    Store,
    /// A fault of Tiller itself.
    Internal,
}

/// What happened, why, and what to do. Short and plain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    pub kind: NoticeKind,
    /// What happened and why, one sentence.
    pub message: String,
    /// What to do, one short sentence in each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// Technical details, for the log view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Beginnings of a hint to continue the turn. Each client replaces them with its own command for that.
const CONTINUE: [&str; 2] = ["continue to ", "then continue: "];

/// Whether `hint` tells the person to continue the turn, so that its word "continue" stands for a command.
pub fn says_continue(hint: &str) -> bool {
    CONTINUE.iter().any(|begin| hint.starts_with(begin))
}

/// A number of things in words: `1 time`, `2 times`. `one`: the word for one, to which an s makes several.
pub fn counted(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// A message or hint as a sentence: with a capital and, when it is one line, an end mark. Messages are kept without both,
/// because others quote them within a sentence.
pub fn sentence(text: &str) -> String {
    let mut out = capital(text.trim_end());
    if !out.is_empty() && !out.contains('\n') && !out.ends_with(['.', '!', '?', ':', '…']) {
        out.push('.');
    }
    out
}

/// A message or hint as a label: with a capital first letter. A first word that is not plain lower-case letters, such as
/// a file, a setting or a command, stays as it is.
pub fn capital(text: &str) -> String {
    let word = text.split_whitespace().next().unwrap_or_default().trim_end_matches([',', ':', ';']);
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '\'') => {
            format!("{}{}", first.to_ascii_uppercase(), chars.as_str())
        }
        _ => text.to_owned(),
    }
}

impl Notice {
    /// Without hints.
    pub fn new(kind: NoticeKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: Vec::new(), detail: None }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds technical details.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{capital, sentence};

    #[test]
    fn a_sentence_begins_with_a_capital_and_ends_with_a_mark() {
        for (text, shown) in [
            ("this session is open read-only", "This session is open read-only."),
            ("agent a1 started", "Agent a1 started."),
            ("anthropic did not accept the key.", "Anthropic did not accept the key."),
            ("compaction: it failed", "Compaction: it failed."),
            ("config.toml has an error", "config.toml has an error."),
            ("`model` must be a string", "`model` must be a string."),
            ("/continue to retry", "/continue to retry."),
            ("gpt-4o cannot be used", "gpt-4o cannot be used."),
            ("add its price:\ninput = 3.0", "Add its price:\ninput = 3.0"),
            ("Done.", "Done."),
            ("", ""),
        ] {
            assert_eq!(sentence(text), shown);
            assert_eq!(
                capital(text),
                shown.strip_suffix(if text.ends_with('.') { "" } else { "." }).unwrap_or(shown)
            );
        }
    }
}
