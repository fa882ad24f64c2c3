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
mod tests {
    use super::*;
    use crate::knowledge::memory_unfinished::{RecordStep, UnfinishedChange};
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
            details: ChangeDetails::default(),
        }
    }

    #[test]
    fn who_wrote_an_accepted_entry_stays_recorded() {
        let (_dir, store) = scratch();
        let changes = store.memory_changes();
        let details = ChangeDetails { imported: "/x/export.jsonl".into(), ..ChangeDetails::default() };
        let waits = MemoryChange { details, ..change("/a", "x", ChangeState::Pending) };
        let id = changes.add(waits.clone()).wait().unwrap();
        let steps = vec![RecordStep::Accept { id, added: Some("y".into()), own: true }];
        changes
            .record("/a", UnfinishedChange { steps, ..UnfinishedChange::default() })
            .unwrap()
            .wait()
            .unwrap();
        let all = changes.of_files(&["/a".into()]).unwrap();
        let accepted = all[0].details.accepted.clone().unwrap();
        assert_eq!((all[0].from.taint, &accepted.from), (Taint::Person, &waits.from));
        assert_eq!(all[0].details.imported, "/x/export.jsonl");
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
        changes.set(two, ChangeState::Done).wait().unwrap();
        let all = changes.of_session(session_id(1)).unwrap();
        assert_eq!((all.len(), all[1].added.as_deref(), all[1].state), (3, Some("y"), ChangeState::Done));
        assert_eq!(changes.get(99).unwrap(), None);
        let entry = EntryId(uuid::Uuid::from_u128(7));
        assert_eq!(changes.off_path(None, &[entry]).unwrap(), [entry]);
    }

    /// A read, and how many rows it finds.
    type CountedRead = Box<dyn Fn(&crate::Store) -> usize>;

    /// Steps of SQLite that a read takes. Readers are kept, so that it runs on the one whose steps are counted.
    fn steps(store: &crate::Store, read: impl Fn()) -> u64 {
        let count = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
        let counted = std::sync::Arc::clone(&count);
        let step = move || {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            false
        };
        read();
        let mut reader = store.inner.readers.lock().unwrap().pop().unwrap();
        reader.progress_handler(1, Some(step)).unwrap();
        store.inner.readers.lock().unwrap().push(reader);
        read();
        let mut reader = store.inner.readers.lock().unwrap().pop().unwrap();
        reader.progress_handler(0, None::<fn() -> bool>).unwrap();
        store.inner.readers.lock().unwrap().push(reader);
        count.load(std::sync::atomic::Ordering::Relaxed)
    }

    #[test]
    fn a_look_up_takes_as_many_steps_among_many_rows_as_among_few() {
        let (_dir, store) = scratch();
        store.memory_changes().add(change("/m", "x", ChangeState::Done)).wait().unwrap();
        let all: [(&str, CountedRead); 8] = [
            ("revision", Box::new(|s| s.memory_changes().revision().map(|_| 1).unwrap())),
            ("added", Box::new(|s| s.memory_changes().added_lines(&["/m".into()]).unwrap().len())),
            (
                "done",
                Box::new(|s| {
                    s.memory_changes().in_states(&["/m".into()], &[ChangeState::Done]).unwrap().len()
                }),
            ),
            ("lines", Box::new(|s| s.memory_changes().of_lines("/m", &["x".into()]).unwrap().len())),
            ("rules", Box::new(|s| s.learnings().matchers_revision().map(|_| 1).unwrap())),
            ("matchers", Box::new(|s| 1 + s.learnings().with_matchers().unwrap().len())),
            ("pending", Box::new(|s| 1 + s.learnings().pending().unwrap() as usize)),
            ("subjects", Box::new(|s| 1 + s.learnings().subjects("terminal").unwrap().len())),
        ];
        let count = |store: &crate::Store| -> Vec<u64> {
            let counted =
                |(name, read): &(&str, CountedRead)| steps(store, || assert_eq!(read(store), 1, "{name}"));
            all.iter().map(counted).collect()
        };
        let few = count(&store);
        let many = store.write(|conn| {
            conn.execute_batch(
                "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100000)
                 INSERT INTO memory_changes(time, path, removed, state, taint)
                   SELECT n, '/m', 'gone ' || n, 'declined', 'agent' FROM n;
                 WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20000)
                 INSERT INTO learnings(tool, subject, error_type, details, pattern, fix, context, tags, state, created, times, source)
                   SELECT 'terminal', 's', 'e' || n, '{}', '', 'fix', '', '[]', iif(n % 2, 'retired', 'active'), n, 0, '{}' FROM n;
                 UPDATE learnings SET subject = '' WHERE state = 'active';",
            )?;
            Ok(())
        });
        many.wait().unwrap();
        for ((few, many), (name, _)) in few.iter().zip(&count(&store)).zip(&all) {
            assert!(*many <= few + 200, "{name}: {few} steps among few rows, {many} among many");
        }
    }

    #[test]
    fn the_revision_changes_with_each_change_of_an_origin_and_with_nothing_else() {
        let (_dir, store) = scratch();
        let changes = store.memory_changes();
        let mut last = changes.revision().unwrap();
        let mut changed = || {
            let before = std::mem::replace(&mut last, changes.revision().unwrap());
            before != changes.revision().unwrap()
        };
        let one = changes.add(change("/a", "x", ChangeState::Pending)).wait().unwrap();
        assert!(changed());
        changes.set(one, ChangeState::Done).wait().unwrap();
        assert!(changed(), "a state");
        let removal =
            MemoryChange { removed: Some("x".into()), added: None, ..change("/a", "", ChangeState::Outside) };
        let gone = changes.add(removal).wait().unwrap();
        changes.set(gone, ChangeState::Declined).wait().unwrap();
        assert!(!changed(), "a removal has no origin");
        store
            .write(move |conn| {
                Ok(conn.execute("DELETE FROM memory_changes WHERE id = ?1", [one]).map(drop)?)
            })
            .wait()
            .unwrap();
        assert!(changed());
    }
}
