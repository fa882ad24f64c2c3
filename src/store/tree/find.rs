//! Finds entries for the filter of the tree browser: numbers only, all at once, so that the browser can keep its
//! position.

use std::collections::BTreeMap;

use rusqlite::params;
use tiller_protocol::tree::TreeFound;
use tiller_protocol::{SearchQuery, SessionId};
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::handles::Search;
use crate::search::index::catch_up;
use crate::search::lookup::{Cancel, Lookup};
use crate::search::words::Words;

/// Maximum number of entries that are found: the newest.
const MOST: usize = 200_000;
/// The same when every payload has to be read.
const SCANNED: usize = 20_000;

impl Search<'_> {
    /// Numbers of all entries that contain the words, in the sessions of a project or of all. Up to `most` new entries
    /// are indexed first.
    ///
    /// # Errors
    /// When a database cannot be read.
    pub fn find_in_trees(&self, text: &str, project: Option<&str>, most: u64) -> Result<TreeFound> {
        let words = Words::parse(text);
        if words.is_empty() {
            return Ok(TreeFound::default());
        }
        let query = SearchQuery { project: project.map(Into::into), ..SearchQuery::default() };
        let Some(matching) = words.query(&query) else { return self.scan_trees(words.plainest(), project) };
        let found = self.store.inner.index.with(self.store, &Cancel::default(), |index| {
            let behind = catch_up(self.store, index, &Lookup::most(most))?;
            let mut statement = index.prepare_cached(
                "SELECT words.rowid, d.session FROM words JOIN docs d ON d.seq = words.rowid
                 WHERE words MATCH ?1 ORDER BY words.rowid DESC LIMIT ?2",
            )?;
            let limit = i64::try_from(MOST + 1).unwrap_or(i64::MAX);
            let rows = statement.query_map(params![matching, limit], |r| Ok((r.get(0)?, r.get(1)?)))?;
            Ok(TreeFound { behind, ..grouped(rows, MOST)? })
        });
        match found {
            // No space or permission for an index here.
            Err(e) if e.is_trouble() || matches!(e, StoreError::ReadOnly { .. }) => {
                tracing::warn!(error = %e, "searched without an index");
                self.scan_trees(words.plainest(), project)
            }
            found => found,
        }
    }

    fn scan_trees(&self, word: &str, project: Option<&str>) -> Result<TreeFound> {
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT e.seq, e.session FROM entries e JOIN sessions s ON s.id = e.session
                 WHERE (?1 IS NULL OR s.project = ?1) AND e.kind != 'prefix' AND e.payload LIKE ?2 ESCAPE '\\'
                 ORDER BY e.seq DESC LIMIT ?3",
            )?;
            let limit = i64::try_from(SCANNED + 1).unwrap_or(i64::MAX);
            let like = crate::session::sessions::like(word);
            let rows = statement.query_map(params![project, like, limit], |r| Ok((r.get(0)?, r.get(1)?)))?;
            grouped(rows, SCANNED)
        })
    }
}

/// Groups rows by session; they are read newest first.
fn grouped(rows: impl Iterator<Item = rusqlite::Result<(i64, Uuid)>>, most: usize) -> Result<TreeFound> {
    let mut sessions: BTreeMap<Uuid, Vec<i64>> = BTreeMap::new();
    let (mut n, mut more) = (0, false);
    for row in rows {
        let (seq, session) = row?;
        if n == most {
            more = true;
            break;
        }
        n += 1;
        sessions.entry(session).or_default().push(seq);
    }
    let sessions = sessions.into_iter().map(|(id, mut seqs)| {
        seqs.reverse();
        (SessionId(id), seqs)
    });
    Ok(TreeFound { sessions: sessions.collect(), more, behind: 0 })
}
