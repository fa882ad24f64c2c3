//! Finding words in the whole path. What is not loaded is asked for, page by page, and looked through
//! as it comes.

use crate::cell;
use crate::model::conversation::Conversation;
use crate::text::paint::StyleRange;
use crate::text::{Line, Wrap};
use crate::widget::edit::Edit;

/// One hit: the `n`-th in that cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    pub key: u64,
    pub n: usize,
}

/// A search, being typed or done.
#[derive(Clone, Debug, Default)]
pub struct Search {
    pub edit: Edit,
    /// The words are still being typed.
    pub typing: bool,
    pub hits: Vec<Hit>,
    pub current: Option<usize>,
    /// Older pages are to be looked through as well.
    pub whole: bool,
    /// The first cell that was looked through.
    pub(super) upto: Option<u64>,
}

impl Search {
    /// What is looked for; empty: nothing.
    pub fn words(&self) -> &str {
        self.edit.text()
    }

    /// Looks through everything that is loaded. The current hit stays current.
    pub fn run(&mut self, conv: &Conversation) {
        let before = self.current.and_then(|n| self.hits.get(n)).copied();
        self.upto = conv.cells().front().map(|c| c.key);
        self.hits.clear();
        if !self.words().is_empty() {
            for c in conv.cells() {
                let count = matches(&cell::search_text(c), self.words()).count();
                self.hits.extend((0..count).map(|n| Hit { key: c.key, n }));
            }
        }
        self.current = before.and_then(|b| self.hits.iter().position(|h| *h == b));
    }

    /// Looks through what a page brought in above what was looked through before. Costs that page alone.
    pub fn earlier(&mut self, conv: &Conversation) {
        let known = self.upto.and_then(|key| conv.cells().iter().position(|c| c.key == key));
        let Some(fresh) = known.filter(|_| !self.words().is_empty()) else { return self.run(conv) };
        let mut hits = Vec::new();
        for c in conv.cells().iter().take(fresh) {
            let count = matches(&cell::search_text(c), self.words()).count();
            hits.extend((0..count).map(|n| Hit { key: c.key, n }));
        }
        self.current = self.current.map(|n| n + hits.len());
        hits.append(&mut self.hits);
        self.hits = hits;
        self.upto = conv.cells().front().map(|c| c.key);
    }

    /// Chooses the next hit in a direction, or the last one up from `near` at first.
    pub fn step(&mut self, conv: &Conversation, forward: bool, near: Option<usize>) -> Option<Hit> {
        if self.hits.is_empty() {
            return None;
        }
        let len = self.hits.len();
        let next = match self.current {
            Some(n) if forward => (n + 1) % len,
            Some(n) => (n + len - 1) % len,
            None => {
                // From where one reads: the nearest hit upwards, else the last.
                let near = near.unwrap_or(usize::MAX);
                self.hits.iter().rposition(|h| conv.find(h.key).is_some_and(|i| i <= near)).unwrap_or(0)
            }
        };
        self.current = Some(next);
        self.hits.get(next).copied()
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
