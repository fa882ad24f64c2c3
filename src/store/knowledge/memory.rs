//! Changes of memory files, with their origin.

use rusqlite::{Connection, OptionalExtension, Row, params};
use tiller_protocol::memory::{Acceptance, ChangeDetails, ChangeState, MemoryChange};
use tiller_protocol::{AgentId, EntryId, Provenance, SessionId, Taint, Time};

use crate::error::Result;
use crate::handles::MemoryChanges;
use crate::session::family::below;
use crate::write::ticket::Ticket;

/// A line that changes added, as often as it was added in one state and with one origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedLine {
    pub path: String,
    pub line: String,
    pub state: ChangeState,
    pub taint: Taint,
}

const COLUMNS: &str =
    "id, time, path, removed, added, state, session, entry, branch, agent, taint, archived, details";

fn from_row(row: &Row<'_>) -> rusqlite::Result<MemoryChange> {
    Ok(MemoryChange {
        id: row.get(0)?,
        time: Time(row.get(1)?),
        path: row.get(2)?,
        removed: row.get(3)?,
        added: row.get(4)?,
        archived: row.get(11)?,
        state: ChangeState::of(&row.get::<_, String>(5)?),
        from: Provenance {
            session: row.get::<_, Option<uuid::Uuid>>(6)?.map(SessionId),
            entry: row.get::<_, Option<uuid::Uuid>>(7)?.map(EntryId),
            branch: row.get(8)?,
            agent: AgentId(row.get(9)?),
            taint: Taint::of(&row.get::<_, String>(10)?),
        },
        // What cannot be read is not shown.
        details: row
            .get::<_, Option<String>>(12)?
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default(),
    })
}

/// The details of a change as they are stored.
fn stored_details(details: &ChangeDetails) -> Result<Option<String>> {
    Ok(if details.is_none() { None } else { Some(serde_json::to_string(details)?) })
}

/// Adds a row for a change that was made at `time`. Returns its id.
pub(crate) fn insert(conn: &Connection, time: Time, change: &MemoryChange) -> Result<i64> {
    conn.prepare_cached(
        "INSERT INTO memory_changes(time, path, removed, added, state, session, entry, branch, agent, taint, archived, details)
         VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?
    .execute(params![
        time.millis(),
        change.path,
        change.removed,
        change.added,
        change.state.word(),
        change.from.session.map(|s| s.0),
        change.from.entry.map(|e| e.0),
        change.from.branch,
        change.from.agent.0,
        change.from.taint.word(),
        change.archived,
        stored_details(&change.details)?,
    ])?;
    Ok(conn.last_insert_rowid())
}

/// Records that an entry is missing. One that was missing before has its row already.
pub(crate) fn insert_missing(conn: &Connection, change: &MemoryChange) -> Result<()> {
    let known = conn
        .prepare_cached(
            "SELECT id FROM memory_changes WHERE path = ?1 AND removed = ?2 AND added IS NULL AND archived IS NULL
             AND state IN ('outside', 'declined') ORDER BY id DESC LIMIT 1",
        )?
        .query_row(params![change.path, change.removed], |r| r.get::<_, i64>(0))
        .optional()?;
    let Some(id) = known else { return insert(conn, change.time, change).map(drop) };
    conn.prepare_cached(
        "UPDATE memory_changes SET time = ?2, state = ?3, session = ?4, entry = ?5, branch = ?6, agent = ?7, taint = ?8,
           details = ?9 WHERE id = ?1",
    )?
    .execute(params![
        id,
        change.time.millis(),
        change.state.word(),
        change.from.session.map(|s| s.0),
        change.from.entry.map(|e| e.0),
        change.from.branch,
        change.from.agent.0,
        change.from.taint.word(),
        stored_details(&change.details)?,
    ])?;
    Ok(())
}

fn get(conn: &Connection, id: i64) -> Result<Option<MemoryChange>> {
    Ok(conn
        .prepare_cached(&format!("SELECT {COLUMNS} FROM memory_changes WHERE id = ?1"))?
        .query_row([id], from_row)
        .optional()?)
}

/// Sets the state of a change.
pub(crate) fn set(conn: &Connection, id: i64, state: ChangeState) -> Result<()> {
    conn.prepare_cached("UPDATE memory_changes SET state = ?2 WHERE id = ?1")?
        .execute(params![id, state.word()])?;
    Ok(())
}

/// The user accepts a change that waited: it is done now, as the last one. `added`: the text as the user changed it.
/// `own`: it is the user's from now on, and belongs to no branch.
pub(crate) fn accept(conn: &Connection, now: Time, id: i64, added: Option<&str>, own: bool) -> Result<()> {
    let Some(before) = get(conn, id)? else { return Ok(()) };
    let accepted = Some(Acceptance { time: now, from: before.from });
    let details = ChangeDetails { accepted, ..before.details };
    conn.prepare_cached(
        "UPDATE memory_changes SET state = ?2, added = coalesce(?3, added),
           id = (SELECT max(id) + 1 FROM memory_changes),
           taint = iif(?4, ?5, taint), entry = iif(?4, NULL, entry), branch = iif(?4, '', branch),
           details = ?6
         WHERE id = ?1",
    )?
    .execute(params![
        id,
        ChangeState::Done.word(),
        added,
        own,
        Taint::Person.word(),
        stored_details(&details)?
    ])?;
    Ok(())
}

/// Gives up the undone changes of these files: a new change was made, so that they cannot be redone.
pub(crate) fn give_up_undone(conn: &Connection, paths: &[String]) -> Result<()> {
    conn.prepare_cached(
        "UPDATE memory_changes SET state = ?2 WHERE path IN (SELECT value FROM json_each(?1)) AND state = ?3",
    )?
    .execute(params![
        serde_json::to_string(paths)?,
        ChangeState::Declined.word(),
        ChangeState::Undone.word()
    ])?;
    Ok(())
}

impl MemoryChanges<'_> {
    /// Records a change; its id and time are set here. Returns the id.
    pub fn add(&self, change: MemoryChange) -> Ticket<i64> {
        let now = self.store.now();
        self.store.write(move |conn| insert(conn, now, &change))
    }

    /// Sets the state of a change.
    pub fn set(&self, id: i64, state: ChangeState) -> Ticket<()> {
        self.store.write(move |conn| set(conn, id, state))
    }

    /// One change.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn get(&self, id: i64) -> Result<Option<MemoryChange>> {
        self.store.read(|conn| get(conn, id))
    }

    /// The changes of these files, oldest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn of_files(&self, paths: &[String]) -> Result<Vec<MemoryChange>> {
        self.store.read(|conn| {
            let sql = format!(
                "SELECT {COLUMNS} FROM memory_changes WHERE path IN (SELECT value FROM json_each(?1)) ORDER BY id"
            );
            let mut statement = conn.prepare_cached(&sql)?;
            let rows = statement.query_map([serde_json::to_string(paths)?], from_row)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// The changes of these files in one of these states, oldest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn in_states(&self, paths: &[String], states: &[ChangeState]) -> Result<Vec<MemoryChange>> {
        let states: Vec<&str> = states.iter().map(|state| state.word()).collect();
        self.store.read(|conn| {
            let sql = format!(
                "SELECT {COLUMNS} FROM memory_changes WHERE path IN (SELECT value FROM json_each(?1))
                 AND state IN (SELECT value FROM json_each(?2)) ORDER BY id"
            );
            let mut statement = conn.prepare_cached(&sql)?;
            let values = [serde_json::to_string(paths)?, serde_json::to_string(&states)?];
            let rows = statement.query_map(values, from_row)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// The changes of a file that added or removed one of these lines, oldest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn of_lines(&self, path: &str, lines: &[String]) -> Result<Vec<MemoryChange>> {
        self.store.read(|conn| {
            let sql = format!(
                "SELECT {COLUMNS} FROM memory_changes WHERE id IN (
                   SELECT id FROM memory_changes WHERE path = ?1 AND added IN (SELECT value FROM json_each(?2))
                   UNION SELECT id FROM memory_changes WHERE path = ?1 AND removed IN (SELECT value FROM json_each(?2))
                 ) ORDER BY id"
            );
            let mut statement = conn.prepare_cached(&sql)?;
            let rows = statement.query_map(params![path, serde_json::to_string(lines)?], from_row)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// A number that is another one after each change of what [`Self::added_lines`] returns.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn revision(&self) -> Result<i64> {
        self.store.read(|conn| {
            let mut statement =
                conn.prepare_cached("SELECT number FROM revisions WHERE name = 'memory_origins'")?;
            Ok(statement.query_row([], |r| r.get(0))?)
        })
    }

    /// Numbers of which one is another one after each change that was added, accepted, declined, undone or redone, by whatever
    /// process. A removal that only changes its state is not counted.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn mark(&self) -> Result<(i64, i64)> {
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT number, (SELECT coalesce(max(id), 0) FROM memory_changes) FROM revisions
                 WHERE name = 'memory_origins'",
            )?;
            Ok(statement.query_row([], |r| Ok((r.get(0)?, r.get(1)?)))?)
        })
    }

    /// The lines that changes of these files added, those that were added last at the end.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn added_lines(&self, paths: &[String]) -> Result<Vec<AddedLine>> {
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT path, added, state, taint, max(id) AS last FROM memory_changes
                 WHERE path IN (SELECT value FROM json_each(?1)) AND added IS NOT NULL
                 GROUP BY path, added, state, taint ORDER BY last",
            )?;
            let rows = statement.query_map([serde_json::to_string(paths)?], |row| {
                Ok(AddedLine {
                    path: row.get(0)?,
                    line: row.get(1)?,
                    state: ChangeState::of(&row.get::<_, String>(2)?),
                    taint: Taint::of(&row.get::<_, String>(3)?),
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// The changes that a session and its agents made or set aside, oldest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn of_session(&self, session: SessionId) -> Result<Vec<MemoryChange>> {
        self.store.read(|conn| {
            let sql = format!("SELECT {COLUMNS} FROM memory_changes WHERE session = ?1");
            let mut statement = conn.prepare_cached(&sql)?;
            let mut changes = Vec::new();
            for of in std::iter::once(session).chain(below(conn, session)?) {
                for change in statement.query_map([of.0], from_row)? {
                    changes.push(change?);
                }
            }
            changes.sort_by_key(|change| change.id);
            Ok(changes)
        })
    }

    /// Those of `entries` that are not on the path from the root to `head`. An entry of an agent belongs to the path that the
    /// entry is on which started the agent.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn off_path(&self, head: Option<EntryId>, entries: &[EntryId]) -> Result<Vec<EntryId>> {
        let Some(head) = head else { return Ok(entries.to_vec()) };
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached(
                "WITH RECURSIVE up(id, parent) AS (
                   SELECT id, parent FROM entries WHERE id = ?1
                   UNION ALL SELECT e.id, e.parent FROM entries e JOIN up ON e.id = up.parent
                 ) SELECT id FROM up",
            )?;
            let on: std::collections::HashSet<uuid::Uuid> =
                statement.query_map([head.0], |r| r.get(0))?.collect::<rusqlite::Result<_>>()?;
            let mut off = Vec::new();
            for entry in entries {
                if !on.contains(&entry.0) && !started_on(conn, entry.0, &on)? {
                    off.push(*entry);
                }
            }
            Ok(off)
        })
    }
}

/// Agents that start one another are nested less deep than this.
const NESTED: usize = 32;

/// Whether one of the entries `on` started the agent of an entry, itself or through other agents.
fn started_on(
    conn: &Connection,
    entry: uuid::Uuid,
    on: &std::collections::HashSet<uuid::Uuid>,
) -> Result<bool> {
    let mut statement = conn.prepare_cached(
        "SELECT s.spawned_by FROM entries e JOIN sessions s ON s.id = e.session WHERE e.id = ?1",
    )?;
    let mut at = entry;
    for _ in 0..NESTED {
        let by: Option<Option<uuid::Uuid>> = statement.query_row([at], |r| r.get(0)).optional()?;
        match by.flatten() {
            Some(by) if on.contains(&by) => return Ok(true),
            Some(by) => at = by,
            None => return Ok(false),
        }
    }
    Ok(false)
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
