//! Patterns of rules: `*` any text, `?` one character, `<name>` one plain word, `\` takes the next
//! character as it is.

use regex::{Regex, RegexBuilder};

use crate::shell::HOLE;

/// Longest pattern.
const MAX: usize = 2_000;
/// What `<name>` stands for: a plain word that cannot be an option, an absolute path, a step upwards
/// or a refspec.
const NAME: &str = r"[A-Za-z0-9_]+(?:[.@/-][A-Za-z0-9_]+)*";

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    exact_case: Regex,
    any_case: Regex,
    /// Characters that stand for themselves: the more, the more specific.
    literal: usize,
    wild: bool,
}

impl Pattern {
    /// Compiles `text`.
    ///
    /// # Errors
    /// In words.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.len() > MAX {
            return Err(format!("a pattern may have {MAX} bytes at most"));
        }
        let mut source = String::from(r"\A");
        let (mut literal, mut wild) = (0, false);
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '*' => {
                    source.push_str("(?s:.*)");
                    wild = true;
                }
                '?' => {
                    source.push_str(&format!("[^{HOLE}]"));
                    wild = true;
                }
                '<' if is_name(chars.as_str()) => {
                    source.push_str(NAME);
                    wild = true;
                    chars.by_ref().find(|c| *c == '>');
                }
                _ => {
                    let c = if c == '\\' { chars.next().unwrap_or(c) } else { c };
                    source.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
                    literal += 1;
                }
            }
        }
        source.push_str(r"\z");
        let build =
            |fold| RegexBuilder::new(&source).case_insensitive(fold).build().map_err(|e| e.to_string());
        Ok(Self { text: text.to_owned(), exact_case: build(false)?, any_case: build(true)?, literal, wild })
    }

    /// Exact case: for what loosens.
    pub fn matches(&self, text: &str) -> bool {
        self.exact_case.is_match(text)
    }

    /// Any case: for what narrows, because some file systems do not tell case apart.
    pub fn matches_any_case(&self, text: &str) -> bool {
        self.any_case.is_match(text)
    }

    /// As written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Number of characters that stand for themselves.
    pub fn literal(&self) -> usize {
        self.literal
    }

    /// True when it stands for more than one text.
    pub fn is_wild(&self) -> bool {
        self.wild
    }
}

/// `word>` follows.
fn is_name(rest: &str) -> bool {
    rest.find('>').is_some_and(|end| {
        end > 0 && end <= 20 && rest[..end].chars().all(|c| c.is_ascii_lowercase() || c == '-' || c == '_')
    })
}

/// Text as a pattern that stands for itself only.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '\\' | '<') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
