//! The rows of a picker, and which of them match the filter.

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32String};

use super::source::Item;

/// Score of a match in the shown text, above a match in the hidden text of a row.
const SEEN: u32 = 10_000;

/// Rows, and those that match the filter.
pub(super) struct FilteredRows {
    items: Vec<Item>,
    /// For each row the text that is searched.
    needles: Vec<Utf32String>,
    /// Indices of the rows that match, best first.
    pub(super) found: Vec<usize>,
    /// The filter that they match; empty: all rows.
    filter: String,
    matcher: Matcher,
}

impl Default for FilteredRows {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            needles: Vec::new(),
            found: Vec::new(),
            filter: String::new(),
            matcher: Matcher::new(Config::DEFAULT),
        }
    }
}

impl FilteredRows {
    /// Takes other rows. None of them matches before [`FilteredRows::search`].
    pub(super) fn set(&mut self, items: Vec<Item>) {
        let needle = |i: &Item| {
            if i.more.is_empty() { i.text.as_str().into() } else { format!("{} {}", i.text, i.more).into() }
        };
        self.needles = items.iter().map(needle).collect();
        self.items = items;
        self.found.clear();
        self.filter.clear();
    }

    /// All rows.
    pub(super) fn all(&self) -> &[Item] {
        &self.items
    }

    /// How many rows match.
    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    /// The row at `place` among those that match.
    pub(super) fn get(&self, place: usize) -> Option<&Item> {
        self.found.get(place).and_then(|i| self.items.get(*i))
    }

    /// The place of the row with this id among those that match.
    pub(super) fn position(&self, id: &str) -> Option<usize> {
        self.found.iter().position(|i| self.items[*i].id == id)
    }

    /// Rows that can match `text`: if it only continues the last filter, those that matched that.
    pub(super) fn among(&self, text: &str) -> Vec<usize> {
        // Characters of the filter's syntax may widen the result as well as narrow it.
        let words = |t: &str| t.chars().all(|c| c.is_alphanumeric() || c == ' ');
        if !self.filter.is_empty() && text.starts_with(&self.filter) && words(text) {
            let mut rows = self.found.clone();
            rows.sort_unstable();
            return rows;
        }
        (0..self.items.len()).collect()
    }

    /// Finds the rows that match `text`; empty: all rows.
    pub(super) fn search(&mut self, text: &str) {
        if text.is_empty() {
            self.found = (0..self.items.len()).collect();
            self.filter.clear();
            return;
        }
        let pattern = Pattern::parse(text, CaseMatching::Smart, Normalization::Smart);
        // A contiguous match counts more than a fuzzy one.
        let whole = Pattern::new(text, CaseMatching::Smart, Normalization::Smart, AtomKind::Substring);
        let mut scored: Vec<(u32, usize)> = self
            .among(text)
            .into_iter()
            .filter_map(|i| {
                let all = pattern.score(self.needles[i].slice(..), &mut self.matcher)?;
                // A match in the shown text counts more than one in the hidden text.
                let text = Utf32String::from(self.items[i].text.as_str());
                let seen = pattern.score(text.slice(..), &mut self.matcher);
                let there = match seen {
                    Some(_) if whole.score(text.slice(..), &mut self.matcher).is_some() => 3 * SEEN,
                    _ if whole.score(self.needles[i].slice(..), &mut self.matcher).is_some() => 2 * SEEN,
                    Some(_) => SEEN,
                    None => 0,
                };
                Some((seen.unwrap_or(all).saturating_add(there), i))
            })
            .collect();
        // Equal scores keep the source's order, so that the list does not jump.
        scored.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        self.found = scored.into_iter().map(|(_, i)| i).collect();
        text.clone_into(&mut self.filter);
    }
}
