//! A part of a path wherever it stands: its start, the surroundings of an entry, what follows an entry.

use rusqlite::{Connection, params};
use tiller_protocol::EntryId;
use tiller_protocol::command::PathPlace;
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::handles::Paths;
use crate::tree::entries::{self, Raw};

use super::{Tail, columns, raws, tail, walk};

/// Some entries of a path, and what follows them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathPart {
    pub tail: Tail,
    /// Number of entries of the path between them and the entry that the path was followed from.
    pub later: u64,
    /// The first of those.
    pub next: Option<EntryId>,
}

/// The entries of the path above `before` from depth `from` to depth `to`, found from its end: the cost grows with the
/// number of entries from there on, of which only the ids are read.
fn climb(conn: &Connection, before: Uuid, from: i64, to: i64) -> Result<Vec<(Raw, i64)>> {
    let mut statement = conn.prepare_cached(&format!(
        "WITH RECURSIVE up(id, depth) AS (
           SELECT parent, depth - 1 FROM entries WHERE id = ?1 AND parent IS NOT NULL
           UNION ALL
           SELECT e.parent, up.depth - 1 FROM up JOIN entries e ON e.id = up.id
             WHERE e.parent IS NOT NULL AND up.depth > ?2)
         SELECT {} FROM up JOIN entries e ON e.id = up.id WHERE up.depth <= ?3 ORDER BY e.depth",
        columns()
    ))?;
    raws(statement.query(params![before, from, to])?)
}

/// The entries from `entry` on, as long as each has one child, up to depth `to`. `None`: the path forks before.
fn descend(conn: &Connection, entry: Uuid, to: i64) -> Result<Option<Vec<(Raw, i64)>>> {
    let mut all = walk(conn, entry, 1, -1)?;
    let mut children =
        conn.prepare_cached(&format!("SELECT {} FROM entries e WHERE e.parent = ?1 LIMIT 2", columns()))?;
    while let Some((last, depth)) = all.last()
        && *depth < to
    {
        let mut next = raws(children.query(params![last.id])?)?;
        match next.pop() {
            Some(child) if next.is_empty() => all.push(child),
            _ => return Ok(None),
        }
    }
    Ok(Some(all))
}

impl Paths<'_> {
    /// `count` entries of the path above `before` that stand at `at`.
    ///
    /// # Errors
    /// [`StoreError::NoEntry`], or when the database cannot be read.
    pub fn part(&self, before: EntryId, at: PathPlace, count: u32) -> Result<PathPart> {
        let count = i64::from(count.max(1));
        let (mut found, end, to) = self.store.read(|conn| {
            let depth = |entry: EntryId| -> Result<i64> {
                Ok(entries::inherited(conn, entry.0)?.ok_or(StoreError::NoEntry(entry))?.depth)
            };
            let end = depth(before)?;
            let (from, to) = match at {
                PathPlace::Start {} => (0, count - 1),
                PathPlace::Around { entry } => {
                    let middle = depth(entry)?;
                    (middle - count / 2, middle + count / 2)
                }
                PathPlace::From { entry } => {
                    let first = depth(entry)?;
                    (first, first + count - 1)
                }
                PathPlace::Before { entry } | PathPlace::Search { entry } => {
                    let last = depth(entry)? - 1;
                    (last - count + 1, last)
                }
            };
            let (from, to) = (from.max(0), to.min(end - 1));
            if from > to {
                return Ok((Vec::new(), end, to));
            }
            // With the one after them, where that is not `before`.
            let beyond = (to + 1).min(end - 1);
            let found = match at {
                PathPlace::Before { entry } | PathPlace::Search { entry } => {
                    climb(conn, entry.0, from, beyond)?
                }
                PathPlace::From { entry } => match descend(conn, entry.0, beyond)? {
                    Some(found) => found,
                    None => climb(conn, before.0, from, beyond)?,
                },
                PathPlace::Start {} | PathPlace::Around { .. } => climb(conn, before.0, from, beyond)?,
            };
            Ok((found, end, to))
        })?;
        let on_path = match at {
            PathPlace::Around { entry } | PathPlace::From { entry } => {
                found.iter().any(|(raw, _)| raw.id == entry.0)
            }
            _ => true,
        };
        if !on_path {
            return Ok(PathPart::default());
        }
        let next = match found.last() {
            Some((_, depth)) if *depth > to => found.pop().map(|(raw, _)| EntryId(raw.id)),
            _ => None,
        };
        let later = found.last().map_or(0, |(_, depth)| entries::uncount(end - 1 - depth));
        Ok(PathPart { tail: tail(found), later, next })
    }
}

#[cfg(test)]
#[path = "part_tests.rs"]
mod tests;
