//! Patterns of rules: `*` any text, `?` one character, `<name>` one plain word, `\` takes the next
//! character as it is.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};

use crate::shell::HOLE;

/// Longest pattern.
const MAX: usize = 2_000;
/// What `<name>` stands for: a plain word that cannot be an option, an absolute path, a step upwards
/// or a refspec.
const NAME: &str = r"[A-Za-z0-9_]+(?:[.@/-][A-Za-z0-9_]+)*";

/// Up to so many bytes a pattern is sure to compile, so that this can wait until it is first asked.
const SURE: usize = 100;

/// A pattern. It is compiled when it is first asked: a start reads many rules, and most are asked never.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    /// As a regular expression.
    source: String,
    /// `None` inside: it cannot be compiled. That is told when the rule is read.
    exact_case: OnceLock<Option<Regex>>,
    any_case: OnceLock<Option<Regex>>,
    /// Characters that stand for themselves: the more, the more specific.
    literal: usize,
    wild: bool,
}

impl Pattern {
    /// Reads `text`.
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
        let (exact_case, any_case) = (OnceLock::new(), OnceLock::new());
        if text.len() > SURE {
            let build = |fold| compile(&source, fold).map_err(|e| e.to_string());
            (_, _) = (exact_case.set(Some(build(false)?)), any_case.set(Some(build(true)?)));
        }
        Ok(Self { text: text.to_owned(), source, exact_case, any_case, literal, wild })
    }

    /// Exact case: for what loosens.
    pub fn matches(&self, text: &str) -> bool {
        let compiled = self.exact_case.get_or_init(|| compile(&self.source, false).ok());
        compiled.as_ref().is_some_and(|r| r.is_match(text))
    }

    /// Any case: for what narrows, because some file systems do not tell case apart.
    pub fn matches_any_case(&self, text: &str) -> bool {
        let compiled = self.any_case.get_or_init(|| compile(&self.source, true).ok());
        // What narrows does so in doubt, too.
        compiled.as_ref().is_none_or(|r| r.is_match(text))
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

fn compile(source: &str, any_case: bool) -> Result<Regex, regex::Error> {
    RegexBuilder::new(source).case_insensitive(any_case).build()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compiled_later_is_sure_to_compile() {
        // Each kind of part as often as fits, and what folds to several characters.
        for part in ["*", "?", "<a>", "a", "\\*", "K", "\u{17f}", "\u{1e9e}", "\u{10ffff}", "*?<a>x"] {
            let text = part.repeat(SURE / part.len());
            let pattern = Pattern::new(&text).unwrap();
            for any_case in [false, true] {
                assert!(compile(&pattern.source, any_case).is_ok(), "{part}");
            }
        }
    }

    #[test]
    fn long_ones_are_looked_at_when_they_are_read() {
        assert!(Pattern::new(&"?".repeat(MAX + 1)).is_err());
        let long = Pattern::new(&format!("{}*", "ab".repeat(SURE))).unwrap();
        assert!(long.exact_case.get().is_some() && long.any_case.get().is_some());
        assert!(long.matches(&format!("{}c", "ab".repeat(SURE))));
        assert!(long.matches_any_case(&"AB".repeat(SURE)) && !long.matches(&"AB".repeat(SURE)));
    }
}
