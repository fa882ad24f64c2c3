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

    /// Compiled; `None`: the pattern is invalid and finds nothing.
    pub(crate) fn get(&self) -> Option<&Regex> {
        #[cfg(test)]
        LOOKS.with(|looks| looks.set(looks.get() + 1));
        self.compiled.get_or_init(self.compile).as_ref()
    }
}

#[cfg(test)]
thread_local! {
    /// How often this thread asked for a pattern.
    pub(crate) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// A search that goes forward and is asked about places that may lie before what it has found: each part of the text is
/// searched once, however often.
pub(crate) struct Ahead<'t> {
    text: &'t [u8],
    find: fn(&[u8]) -> Option<usize>,
    /// From its start on, the first hit is at its end.
    known: Option<Range<usize>>,
}

impl<'t> Ahead<'t> {
    pub(crate) fn new(text: &'t [u8], find: fn(&[u8]) -> Option<usize>) -> Self {
        Self { text, find, known: None }
    }

    /// The first hit at `at` or behind it, or the end of the text.
    pub(crate) fn next(&mut self, at: usize) -> usize {
        if let Some(known) = self.known.as_ref().filter(|k| (k.start..=k.end).contains(&at)) {
            return known.end;
        }
        let end = (self.find)(&self.text[at..]).map_or(self.text.len(), |n| at + n);
        self.known = Some(at..end);
        end
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
