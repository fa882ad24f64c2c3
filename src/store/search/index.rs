//! The full-text index: a separate database beside the main one (`search.db`), derived from it and safe to delete. So
//! writes during a turn do not pay for it, and damage costs a rebuild, not a session.
//!
//! Rows are indexed in the ascending order of `entries.seq`. Words for the row's kind, session, project and agent stand
//! in a column of their own, so that a filter is one more word of the query instead of a scan. Another column has the
//! stems of the words, where they differ, and the parts of names in camel case.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use tiller_protocol::SearchRole;
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::handles::Search;
use crate::open::Store;
use crate::open::check;
use crate::open::connect::Target;
use crate::open::folder;
use crate::search::expiry;
use crate::search::lookup::{Cancel, Lookup};
use crate::search::stem::{camel_case_parts, stem, words};
use crate::search::suggest;
use crate::search::tags::{role_number, role_tag, tag};
use crate::session::made_by::MadeBy;
use crate::tree::entries::{COLUMNS, Raw};

/// Version of the index; an index of another version is rebuilt.
const VERSION: u32 = 6;
/// Entries in one transaction.
const STEP: u64 = 500;
/// Entries that are indexed before a search, however long that takes.
const LEAST: u64 = 2 * STEP;
/// Bytes of an entry's text that are indexed. Replies are far shorter; the full text of huge outputs is on disk.
const TEXT: usize = 256 << 10;
/// How long to wait for another process that indexes.
const BUSY: Duration = Duration::from_secs(2);

pub(crate) const SCHEMA: &str = "
CREATE TABLE docs (
  seq     INTEGER PRIMARY KEY,
  entry   BLOB NOT NULL,
  session BLOB NOT NULL,
  time    INTEGER NOT NULL,
  role    INTEGER,          -- its place in `SearchRole::ALL`; none: it is not searched
  prev    INTEGER,          -- row of its parent
  next    INTEGER,          -- row of its first child
  len     INTEGER NOT NULL  -- words
) STRICT;
CREATE VIRTUAL TABLE words USING fts5(
  text, stems, tags, content='', columnsize=0, prefix='2 3',
  tokenize='unicode61 remove_diacritics 2'
);
CREATE TABLE vocabulary (
  word TEXT PRIMARY KEY,
  n    INTEGER NOT NULL  -- entries that contain it, those of tools aside
) STRICT, WITHOUT ROWID;
CREATE TABLE vector_models (
  id    INTEGER PRIMARY KEY,
  model TEXT NOT NULL UNIQUE,
  used  INTEGER NOT NULL  -- milliseconds since 1970 of its last use for indexing, up to an hour too early
) STRICT;
CREATE TABLE vectors (
  model INTEGER NOT NULL,
  seq   INTEGER NOT NULL,
  v     BLOB NOT NULL,  -- empty: the entry has no text, or the model refuses it
  -- With rows of their own: in the index itself a vector of more than a quarter of a page takes a page more.
  PRIMARY KEY (model, seq)
) STRICT;
CREATE TABLE basis (
  expired INTEGER NOT NULL  -- how often an index of this database had expired when this one was made
) STRICT;
INSERT INTO basis VALUES (0);";

/// Deletes what [`SCHEMA`] creates.
const CLEAR: &str = "
DROP TABLE docs;
DROP TABLE words;
DROP TABLE vocabulary;
DROP TABLE vectors;
DROP TABLE vector_models;
DROP TABLE basis;";

/// Vectors of texts that are no entries. Added later; an index without it stays.
const TEXT_VECTORS: &str = "
CREATE TABLE IF NOT EXISTS text_vectors (
  id    INTEGER PRIMARY KEY,
  model TEXT NOT NULL,
  hash  BLOB NOT NULL,
  v     BLOB NOT NULL,  -- empty: the model knows no word of it, or refuses it
  UNIQUE (model, hash)
) STRICT;";

/// The open index.
#[derive(Default)]
pub(crate) struct Index {
    /// `None` before its first use.
    open: Mutex<Option<Connection>>,
    /// What may cancel the present work. SQLite asks it every some thousand steps.
    cancel: Arc<Mutex<Cancel>>,
}

/// Steps of SQLite between two looks at [`Index::cancel`]: well below a millisecond.
const LOOK: i32 = 2_000;

impl Index {
    /// Calls `work` with the index, opening it first if needed. A damaged index is deleted and rebuilt once.
    pub(crate) fn with<T>(
        &self,
        store: &Store,
        cancel: &Cancel,
        work: impl Fn(&Connection) -> Result<T>,
    ) -> Result<T> {
        let mut slot = self.open.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        cancel.check()?;
        *self.cancel.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = cancel.clone();
        for last in [false, true] {
            let conn = match slot.take() {
                Some(conn) => conn,
                None => self.watched(open(store)?)?,
            };
            let path = place(&store.inner.target);
            match work(&conn).map_err(|e| e.at(&path)) {
                Err(StoreError::Corrupt { .. }) if !last => {
                    drop(conn);
                    throw_away(&path);
                }
                result => {
                    *slot = Some(conn);
                    return result;
                }
            }
        }
        Err(StoreError::Internal("the search index could not be created".into()))
    }

    /// As [`Self::with`], for what only reads.
    pub(crate) fn read<T>(
        &self,
        store: &Store,
        cancel: &Cancel,
        work: impl Fn(&Connection) -> Result<T>,
    ) -> Result<T> {
        self.with(store, cancel, |index| reading(index, || work(index)))
    }

    fn watched(&self, mut conn: Connection) -> Result<Connection> {
        let cancel = Arc::clone(&self.cancel);
        let stop = move || cancel.lock().unwrap_or_else(std::sync::PoisonError::into_inner).is_cancelled();
        conn.progress_handler(LOOK, Some(stop))?;
        Ok(conn)
    }
}

/// Reads the index in one transaction: of many small statements each would lock and unlock its file.
pub(crate) fn reading<T>(index: &Connection, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let transaction = index.unchecked_transaction()?;
    let found = work()?;
    transaction.commit()?;
    Ok(found)
}

/// Writes the index in one transaction, which is undone when `work` fails. Other processes are locked out from its beginning,
/// so that none changes what `work` reads.
pub(crate) fn writing<T>(index: &Connection, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let transaction = Transaction::new_unchecked(index, TransactionBehavior::Immediate)?;
    let made = work()?;
    transaction.commit()?;
    Ok(made)
}

impl Search<'_> {
    /// Problems of the index, if there is one. A damaged one is deleted: the next search makes it again.
    pub(crate) fn verify_index(&self) -> Vec<String> {
        let path = place(&self.store.inner.target);
        if self.store.inner.immutable || folder::size(&path) == 0 {
            return Vec::new();
        }
        let checked = self
            .store
            .inner
            .index
            .read(self.store, &Cancel::default(), |index| Ok(check::list(index, "integrity_check")?));
        // What cannot be opened now is made again when it is needed.
        let found = checked.unwrap_or_default();
        if !found.is_empty() {
            self.forget_index();
        }
        found
    }

    /// Deletes the index, which is rebuilt on its next use: words of permanently removed sessions must not stay in it.
    pub fn forget_index(&self) {
        let mut slot = self.store.inner.index.open.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        drop(slot.take());
        if self.store.inner.target.is_file() {
            throw_away(&place(&self.store.inner.target));
        }
    }
}

fn place(target: &Target) -> PathBuf {
    match target {
        Target::File(path) => folder::search_index(path),
        Target::Memory(name) => PathBuf::from(format!("{name}-search")),
    }
}

fn throw_away(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let file = folder::beside(path, suffix);
        if let Err(error) = std::fs::remove_file(&file)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "a damaged search index could not be removed");
        }
    }
}

fn open(store: &Store) -> Result<Connection> {
    let path = place(&store.inner.target);
    for last in [false, true] {
        let made = open_at(store, &path);
        match made {
            Err(StoreError::Corrupt { .. } | StoreError::NotOurs { .. }) if !last => throw_away(&path),
            made => return made,
        }
    }
    Err(StoreError::Internal("the search index could not be opened".into()))
}

fn open_at(store: &Store, path: &Path) -> Result<Connection> {
    let sql = |e: rusqlite::Error| StoreError::from_sql(&e, path);
    let conn = match &store.inner.target {
        Target::File(_) => {
            folder::prepare_file(path, store.inner.options.uid)?;
            Connection::open(path).map_err(sql)?
        }
        // Its only connection, which lives as long as the store.
        Target::Memory(_) => Connection::open_in_memory().map_err(sql)?,
    };
    conn.busy_timeout(BUSY).map_err(sql)?;
    conn.execute_batch(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY;
         PRAGMA cell_size_check=ON; PRAGMA journal_size_limit=8388608; PRAGMA cache_size=-16384;",
    )
    .map_err(sql)?;
    let version: u32 = conn.query_row("PRAGMA user_version", [], |r| r.get(0)).map_err(sql)?;
    if version == 0 {
        conn.execute_batch("BEGIN IMMEDIATE").map_err(sql)?;
        // Another process may have created it in the meantime.
        let version: u32 = conn.query_row("PRAGMA user_version", [], |r| r.get(0)).map_err(sql)?;
        let schema = if version == 0 { SCHEMA } else { "" };
        conn.execute_batch(&format!("{schema} PRAGMA user_version={VERSION}; COMMIT")).map_err(sql)?;
    } else if version != VERSION {
        return Err(StoreError::NotOurs { path: path.into() });
    }
    conn.execute_batch(TEXT_VECTORS).map_err(sql)?;
    if !fits(store, &conn)? {
        return Err(StoreError::NotOurs { path: path.into() });
    }
    Ok(conn)
}

/// Whether the index belongs to this database: a salvage renumbers rows.
fn fits(store: &Store, index: &Connection) -> Result<bool> {
    let last: Option<(i64, Uuid)> = index
        .query_row("SELECT seq, entry FROM docs ORDER BY seq DESC LIMIT 1", [], |r| {
            Ok((r.get(0)?, r.get(1)?))
        })
        .optional()?;
    let Some((seq, entry)) = last else { return Ok(true) };
    store.read(|conn| {
        let found: Option<Uuid> =
            conn.query_row("SELECT id FROM entries WHERE seq = ?1", [seq], |r| r.get(0)).optional()?;
        // The last row may have been removed with its session; then earlier rows are compared.
        Ok(found.is_none_or(|found| found == entry))
    })
}

/// Indexes new entries; returns how many are left.
pub(crate) fn catch_up(store: &Store, index: &Connection, lookup: &Lookup) -> Result<u64> {
    renew(store, index)?;
    let begun = Instant::now();
    let mut taken = 0;
    loop {
        lookup.cancel.check()?;
        let from = last(index)?;
        let late = taken >= LEAST && lookup.within.is_some_and(|within| begun.elapsed() >= within);
        let rows = if taken < lookup.most && !late { batch(store, from)? } else { Vec::new() };
        if rows.is_empty() {
            return store.read(|conn| {
                let left: i64 =
                    conn.query_row("SELECT coalesce(max(seq), 0) - ?1 FROM entries", [from], |r| r.get(0))?;
                Ok(u64::try_from(left).unwrap_or(0))
            });
        }
        taken += rows.len() as u64;
        put(index, from, &rows)?;
    }
}

/// Empties an index that has expired since it was made.
fn renew(store: &Store, index: &Connection) -> Result<()> {
    let times = store.read(|conn| Ok(expiry::times(conn)?))?;
    let is_current = || -> Result<bool> {
        let made: i64 = index.prepare_cached("SELECT expired FROM basis")?.query_row([], |r| r.get(0))?;
        Ok(made == times)
    };
    if is_current()? {
        return Ok(());
    }
    writing(index, || {
        // Another process may have emptied it in the meantime.
        if !is_current()? {
            index.execute_batch(&format!("{CLEAR}{SCHEMA}"))?;
            index.execute("UPDATE basis SET expired = ?1", [times])?;
        }
        Ok(())
    })
}

fn last(index: &Connection) -> Result<i64> {
    Ok(index.query_row("SELECT coalesce(max(seq), 0) FROM docs", [], |r| r.get(0))?)
}

struct Doc {
    seq: i64,
    raw: Raw,
    prev: Option<i64>,
    role: Option<SearchRole>,
    text: String,
    tags: String,
}

/// Bytes of an entry whose words are counted, stemmed and kept for suggestions.
const STEMMED: usize = 64 << 10;

/// What is stored besides the text.
#[derive(Default)]
struct Stems {
    /// Stems that differ from the words, and the parts of names in camel case.
    text: String,
    /// Number of words.
    len: i64,
    /// Different words in lower case.
    words: BTreeSet<String>,
}

impl Stems {
    fn of(text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(STEMMED)];
        let mut stems = BTreeSet::new();
        let mut found = Self::default();
        for (from, to) in words(text) {
            let word = &text[from..to];
            found.len += 1;
            let lower = word.to_lowercase();
            for part in camel_case_parts(word) {
                stems.insert(stem(&part));
                stems.insert(part);
            }
            if found.words.contains(&lower) {
                continue;
            }
            let stem = stem(&lower);
            if stem != lower {
                stems.insert(stem);
            }
            found.words.insert(lower);
        }
        found.text = stems.into_iter().collect::<Vec<_>>().join(" ");
        found
    }
}

fn batch(store: &Store, from: i64) -> Result<Vec<Doc>> {
    let columns = COLUMNS.split(", ").map(|c| format!("e.{c}")).collect::<Vec<_>>().join(", ");
    store.read(|conn| {
        let mut statement = conn.prepare_cached(&format!(
            "SELECT {columns}, e.seq, s.project, p.seq, s.origin FROM entries e JOIN sessions s ON s.id = e.session
             LEFT JOIN entries p ON p.id = e.parent
             WHERE e.seq > ?1 ORDER BY e.seq LIMIT {STEP}"
        ))?;
        let mut rows = statement.query([from])?;
        let mut docs = Vec::new();
        while let Some(row) = rows.next()? {
            let raw = Raw::from_row(row)?;
            let (seq, project, prev): (i64, String, Option<i64>) = (row.get(9)?, row.get(10)?, row.get(11)?);
            let kept = MadeBy::of(&row.get::<_, String>(12)?) != MadeBy::Ephemeral;
            let mut tags = vec![tag('s', &raw.session.to_string()), tag('p', &project), tag('a', &raw.agent)];
            let (mut text, mut role) = (String::new(), None);
            // A damaged entry has no text to find, and the text of a session that is not kept is not indexed.
            if kept
                && let Ok(entry) = raw.clone().decode()
                && let Some(of) = SearchRole::of_kind(entry.body.kind())
            {
                role = Some(of);
                text = entry.body.search_text();
                text.truncate(text.floor_char_boundary(TEXT));
                tags.push(role_tag(of));
            }
            docs.push(Doc { seq, raw, prev, role, text, tags: tags.join(" ") });
        }
        Ok(docs)
    })
}

/// Adds rows, unless another process has already added them.
fn put(index: &Connection, from: i64, docs: &[Doc]) -> Result<()> {
    writing(index, || {
        if last(index)? != from {
            return Ok(());
        }
        let mut doc = index.prepare_cached(
            "INSERT INTO docs(seq, entry, session, time, prev, len, role) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        let mut follows =
            index.prepare_cached("UPDATE docs SET next = ?1 WHERE seq = ?2 AND next IS NULL")?;
        let mut words =
            index.prepare_cached("INSERT INTO words(rowid, text, stems, tags) VALUES(?1, ?2, ?3, ?4)")?;
        let mut counts: HashMap<String, i64> = HashMap::new();
        for d in docs {
            let stems = Stems::of(&d.text);
            let role = d.role.and_then(role_number);
            doc.execute(params![d.seq, d.raw.id, d.raw.session, d.raw.time, d.prev, stems.len, role])?;
            if d.prev.is_some() {
                follows.execute(params![d.seq, d.prev])?;
            }
            if !d.text.is_empty() {
                words.execute(params![d.seq, d.text, stems.text, d.tags])?;
            }
            if d.role != Some(SearchRole::Tool) {
                for word in stems.words.into_iter().filter(|w| suggest::kept(w)) {
                    *counts.entry(word).or_default() += 1;
                }
            }
        }
        let mut count = index.prepare_cached(
            "INSERT INTO vocabulary(word, n) VALUES(?1, ?2) ON CONFLICT(word) DO UPDATE SET n = n + excluded.n",
        )?;
        for (word, n) in counts {
            count.execute(params![word, n])?;
        }
        Ok(())
    })
}
