//! Patterns on the bytes of a text, and where they match.

use std::ops::Range;
use std::sync::OnceLock;

use regex::bytes::{Captures, Regex};

/// Where a secret lies, and its name.
pub(crate) type Span = (Range<usize>, &'static str);

/// A pattern that is compiled when it is first needed.
pub(crate) struct LazyPattern {
    compiled: OnceLock<Option<Regex>>,
    compile: fn() -> Option<Regex>,
}

impl LazyPattern {
    pub(crate) const fn new(compile: fn() -> Option<Regex>) -> Self {
        Self { compiled: OnceLock::new(), compile }
    }

    /// Compiled; `None` inside: the pattern is invalid and finds nothing.
    pub(crate) fn for_text(&self, text: &str, may: fn(&str) -> bool) -> Option<&Regex> {
        if self.compiled.get().is_none() && !may(text) {
            return None;
        }
        self.compiled.get_or_init(self.compile).as_ref()
    }
}

/// On bytes: with the tables of Unicode these take megabytes, and milliseconds at each start.
pub(crate) fn regex(pattern: &str) -> Option<Regex> {
    Regex::new(&format!("(?-u){pattern}")).ok()
}

/// Where a match lies, to the end of its last character.
pub(crate) fn range(text: &str, m: regex::bytes::Match<'_>) -> Range<usize> {
    let end = (m.end()..text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(text.len());
    m.start()..end
}

/// What a group of a match holds.
pub(crate) fn group<'t>(text: &'t str, c: &Captures<'t>, name: &str) -> Option<(Range<usize>, &'t str)> {
    let range = range(text, c.name(name)?);
    Some((range.clone(), text.get(range)?))
}
