//! Vectors of entries, beside the full-text index. What they mean is known to the room `search`, which makes them.
//!
//! Each model has its own: two processes may work with two models. Those of a model that was not used for a day are removed. They
//! are added in the ascending order of rows, so that an interrupted run goes on where it ended.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, params};
use tiller_protocol::{SearchQuery, SearchRole, SessionId};
use uuid::Uuid;

use crate::error::Result;
use crate::handles::Search;
use crate::search::index::writing;
use crate::search::lookup::{Cancel, bounds};
use crate::search::rank::Scored;
use crate::search::tags::role_of;
use crate::search::words::Words;
use crate::tree::entries;

/// The vector of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryVector {
    pub row: i64,
    /// The row of the entry before it.
    pub prev: Option<i64>,
    pub session: SessionId,
    /// Milliseconds since 1970.
    pub time: i64,
    pub role: Option<SearchRole>,
    pub numbers: Vec<u8>,
}

/// Bytes of an entry's text that get a vector.
const TEXT: usize = 8 << 10;
/// How long the vectors of a model that is not used are kept.
const UNUSED: i64 = 24 * 3_600_000;
/// How often the use of a model is noted, so that a look for new entries seldom writes.
const NOTED: i64 = 3_600_000;

impl Search<'_> {
    /// Indexed entries without a vector of this model, oldest first, with the beginning of their text. Vectors of models that
    /// were not asked for here for a day are removed first.
    ///
    /// # Errors
    /// When a database cannot be read, or the index cannot be written.
    pub fn without_vector(&self, model: &str, most: u32) -> Result<Vec<(i64, String)>> {
        let now = self.now().millis();
        let rows: Vec<(i64, Uuid, bool)> =
            self.store.inner.index.with(self.store, &Cancel::default(), |index| {
                let by = in_use(index, model, now)?;
                let mut statement = index.prepare_cached(
                    "SELECT seq, entry, role IS NOT NULL FROM docs
                     WHERE seq > (SELECT coalesce(max(seq), 0) FROM vectors WHERE model = ?1)
                     ORDER BY seq LIMIT ?2",
                )?;
                let rows =
                    statement.query_map(params![by, most], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })?;
        self.store.read(|conn| {
            let mut texts = Vec::with_capacity(rows.len());
            for (seq, entry, searched) in &rows {
                let raw = if *searched { entries::one(conn, *entry)? } else { None };
                // Removed, damaged or not searched: without text.
                let text = raw.and_then(|raw| raw.decode().ok()).map(|e| e.body.search_text());
                let mut text = text.unwrap_or_default();
                text.truncate(text.floor_char_boundary(TEXT));
                texts.push((*seq, text));
            }
            Ok(texts)
        })
    }

    /// Adds vectors; an empty one for an entry without text, or which the model refuses. `false`: nothing was added, because the
    /// index does not know the model any more, or because its vectors there have another length: then they are removed, and all
    /// are to be made again.
    ///
    /// # Errors
    /// When the index cannot be written.
    pub fn put_vectors(&self, model: &str, vectors: &[(i64, Vec<u8>)]) -> Result<bool> {
        self.store.inner.index.with(self.store, &Cancel::default(), |index| {
            writing(index, || {
                let Some((by, _)) = known(index, model)? else { return Ok(false) };
                let length = vectors.iter().map(|(_, v)| v.len()).find(|n| *n > 0);
                if length.zip(known_length(index, by)?).is_some_and(|(new, known)| new != known) {
                    index.execute("DELETE FROM vectors WHERE model = ?1", [by])?;
                    return Ok(false);
                }
                let mut put = index
                    .prepare_cached("INSERT OR REPLACE INTO vectors(model, seq, v) VALUES(?1, ?2, ?3)")?;
                for (seq, vector) in vectors {
                    put.execute(params![by, seq, vector])?;
                }
                Ok(true)
            })
        })
    }

    /// Removes all vectors of this model: it makes others now.
    ///
    /// # Errors
    /// When the index cannot be written.
    pub fn forget_vectors(&self, model: &str) -> Result<()> {
        self.store.inner.index.with(self.store, &Cancel::default(), |index| {
            writing(index, || {
                let of = "DELETE FROM vectors WHERE model = (SELECT id FROM vector_models WHERE model = ?1)";
                index.execute(of, [model])?;
                index.execute("DELETE FROM text_vectors WHERE model = ?1", [model])?;
                Ok(())
            })
        })
    }

    /// The vectors of this model after a row, in the order of rows.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn vectors(&self, model: &str, after: i64) -> Result<Vec<EntryVector>> {
        self.store.inner.index.read(self.store, &Cancel::default(), |index| {
            let Some((by, _)) = known(index, model)? else { return Ok(Vec::new()) };
            let mut statement = index.prepare_cached(
                "SELECT v.seq, d.prev, d.session, d.time, d.role, v.v
                 FROM vectors v JOIN docs d ON d.seq = v.seq
                 WHERE v.model = ?1 AND v.seq > ?2 AND length(v.v) > 0 ORDER BY v.seq",
            )?;
            let vector = |r: &rusqlite::Row<'_>| {
                let role: Option<i64> = r.get(4)?;
                Ok(EntryVector {
                    row: r.get(0)?,
                    prev: r.get(1)?,
                    session: SessionId(r.get(2)?),
                    time: r.get(3)?,
                    role: role.and_then(role_of),
                    numbers: r.get(5)?,
                })
            };
            let rows = statement.query_map([by, after], vector)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Of these rows those that the filters of a query admit, in their order, with a score of 0. The cost grows with the rows.
    ///
    /// # Errors
    /// When a database cannot be read, or the search is cancelled.
    pub fn admitted(&self, query: &SearchQuery, rows: &[i64], cancel: &Cancel) -> Result<Vec<Scored>> {
        let words = Words::parse(&query.text);
        let (since, until) = bounds(query);
        let (required, excluded) = (words.required(), words.excluded());
        let mut known: HashMap<i64, Scored> = self.store.inner.index.read(self.store, cancel, |index| {
            let mut statement = index.prepare_cached(
                "SELECT seq, entry, session, time FROM docs WHERE seq IN (SELECT value FROM json_each(?1))",
            )?;
            let docs = statement.query_map([serde_json::to_string(rows)?], |r| {
                let seq = r.get(0)?;
                let (entry, session, time) = (r.get(1)?, r.get(2)?, r.get(3)?);
                Ok((seq, Scored { seq, entry, session, time, score: 0.0 }))
            })?;
            let mut known = docs.collect::<rusqlite::Result<HashMap<_, _>>>()?;
            known.retain(|_, doc| (since..until).contains(&doc.time));
            for (matching, kept) in [(&required, true), (&excluded, false)] {
                let Some(matching) = matching else { continue };
                let mut has =
                    index.prepare_cached("SELECT 1 FROM words WHERE words MATCH ?1 AND rowid = ?2")?;
                for seq in rows {
                    if known.contains_key(seq) && has.exists(params![matching, seq])? != kept {
                        known.remove(seq);
                    }
                }
            }
            Ok(known)
        })?;
        self.narrow(query, &mut known)?;
        Ok(rows.iter().filter_map(|seq| known.remove(seq)).collect())
    }

    /// Takes out what is not of the session, project, agent or role that a query asks for. A look at each entry costs far less
    /// than one at the words of the index that stand for these.
    fn narrow(&self, query: &SearchQuery, known: &mut HashMap<i64, Scored>) -> Result<()> {
        known.retain(|_, doc| query.session.is_none_or(|session| session.0 == doc.session));
        if query.project.is_none() && query.agent.is_none() && query.roles.is_empty() {
            return Ok(());
        }
        let kept: HashSet<i64> = self.store.read(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT s.project, e.agent, e.kind FROM entries e JOIN sessions s ON s.id = e.session WHERE e.id = ?1",
            )?;
            let mut kept = HashSet::new();
            for (seq, doc) in known.iter() {
                let found: Option<(String, String, String)> = statement
                    .query_row([doc.entry], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))
                    .optional()?;
                let fits = found.is_some_and(|(project, agent, kind)| {
                    query.project.as_ref().is_none_or(|wanted| *wanted == project)
                        && query.agent.as_ref().is_none_or(|wanted| *wanted == agent)
                        && (query.roles.is_empty()
                            || SearchRole::of_kind(&kind).is_some_and(|role| query.roles.contains(&role)))
                });
                if fits {
                    kept.insert(*seq);
                }
            }
            Ok(kept)
        })?;
        known.retain(|seq, _| kept.contains(seq));
        Ok(())
    }

    /// The sessions of a project, those in the trash, too.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn sessions_of(&self, project: &str) -> Result<HashSet<SessionId>> {
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached("SELECT id FROM sessions WHERE project = ?1")?;
            let rows = statement.query_map([project], |r| Ok(SessionId(r.get(0)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// The most frequent words of messages, in lower case.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn vocabulary(&self, most: u32) -> Result<Vec<String>> {
        self.store.inner.index.read(self.store, &Cancel::default(), |index| {
            let mut statement =
                index.prepare_cached("SELECT word FROM vocabulary ORDER BY n DESC, word LIMIT ?1")?;
            let rows = statement.query_map([most], |r| r.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// For each word, in lower case, the number of messages that contain it; and the number of entries.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn frequencies(&self, words: &[String]) -> Result<(Vec<u32>, u32)> {
        self.store.inner.index.read(self.store, &Cancel::default(), |index| {
            let mut counts = Vec::with_capacity(words.len());
            for word in words {
                let n: Option<i64> = index
                    .prepare_cached("SELECT n FROM vocabulary WHERE word = ?1")?
                    .query_row([word], |r| r.get(0))
                    .optional()?;
                counts.push(u32::try_from(n.unwrap_or(0)).unwrap_or(u32::MAX));
            }
            let all: i64 = index.query_row("SELECT coalesce(max(seq), 0) FROM docs", [], |r| r.get(0))?;
            Ok((counts, u32::try_from(all).unwrap_or(u32::MAX)))
        })
    }
}

/// The number of a model, and when its use was noted; `None`: the index has nothing of it.
fn known(index: &Connection, model: &str) -> Result<Option<(i64, i64)>> {
    let mut get = index.prepare_cached("SELECT id, used FROM vector_models WHERE model = ?1")?;
    Ok(get.query_row([model], |r| Ok((r.get(0)?, r.get(1)?))).optional()?)
}

/// The number of a model that is used now. Notes that once an hour, and removes then what there is of models that were not used
/// for [`UNUSED`].
fn in_use(index: &Connection, model: &str, now: i64) -> Result<i64> {
    if let Some((by, used)) = known(index, model)?
        && (used..used.saturating_add(NOTED)).contains(&now)
    {
        return Ok(by);
    }
    writing(index, || {
        index.execute(
            "INSERT INTO vector_models(model, used) VALUES(?1, ?2)
             ON CONFLICT(model) DO UPDATE SET used = excluded.used",
            params![model, now],
        )?;
        let old = "FROM vector_models WHERE used < ?1";
        let last = now.saturating_sub(UNUSED);
        index.execute(&format!("DELETE FROM vectors WHERE model IN (SELECT id {old})"), [last])?;
        index.execute(&format!("DELETE FROM text_vectors WHERE model IN (SELECT model {old})"), [last])?;
        index.execute(&format!("DELETE {old}"), [last])?;
        Ok(index.query_row("SELECT id FROM vector_models WHERE model = ?1", [model], |r| r.get(0))?)
    })
}

/// The length of the vectors of a model; `None`: it has none.
fn known_length(index: &Connection, by: i64) -> Result<Option<usize>> {
    let found = index
        .prepare_cached(
            "SELECT length(v) FROM vectors WHERE model = ?1 AND length(v) > 0 ORDER BY seq LIMIT 1",
        )?
        .query_row([by], |r| r.get::<_, i64>(0))
        .optional()?;
    Ok(found.and_then(|n| usize::try_from(n).ok()))
}
