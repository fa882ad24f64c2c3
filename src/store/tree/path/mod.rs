//! The path from a head to the root, in parts: its end, a page further up, and the part for a model request. None of
//! them reads earlier entries.

pub(crate) mod part;

use rusqlite::{Connection, Rows, params};
use tiller_protocol::{Entry, EntryId, SessionId};
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::handles::Paths;
use crate::tree::entries::{self, COLUMNS, Raw};
use crate::tree::heads;

/// Some entries of a path, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tail {
    pub entries: Vec<Entry>,
    /// Number of entries of the path that come before them.
    pub earlier: u64,
    /// Number of damaged entries among them, which are shown as notes.
    pub damaged: u32,
}

/// The entries of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContextPath {
    /// The prefix in force: the latest one on the path, before or after the compaction.
    pub prefix: Option<Entry>,
    /// The latest compaction on the path.
    pub compaction: Option<Entry>,
    /// Entries before the compaction that it kept unchanged, oldest first, without prefixes.
    pub kept: Vec<Entry>,
    /// Entries after the compaction (without one: all), oldest first, without prefixes.
    pub after: Vec<Entry>,
    /// Number of damaged entries among them.
    pub damaged: u32,
}

/// Walks up from `from` (inclusive), `limit` entries or to depth `floor`.
fn walk(conn: &Connection, from: Uuid, limit: i64, floor: i64) -> Result<Vec<(Raw, i64)>> {
    let mut statement = conn.prepare_cached(&format!(
        "WITH RECURSIVE up(id, depth, n) AS (
           SELECT id, depth, 1 FROM entries WHERE id = ?1
           UNION ALL
           SELECT e.parent, up.depth - 1, up.n + 1 FROM up JOIN entries e ON e.id = up.id
             WHERE e.parent IS NOT NULL AND up.n < ?2 AND up.depth > ?3)
         SELECT {} FROM up JOIN entries e ON e.id = up.id ORDER BY e.depth",
        columns()
    ))?;
    raws(statement.query(params![from, limit, floor])?)
}

/// The columns that [`raws`] reads, of the table `e`.
fn columns() -> String {
    COLUMNS.split(", ").chain(["depth"]).map(|c| format!("e.{c}")).collect::<Vec<_>>().join(", ")
}

/// Entries with their depths.
fn raws(rows: Rows<'_>) -> Result<Vec<(Raw, i64)>> {
    Ok(rows.mapped(|r| Ok((Raw::from_row(r)?, r.get(9)?))).collect::<rusqlite::Result<_>>()?)
}

fn tail(raws: Vec<(Raw, i64)>) -> Tail {
    let earlier = raws.first().map_or(0, |(_, depth)| entries::uncount(*depth));
    let mut tail = Tail { entries: Vec::with_capacity(raws.len()), earlier, damaged: 0 };
    for (raw, _) in raws {
        let (entry, damaged) = raw.decode_or_note();
        tail.damaged += u32::from(damaged);
        tail.entries.push(entry);
    }
    tail
}

impl Paths<'_> {
    /// Every entry of a session, parents before their children. Damaged ones are replaced by notes.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn all(&self, session: SessionId) -> Result<Vec<Entry>> {
        self.store.read(|conn| {
            let mut statement = conn
                .prepare_cached(&format!("SELECT {COLUMNS} FROM entries WHERE session = ?1 ORDER BY seq"))?;
            let rows =
                statement.query_map(params![session.0], |r| Ok(Raw::from_row(r)?.decode_or_note().0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// The last `limit` entries of a head's path. The cost does not depend on the length of the session.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn tail(&self, session: SessionId, head: &str, limit: u32) -> Result<Tail> {
        let raws = self.store.read(|conn| match heads::get(conn, session, head)?.and_then(|h| h.entry) {
            Some(entry) if limit > 0 => walk(conn, entry, i64::from(limit), -1),
            _ => Ok(Vec::new()),
        })?;
        Ok(tail(raws))
    }

    /// As [`Paths::tail`], up from any entry (inclusive).
    ///
    /// # Errors
    /// [`StoreError::NoEntry`], or when the database cannot be read.
    pub fn tail_at(&self, entry: EntryId, limit: u32) -> Result<Tail> {
        let raws = self.store.read(|conn| walk(conn, entry.0, i64::from(limit.max(1)), -1))?;
        if raws.is_empty() { Err(StoreError::NoEntry(entry)) } else { Ok(tail(raws)) }
    }

    /// `count` entries of the path before `before` (exclusive).
    ///
    /// # Errors
    /// [`StoreError::NoEntry`], or when the database cannot be read.
    pub fn page_before(&self, before: EntryId, count: u32) -> Result<Tail> {
        let raws = self.store.read(|conn| {
            let raw = entries::one(conn, before.0)?.ok_or(StoreError::NoEntry(before))?;
            match raw.parent {
                Some(parent) if count > 0 => walk(conn, parent, i64::from(count), -1),
                _ => Ok(Vec::new()),
            }
        })?;
        Ok(tail(raws))
    }

    /// How many messages of the person stand at `entry` and after it on a head's path; `None`: the entry is not on it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn prompts_from(&self, session: SessionId, head: &str, entry: EntryId) -> Result<Option<u64>> {
        self.store.read(|conn| {
            let tip = heads::get(conn, session, head)?.and_then(|h| h.entry);
            let floor = entries::inherited(conn, entry.0)?.map(|i| i.depth);
            let (Some(tip), Some(floor)) = (tip, floor) else { return Ok(None) };
            let (count, passes): (i64, bool) = conn
                .prepare_cached(
                    "WITH RECURSIVE up(id, depth) AS (
                       SELECT id, depth FROM entries WHERE id = ?1
                       UNION ALL
                       SELECT e.parent, up.depth - 1 FROM up JOIN entries e ON e.id = up.id
                         WHERE e.parent IS NOT NULL AND up.depth > ?2)
                     SELECT count(*) FILTER (WHERE e.kind = 'user' AND CASE WHEN json_valid(e.payload)
                              THEN coalesce(json_extract(e.payload, '$.origin'), 'prompt') IN ('prompt', 'task') END),
                            ifnull(max(e.id = ?3), 0)
                       FROM up JOIN entries e ON e.id = up.id",
                )?
                .query_row(params![tip, floor, entry.0], |r| Ok((r.get(0)?, r.get(1)?)))?;
            Ok(passes.then(|| entries::uncount(count)))
        })
    }

    /// The entries of a request at this head. Reads back to the latest compaction (and what it kept), not further.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn context(&self, session: SessionId, head: &str) -> Result<ContextPath> {
        match self.store.heads().get(session, head)? {
            Some(entry) => self.context_at(entry),
            None => Ok(ContextPath::default()),
        }
    }

    /// As [`Paths::context`], at any entry.
    ///
    /// # Errors
    /// [`StoreError::NoEntry`], or when the database cannot be read.
    pub fn context_at(&self, entry: EntryId) -> Result<ContextPath> {
        let mut damaged = 0;
        let mut read = |raw: Raw| {
            let (entry, bad) = raw.decode_or_note();
            damaged += u32::from(bad);
            entry
        };
        let (anchors, prefix, compaction) = self.store.read(|conn| {
            let anchors = entries::inherited(conn, entry.0)?.ok_or(StoreError::NoEntry(entry))?;
            let get = |id: Option<Uuid>| id.map_or(Ok(None), |id| entries::one(conn, id));
            let prefix = get(anchors.prefix)?;
            let compaction = get(anchors.compaction)?;
            Ok((anchors, prefix, compaction))
        })?;
        let prefix = prefix.map(&mut read);
        let compaction = compaction.map(&mut read);
        let kept_from = match compaction.as_ref().map(|c| &c.body) {
            Some(tiller_protocol::EntryBody::Compaction { kept_from, .. }) => *kept_from,
            _ => None,
        };
        let raws = self.store.read(|conn| {
            let depth = |id: Uuid| Ok::<_, StoreError>(entries::inherited(conn, id)?.map(|i| i.depth));
            let mut floor = match anchors.compaction {
                Some(id) => depth(id)?.unwrap_or(-1),
                None => -1,
            };
            if let Some(kept) = kept_from {
                floor = depth(kept.0)?.map_or(floor, |d| d.min(floor));
            }
            walk(conn, entry.0, i64::MAX, floor)
        })?;
        let mut context = ContextPath { prefix, compaction, ..ContextPath::default() };
        // The kept part begins at `kept_from`; a pointer that is not on this path keeps nothing.
        let on_path = kept_from.is_some_and(|kept| raws.iter().any(|(raw, _)| raw.id == kept.0));
        let mut passed = anchors.compaction.is_none();
        for (raw, _) in raws {
            if Some(raw.id) == anchors.compaction {
                passed = true;
                continue;
            }
            let entry = read(raw);
            if matches!(entry.body, tiller_protocol::EntryBody::Prefix { .. }) {
                continue;
            }
            if passed {
                context.after.push(entry);
            } else if on_path {
                context.kept.push(entry);
            }
        }
        context.damaged = damaged;
        Ok(context)
    }
}

#[cfg(test)]
mod tests;
