//! Search in entries through the full-text index: ranked, or newest first.

mod collect;
mod diversity;
pub(crate) mod expiry;
pub(crate) mod index;
pub(crate) mod lookup;
mod preview;
pub mod rank;
pub mod statistics;
pub mod stem;
mod suggest;
mod tags;
mod text_vectors;
mod vectors;
pub mod words;

use rusqlite::{OptionalExtension, params};
use tiller_protocol::{SearchOrder, SearchPage, SearchQuery, Time};
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::handles::Search;
use crate::search::collect::Collector;
pub use crate::search::diversity::vary;
use crate::search::index::{catch_up, reading};
use crate::search::lookup::bounds;
pub use crate::search::lookup::{Cancel, Lookup};
use crate::search::rank::{Scored, Weights};
pub use crate::search::suggest::nearest;
pub use crate::search::text_vectors::TextHash;
pub use crate::search::vectors::EntryVector;
use crate::search::words::{Term, Words};
use crate::tree::entries::{COLUMNS, Raw};

/// Maximum number of texts that are read for a query that the index cannot answer (signs, scripts without spaces).
pub(crate) const SCANNED: usize = 50_000;

/// Words of a query in lower case, each with others that mean nearly the same.
pub type Near = std::collections::HashMap<String, Vec<String>>;

/// Entries by how well they fit, and what is said beside them.
#[derive(Clone, Debug, Default)]
pub struct Ranking {
    /// Best first.
    pub scored: Vec<Scored>,
    /// The query with the spelling that the index knows.
    pub suggestion: Option<String>,
    /// Entries that are not indexed yet.
    pub behind: u64,
}

/// The part of a text around the first match of a query, in one line, and the match in it in bytes.
pub fn preview_of(text: &str, query: &str) -> (String, (usize, usize)) {
    preview::preview(text, &Words::parse(query).with)
}

impl Search<'_> {
    /// A page of matching entries. Up to `most` new entries are indexed first; [`SearchPage::behind`] counts the rest.
    ///
    /// # Errors
    /// When a database cannot be read.
    pub fn find(&self, query: &SearchQuery, most: u64) -> Result<SearchPage> {
        self.look_up(query, &Lookup::most(most))
    }

    /// A page of matching entries.
    ///
    /// # Errors
    /// When a database cannot be read, or the search is cancelled.
    pub fn look_up(&self, query: &SearchQuery, lookup: &Lookup) -> Result<SearchPage> {
        if query.order == SearchOrder::Best {
            return match self.rank(query, lookup, Weights::default())? {
                Some(ranking) => self.page(query, &ranking, &lookup.cancel),
                None => self.unranked(query, lookup),
            };
        }
        self.unranked(query, lookup)
    }

    /// Entries that contain any of the words, best first. `None`: the index cannot answer this query.
    ///
    /// # Errors
    /// When a database cannot be read, or the search is cancelled.
    pub fn rank(&self, query: &SearchQuery, lookup: &Lookup, weights: Weights) -> Result<Option<Ranking>> {
        self.rank_near(query, lookup, weights, &Near::default())
    }

    /// As [`Self::rank`]; an entry with a near word has a part of the word itself.
    ///
    /// # Errors
    /// When a database cannot be read, or the search is cancelled.
    pub fn rank_near(
        &self,
        query: &SearchQuery,
        lookup: &Lookup,
        weights: Weights,
        near: &Near,
    ) -> Result<Option<Ranking>> {
        let words = Words::parse(&query.text);
        if words.is_empty() {
            return Ok(Some(Ranking::default()));
        }
        let Some(mut terms) = words.terms() else { return Ok(None) };
        for term in &mut terms {
            term.near = near.get(&term.word).map_or_else(String::new, |near| Term::any(near));
        }
        let now = self.store.inner.options.clock.now().millis();
        let found = self.store.inner.index.with(self.store, &lookup.cancel, |index| {
            let behind = catch_up(self.store, index, lookup)?;
            reading(index, || {
                let holds = |seq: i64, signed: &str, open: bool| self.holds(seq, signed, open);
                let look = rank::Look { cancel: &lookup.cancel, holds: &holds };
                let ranked = rank::rank(index, &words, &terms, query, (weights, now, look))?;
                let suggestion = self.suggestion(index, query, &words, (&ranked.unknown, &lookup.cancel))?;
                Ok(Ranking { scored: ranked.scored, suggestion, behind })
            })
        });
        match found {
            // No space or permission for an index here.
            Err(e) if e.is_trouble() || matches!(e, StoreError::ReadOnly { .. }) => {
                tracing::warn!(error = %e, "searched without an index");
                Ok(None)
            }
            found => found.map(Some),
        }
    }

    /// Whether the entry of a row has a word with its signs.
    fn holds(&self, seq: i64, signed: &str, open: bool) -> Result<bool> {
        let raw = self.store.read(|conn| {
            // A payload that has it nowhere need not be parsed. SQLite's lower case is that of ASCII only.
            let part = signed.is_ascii().then_some(signed);
            Ok(conn
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM entries WHERE seq = ?1 AND (?2 IS NULL OR instr(lower(payload), ?2) > 0)"
                ))?
                .query_row(params![seq, part], Raw::from_row)
                .optional()?)
        })?;
        let entry = raw.and_then(|raw| raw.decode().ok());
        Ok(entry.is_some_and(|entry| words::holds(&entry.body.search_text().to_lowercase(), signed, open)))
    }

    /// The page of a ranking that a query asks for.
    ///
    /// # Errors
    /// When the database cannot be read, or the search is cancelled.
    pub fn page(&self, query: &SearchQuery, ranking: &Ranking, cancel: &Cancel) -> Result<SearchPage> {
        let words = Words::parse(&query.text);
        let mut found = Collector::new(self.store, query, &words, words.with_signs(false), cancel);
        let (order, read) = self.varied(&ranking.scored)?;
        found.read = read;
        for entry in order {
            if !found.take(entry.entry, entry.session)? {
                break;
            }
        }
        Ok(SearchPage { behind: ranking.behind, suggestion: ranking.suggestion.clone(), ..found.page })
    }

    /// All words, newest first.
    fn unranked(&self, query: &SearchQuery, lookup: &Lookup) -> Result<SearchPage> {
        let words = Words::parse(&query.text);
        if words.is_empty() {
            return Ok(SearchPage::default());
        }
        let Some(matching) = words.query(query) else { return self.scan(query, &words, &lookup.cancel) };
        let page = self.store.inner.index.with(self.store, &lookup.cancel, |index| {
            let behind = catch_up(self.store, index, lookup)?;
            let mut statement = index.prepare_cached(
                "SELECT d.entry, d.session FROM words JOIN docs d ON d.seq = words.rowid
                 WHERE words MATCH ?1 AND d.time >= ?2 AND d.time < ?3 ORDER BY words.rowid DESC",
            )?;
            let (since, until) = bounds(query);
            let mut rows = statement.query(params![matching, since, until])?;
            let signs = words.with_signs(true);
            let mut found = Collector::new(self.store, query, &words, signs, &lookup.cancel);
            while let Some(row) = rows.next()? {
                if !found.take(row.get(0)?, row.get(1)?)? {
                    break;
                }
            }
            Ok(SearchPage { behind, ..found.page })
        });
        match page {
            // No space or permission for an index here.
            Err(e) if e.is_trouble() || matches!(e, StoreError::ReadOnly { .. }) => {
                tracing::warn!(error = %e, "searched without an index");
                self.scan(query, &words, &lookup.cancel)
            }
            page => page,
        }
    }

    /// The time by the clock of the store.
    pub fn now(&self) -> Time {
        self.store.inner.options.clock.now()
    }

    /// Indexes all new entries.
    ///
    /// # Errors
    /// When a database cannot be read, or the index cannot be written.
    pub fn index(&self) -> Result<()> {
        self.index_some(u64::MAX).map(|_| ())
    }

    /// Indexes up to `most` new entries; returns how many are left.
    ///
    /// # Errors
    /// When a database cannot be read, or the index cannot be written.
    pub fn index_some(&self, most: u64) -> Result<u64> {
        let lookup = Lookup::most(most);
        self.store.inner.index.with(self.store, &lookup.cancel, |index| catch_up(self.store, index, &lookup))
    }

    /// Without the index: scans the newest entries one by one.
    fn scan(&self, query: &SearchQuery, words: &Words, cancel: &Cancel) -> Result<SearchPage> {
        let (since, until) = bounds(query);
        let ids: Vec<(Uuid, Uuid)> = self.store.read(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT id, session FROM entries WHERE time >= ?1 AND time < ?2 AND kind != 'prefix'
                   AND payload LIKE ?3 ESCAPE '\\' ORDER BY seq DESC LIMIT ?4",
            )?;
            let rows = statement.query_map(
                params![
                    since,
                    until,
                    crate::session::sessions::like(words.plainest()),
                    i64::try_from(SCANNED).unwrap_or(0)
                ],
                |r| Ok((r.get(0)?, r.get(1)?)),
            )?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })?;
        let mut found = Collector::new(self.store, query, words, words.with_signs(true), cancel);
        found.literal = true;
        for (entry, session) in ids {
            if !found.take(entry, session)? {
                break;
            }
        }
        Ok(found.page)
    }

    /// The query with its unknown words replaced by near ones that would be found.
    fn suggestion(
        &self,
        index: &rusqlite::Connection,
        query: &SearchQuery,
        words: &Words,
        (unknown, cancel): (&[String], &Cancel),
    ) -> Result<Option<String>> {
        let mut text = query.text.clone();
        let mut any = false;
        for word in unknown {
            let Some(at) = text.to_lowercase().find(word.as_str()) else { continue };
            for near in suggest::near(index, word, cancel)? {
                // It must be found where this query looks.
                let matching = words.narrowed(&Term::exact(&near), query);
                let found = index
                    .prepare_cached("SELECT 1 FROM words WHERE words MATCH ?1 LIMIT 1")?
                    .exists([matching])?;
                if found && text.is_char_boundary(at) && text.is_char_boundary(at + word.len()) {
                    text.replace_range(at..at + word.len(), &near);
                    any = true;
                    break;
                }
            }
        }
        Ok(any.then_some(text))
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
