//! Changes of memory files, with their origin.

use rusqlite::{Connection, OptionalExtension, Row, params};
use tiller_protocol::memory::{ChangeState, MemoryChange};
use tiller_protocol::{AgentId, EntryId, Provenance, SessionId, Taint, Time};

use crate::error::Result;
use crate::handles::MemoryChanges;
use crate::write::ticket::Ticket;

const COLUMNS: &str = "id, time, path, removed, added, state, session, entry, branch, agent, taint, archived";

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
    })
}

/// Adds a row for a change that was made at `time`. Returns its id.
pub(crate) fn insert(conn: &Connection, time: Time, change: &MemoryChange) -> Result<i64> {
    conn.prepare_cached(
        "INSERT INTO memory_changes(time, path, removed, added, state, session, entry, branch, agent, taint, archived)
         VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
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
    ])?;
    Ok(conn.last_insert_rowid())
}

impl MemoryChanges<'_> {
    /// Records a change; its id and time are set here. Returns the id.
    pub fn add(&self, change: MemoryChange) -> Ticket<i64> {
        let now = self.store.now();
        self.store.write(move |conn| insert(conn, now, &change))
    }

    /// Sets the state of a change, and with `added` what it adds.
    pub fn set(&self, id: i64, state: ChangeState, added: Option<String>) -> Ticket<()> {
        self.store.write(move |conn| {
            conn.prepare_cached(
                "UPDATE memory_changes SET state = ?2, added = coalesce(?3, added) WHERE id = ?1",
            )?
            .execute(params![id, state.word(), added])?;
            Ok(())
        })
    }

    /// One change.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn get(&self, id: i64) -> Result<Option<MemoryChange>> {
        self.store.read(|conn| {
            Ok(conn
                .prepare_cached(&format!("SELECT {COLUMNS} FROM memory_changes WHERE id = ?1"))?
                .query_row([id], from_row)
                .optional()?)
        })
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

    /// The changes that a session made or set aside, oldest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn of_session(&self, session: SessionId) -> Result<Vec<MemoryChange>> {
        self.store.read(|conn| {
            let sql = format!("SELECT {COLUMNS} FROM memory_changes WHERE session = ?1 ORDER BY id");
            let mut statement = conn.prepare_cached(&sql)?;
            let rows = statement.query_map([session.0], from_row)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Those of `entries` that are not on the path from the root to `head`.
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
            Ok(entries.iter().copied().filter(|e| !on.contains(&e.0)).collect())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    fn change(path: &str, added: &str, state: ChangeState) -> MemoryChange {
        MemoryChange {
            id: 0,
            time: Time(0),
            path: path.into(),
            removed: None,
            added: Some(added.into()),
            archived: None,
            state,
            from: Provenance {
                session: Some(session_id(1)),
                branch: "main".into(),
                agent: AgentId::main(),
                taint: Taint::Web,
                ..Provenance::default()
            },
        }
    }

    #[test]
    fn changes_come_back_as_they_were_stored() {
        let (_dir, store) = scratch();
        let changes = store.memory_changes();
        let one = changes.add(change("/a", "x", ChangeState::Done)).wait().unwrap();
        let two = changes.add(change("/b", "y", ChangeState::Pending)).wait().unwrap();
        assert!(two > one);
        let read = changes.get(two).unwrap().unwrap();
        assert_eq!(MemoryChange { id: 0, time: Time(0), ..read }, change("/b", "y", ChangeState::Pending));
        assert_eq!(changes.of_files(&["/a".into()]).unwrap().len(), 1);
        let moved = MemoryChange { archived: Some(true), ..change("/c", "x", ChangeState::Done) };
        changes.add(moved).wait().unwrap();
        assert_eq!(changes.of_files(&["/c".into()]).unwrap()[0].archived, Some(true));
        changes.set(two, ChangeState::Done, Some("z".into())).wait().unwrap();
        let all = changes.of_session(session_id(1)).unwrap();
        assert_eq!((all.len(), all[1].added.as_deref(), all[1].state), (3, Some("z"), ChangeState::Done));
        assert_eq!(changes.get(99).unwrap(), None);
        let entry = EntryId(uuid::Uuid::from_u128(7));
        assert_eq!(changes.off_path(None, &[entry]).unwrap(), [entry]);
    }
}
