//! The full-text index: a separate database beside the main one (`search.db`), derived from it and safe to delete. So
//! writes during a turn do not pay for it, and damage costs a rebuild, not a session.
//!
//! Rows are indexed in the ascending order of `entries.seq`. Words for the row's kind, session, project and agent stand
//! in a second column, so that a filter is one more word of the query instead of a scan.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};
use tiller_protocol::SearchRole;
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::handles::Search;
use crate::open::Store;
use crate::open::connect::Target;
use crate::open::folder;
use crate::tree::entries::{COLUMNS, Raw};

/// Version of the index; an index of another version is rebuilt.
const VERSION: u32 = 1;
/// Entries in one transaction.
const STEP: u64 = 500;
/// Bytes of an entry's text that are indexed. Replies are far shorter; the full text of huge outputs is on disk.
const TEXT: usize = 256 << 10;
/// How long to wait for another process that indexes.
const BUSY: Duration = Duration::from_secs(2);

const SCHEMA: &str = "
CREATE TABLE docs (
  seq     INTEGER PRIMARY KEY,
  entry   BLOB NOT NULL,
  session BLOB NOT NULL,
  time    INTEGER NOT NULL
) STRICT;
CREATE VIRTUAL TABLE words USING fts5(
  text, tags, content='', columnsize=0, prefix='2 3',
  tokenize='unicode61 remove_diacritics 2'
);";

/// The open index; `None` before its first use.
#[derive(Default)]
pub(crate) struct Index(Mutex<Option<Connection>>);

impl Index {
    /// Calls `work` with the index, opening it first if needed. A damaged index is deleted and rebuilt once.
    pub(crate) fn with<T>(&self, store: &Store, work: impl Fn(&Connection) -> Result<T>) -> Result<T> {
        let mut slot = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for last in [false, true] {
            let conn = match slot.take() {
                Some(conn) => conn,
                None => open(store)?,
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
}

impl Search<'_> {
    /// Deletes the index, which is rebuilt on its next use: words of permanently removed sessions must not stay in it.
    pub fn forget_index(&self) {
        let mut slot = self.store.inner.index.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        drop(slot.take());
        if self.store.inner.target.is_file() {
            throw_away(&place(&self.store.inner.target));
        }
    }
}

fn place(target: &Target) -> PathBuf {
    match target {
        Target::File(path) => path.with_file_name("search.db"),
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
         PRAGMA cell_size_check=ON; PRAGMA journal_size_limit=8388608;",
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

/// A filter as a word that no text contains in this column.
pub(crate) fn tag(kind: char, value: &str) -> String {
    format!("{kind}{}", &blake3::hash(value.as_bytes()).to_hex()[..16])
}

pub(crate) fn role_tag(role: SearchRole) -> String {
    tag('r', role.name())
}

/// Indexes up to `most` entries; returns how many are left.
pub(crate) fn catch_up(store: &Store, index: &Connection, most: u64) -> Result<u64> {
    let mut taken = 0;
    loop {
        let from = last(index)?;
        let rows = if taken < most { batch(store, from)? } else { Vec::new() };
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

fn last(index: &Connection) -> Result<i64> {
    Ok(index.query_row("SELECT coalesce(max(seq), 0) FROM docs", [], |r| r.get(0))?)
}

struct Doc {
    seq: i64,
    raw: Raw,
    text: String,
    tags: String,
}

fn batch(store: &Store, from: i64) -> Result<Vec<Doc>> {
    let columns = COLUMNS.split(", ").map(|c| format!("e.{c}")).collect::<Vec<_>>().join(", ");
    store.read(|conn| {
        let mut statement = conn.prepare_cached(&format!(
            "SELECT {columns}, e.seq, s.project FROM entries e JOIN sessions s ON s.id = e.session
             WHERE e.seq > ?1 ORDER BY e.seq LIMIT {STEP}"
        ))?;
        let mut rows = statement.query([from])?;
        let mut docs = Vec::new();
        while let Some(row) = rows.next()? {
            let raw = Raw::from_row(row)?;
            let (seq, project): (i64, String) = (row.get(8)?, row.get(9)?);
            let mut tags = vec![tag('s', &raw.session.to_string()), tag('p', &project), tag('a', &raw.agent)];
            let mut text = String::new();
            // A damaged entry has no text to find.
            if let Ok(entry) = raw.clone().decode()
                && let Some(role) = SearchRole::of_kind(entry.body.kind())
            {
                text = entry.body.search_text();
                text.truncate(text.floor_char_boundary(TEXT));
                tags.push(role_tag(role));
            }
            docs.push(Doc { seq, raw, text, tags: tags.join(" ") });
        }
        Ok(docs)
    })
}

/// Adds rows, unless another process has already added them.
fn put(index: &Connection, from: i64, docs: &[Doc]) -> Result<()> {
    index.execute_batch("BEGIN IMMEDIATE")?;
    let run = || -> Result<()> {
        if last(index)? != from {
            return Ok(());
        }
        let mut doc =
            index.prepare_cached("INSERT INTO docs(seq, entry, session, time) VALUES(?1, ?2, ?3, ?4)")?;
        let mut words = index.prepare_cached("INSERT INTO words(rowid, text, tags) VALUES(?1, ?2, ?3)")?;
        for d in docs {
            doc.execute(params![d.seq, d.raw.id, d.raw.session, d.raw.time])?;
            if !d.text.is_empty() {
                words.execute(params![d.seq, d.text, d.tags])?;
            }
        }
        Ok(())
    };
    let done = run();
    index.execute_batch(if done.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    done
}
