//! Finding words in the whole path. What is not loaded is asked for, page by page, looked through as it comes and not
//! kept: only its hits are.

use std::collections::{HashMap, HashSet};

use tiller_protocol::EntryId;

use crate::cell;
use crate::model::conversation::{Cell, Conversation};
use crate::text::paint::StyleRange;
use crate::text::{Line, Wrap};
use crate::widget::edit::Edit;

/// Cells at the end that may have changed since the words were typed.
const GROWING: usize = 64;

/// One hit: the `n`-th in all cells of the entry, or in that cell, where it is of no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// 0: it was found in what is not loaded.
    pub key: u64,
    pub entry: Option<EntryId>,
    pub n: usize,
}

/// A search, being typed or done.
#[derive(Clone, Debug, Default)]
pub struct Search {
    pub edit: Edit,
    /// The words are still being typed.
    pub typing: bool,
    /// In the order of the path.
    pub hits: Vec<Hit>,
    pub current: Option<usize>,
    /// True when entries that are not loaded are looked through as well.
    pub whole: bool,
    /// The entry before which nothing was looked through; `None`: everything was.
    pub(super) before: Option<EntryId>,
    /// Number of entries before that.
    pub(super) earlier: u64,
    /// The words that the hits are of.
    pub(super) done: String,
}

impl Search {
    /// Returns what is looked for; empty: nothing.
    pub fn words(&self) -> &str {
        self.edit.text()
    }

    /// Looks through the loaded end of the path. When letters were added to the words, only where they stood. The current
    /// hit stays current.
    pub fn run(&mut self, conv: &Conversation) {
        let before = self.current.and_then(|n| self.hits.get(n)).copied();
        let words = self.words().to_owned();
        let narrower = !self.done.is_empty() && words.starts_with(&self.done);
        let old: Option<HashSet<u64>> = (narrower && self.before == conv.page_before())
            .then(|| self.hits.iter().map(|h| h.key).collect());
        let growing = conv.cells().len().saturating_sub(GROWING);
        let mut hits = Vec::new();
        if !words.is_empty() {
            for (at, c) in conv.cells().iter().enumerate().skip(conv.end_start()) {
                if at < growing && old.as_ref().is_some_and(|old| !old.contains(&c.key)) {
                    continue;
                }
                add(&mut hits, c, c.key, &words);
            }
        }
        (self.before, self.earlier) = (conv.page_before(), conv.earlier());
        (self.hits, self.done) = (hits, words);
        self.current = before.and_then(|b| self.hits.iter().position(|h| *h == b));
    }

    /// Begins again: the conversation was rebuilt.
    pub fn restart(&mut self, conv: &Conversation) {
        self.done.clear();
        self.run(conv);
        self.whole = !self.typing && self.before.is_some();
    }

    /// Looks through the cells of entries further up, of which `first` is the first and `earlier` come before it.
    pub fn look(&mut self, cells: &[Cell], first: Option<EntryId>, earlier: u64) {
        let mut hits: Vec<Hit> = Vec::new();
        for c in cells {
            add(&mut hits, c, 0, self.words());
        }
        self.current = self.current.map(|n| n + hits.len());
        hits.append(&mut self.hits);
        self.hits = hits;
        (self.before, self.earlier) = (first.filter(|_| earlier > 0), earlier);
        self.whole &= self.before.is_some();
    }

    /// Chooses the next hit in a direction, or the last one up from `near` at first.
    pub fn step(&mut self, conv: &Conversation, forward: bool, near: Option<usize>) -> Option<Hit> {
        let len = self.hits.len();
        let next = match self.current {
            _ if len == 0 => return None,
            Some(n) if forward => (n + 1) % len,
            Some(n) => (n + len - 1) % len,
            None => {
                // From where one reads: the nearest hit upwards, else the last.
                let near = near.unwrap_or(usize::MAX);
                let places: HashMap<u64, usize> =
                    conv.cells().iter().enumerate().map(|(n, c)| (c.key, n)).collect();
                let above = |h: &Hit| h.key == 0 || places.get(&h.key).is_some_and(|i| *i <= near);
                self.hits.iter().rposition(above).unwrap_or(0)
            }
        };
        self.current = Some(next);
        self.hit()
    }

    /// The current hit.
    pub fn hit(&self) -> Option<Hit> {
        self.current.and_then(|n| self.hits.get(n)).copied()
    }

    /// The entry of the current hit.
    pub fn hit_entry(&self) -> Option<EntryId> {
        self.hit()?.entry
    }

    /// `3/17`, for the line where the words are typed.
    pub fn count(&self) -> String {
        match (self.words().is_empty(), self.hits.len(), self.current) {
            (true, ..) => String::new(),
            (_, 0, _) => "no matches".into(),
            (_, all, Some(n)) => format!("{}/{all}", n + 1),
            (_, all, None) => format!("{all} matches"),
        }
    }
}

/// The cell of a hit, and which of the matches in it is meant; `None`: it is not loaded.
pub fn place(conv: &Conversation, hit: Hit, words: &str) -> Option<(usize, usize)> {
    let Some(entry) = hit.entry else {
        return conv.find(hit.key).filter(|_| hit.key != 0).map(|index| (index, hit.n));
    };
    let first = conv.find_entry(entry)?;
    let (mut n, mut last) = (hit.n, (first, 0));
    let of_it = |c: &&Cell| c.entry == Some(entry);
    for (k, c) in conv.cells().range(first..).take_while(of_it).enumerate() {
        let here = matches(&cell::search_text(c), words).count();
        if n < here {
            return Some((first + k, n));
        }
        n -= here;
        if here > 0 {
            last = (first + k, here - 1);
        }
    }
    Some(last)
}

/// Adds the hits of a cell behind those of the cells before it.
fn add(hits: &mut Vec<Hit>, c: &Cell, key: u64, words: &str) {
    let same = |h: &&Hit| c.entry.is_some() && h.entry == c.entry;
    let from = hits.last().filter(same).map_or(0, |h| h.n + 1);
    let count = matches(&cell::search_text(c), words).count();
    hits.extend((from..from + count).map(|n| Hit { key, entry: c.entry, n }));
}

/// Where `words` stand in `text`: byte ranges. Capitals matter only when `words` has some.
pub fn matches<'a>(text: &'a str, words: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    let exact = words.chars().any(char::is_uppercase);
    let mut at = 0;
    std::iter::from_fn(move || {
        if words.is_empty() {
            return None;
        }
        while at < text.len() {
            let found =
                if exact { text[at..].find(words).map(|n| at + n) } else { find_fold(text, at, words) }?;
            at = found + words.len().max(1);
            while at < text.len() && !text.is_char_boundary(at) {
                at += 1;
            }
            if let Some(end) = text.get(found..at.min(text.len())).map(|m| found + m.len()) {
                return Some((found, end));
            }
        }
        None
    })
}

/// The same without regard to ASCII capitals; other letters as they are.
fn find_fold(text: &str, from: usize, words: &str) -> Option<usize> {
    let (hay, needle) = (text.as_bytes(), words.as_bytes());
    let first = needle.first()?.to_ascii_lowercase();
    let last = hay.len().checked_sub(needle.len())?;
    (from..=last).find(|at| {
        hay[*at].to_ascii_lowercase() == first
            && text.is_char_boundary(*at)
            && hay[*at..*at + needle.len()].eq_ignore_ascii_case(needle)
    })
}

/// Highlights of a line. `current`: which of its hits is the current one.
pub fn over(line: &Line, words: &str, normal: ratatui::style::Style) -> Vec<StyleRange> {
    if words.is_empty() || (line.wrap == Wrap::Cut && line.is_empty()) {
        return Vec::new();
    }
    matches(line.text(), words)
        .map(|(start, end)| StyleRange { start: start as u32, end: end as u32, style: normal })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_matter_only_when_asked_for() {
        let all = |t: &str, w: &str| matches(t, w).collect::<Vec<_>>();
        assert_eq!(all("Retry retry RETRY", "retry"), [(0, 5), (6, 11), (12, 17)]);
        assert_eq!(all("Retry retry", "Retry"), [(0, 5)]);
        assert_eq!(all("日本日本", "日本"), [(0, 6), (6, 12)]);
        assert_eq!(all("aaa", "aa"), [(0, 2)]);
        assert!(all("abc", "").is_empty());
        assert!(all("é", "e").is_empty());
    }
}
