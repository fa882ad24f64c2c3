//! What memory files held when Tiller looked at them last, and what was missing from them later.

use rusqlite::{Connection, OptionalExtension, params};
use tiller_protocol::memory::{ChangeState, MemoryChange};
use tiller_protocol::{AgentId, EntryId, Provenance, SessionId, Taint};

use crate::error::Result;
use crate::handles::MemoryChanges;
use crate::knowledge::memory::{insert, insert_missing};
use crate::knowledge::memory_unfinished::key;
use crate::lease::process::Process;
use crate::lease::process_from;
use crate::write::ticket::Ticket;

/// A mark in the database: a call of a process runs that may write a memory file by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRun {
    pub path: String,
    /// Whose mark it is: another one for each user of the files, also within a process.
    pub runner: String,
    /// It may have been killed.
    pub process: Process,
    /// The file when the call began.
    pub text: String,
    pub by: Provenance,
}

/// What a look at a memory file found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryLook {
    /// The key of the file: its absolute path.
    pub path: String,
    pub text: String,
    /// Entries that other programs removed or added.
    pub changes: Vec<MemoryChange>,
    /// Recorded removals whose entries are in the file again.
    pub back: Vec<i64>,
}

impl MemoryChanges<'_> {
    /// The text of a file at the last look; `None`: it was never looked at.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn seen(&self, path: &str) -> Result<Option<String>> {
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached("SELECT text FROM memory_seen WHERE path = ?1")?;
            Ok(statement.query_row([path], |row| row.get(0)).optional()?)
        })
    }

    /// The marks of all others than this runner, the latest last.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn runs_of_others(&self, runner: &str) -> Result<Vec<MemoryRun>> {
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT path, runner, pid, start, boot, space, text, session, entry, branch, agent FROM memory_runs
                 WHERE runner <> ?1 ORDER BY rowid",
            )?;
            let rows = statement.query_map([runner], |row| {
                Ok(MemoryRun {
                    path: row.get(0)?,
                    runner: row.get(1)?,
                    process: process_from(row, 2)?,
                    text: row.get(6)?,
                    by: Provenance {
                        session: Some(SessionId(row.get(7)?)),
                        entry: row.get::<_, Option<uuid::Uuid>>(8)?.map(EntryId),
                        branch: row.get(9)?,
                        agent: AgentId(row.get(10)?),
                        taint: Taint::ToolOutput,
                    },
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Stores a look: the file as it is now, and what other programs did to it, with the times of the changes. All of it or,
    /// after a kill, nothing.
    pub fn look(&self, look: MemoryLook) -> Ticket<()> {
        self.store.write(move |conn| {
            set_text(conn, &look.path, &look.text)?;
            conn.execute("DELETE FROM meta WHERE key = ?1", params![key(&look.path)])?;
            for change in &look.changes {
                match change.state {
                    ChangeState::Outside => insert_missing(conn, change)?,
                    _ => insert(conn, change.time, change).map(drop)?,
                }
            }
            for id in &look.back {
                conn.prepare_cached("UPDATE memory_changes SET state = ?2 WHERE id = ?1 AND state = ?3")?
                    .execute(params![id, ChangeState::Declined.word(), ChangeState::Outside.word()])?;
            }
            Ok(())
        })
    }

    /// A call of this process begins that may write these files by itself: sets the mark of the runner. A file that was never
    /// looked at gets none. `None`: it has ended, and the mark goes.
    pub fn runs(&self, paths: Vec<String>, runner: String, by: Option<Provenance>) -> Ticket<()> {
        let process = Process::current();
        self.store.write(move |conn| {
            for path in &paths {
                let Some((by, session)) = by.as_ref().and_then(|by| Some((by, by.session?))) else {
                    conn.prepare_cached("DELETE FROM memory_runs WHERE path = ?1 AND runner = ?2")?
                        .execute(params![path, runner])?;
                    continue;
                };
                // While one call follows another, the file counts as it was before the first.
                conn.prepare_cached(
                    "INSERT INTO memory_runs(path, runner, pid, start, boot, space, text, session, entry, branch, agent)
                     SELECT path, ?2, ?3, ?4, ?5, ?6, text, ?7, ?8, ?9, ?10 FROM memory_seen WHERE path = ?1
                     ON CONFLICT(path, runner) DO UPDATE SET session = excluded.session, entry = excluded.entry,
                       branch = excluded.branch, agent = excluded.agent",
                )?
                .execute(params![
                    path,
                    runner,
                    process.pid,
                    process.start,
                    process.boot,
                    process.space,
                    session.0,
                    by.entry.map(|e| e.0),
                    by.branch,
                    by.agent.0,
                ])?;
            }
            Ok(())
        })
    }
}

fn set_text(conn: &Connection, path: &str, text: &str) -> Result<()> {
    conn.prepare_cached(
        "INSERT INTO memory_seen(path, text) VALUES(?1, ?2) ON CONFLICT(path) DO UPDATE SET text = excluded.text",
    )?
    .execute(params![path, text])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use tiller_protocol::memory::ChangeDetails;

    use super::*;
    use crate::testing::*;

    #[test]
    fn a_look_is_stored_with_what_is_missing_and_the_call_that_runs() {
        let (_dir, store) = scratch();
        let changes = store.memory_changes();
        assert_eq!(changes.seen("/a").unwrap(), None);
        let look = |text: &str| MemoryLook { path: "/a".into(), text: text.into(), ..MemoryLook::default() };
        changes.look(look("- x\n")).wait().unwrap();
        let by = Provenance {
            session: Some(session_id(1)),
            branch: "main".into(),
            agent: AgentId::main(),
            taint: Taint::ToolOutput,
            ..Provenance::default()
        };
        let runs = |runner: &str, by| changes.runs(vec!["/a".into(), "/b".into()], runner.into(), by);
        runs("one", Some(by.clone())).wait().unwrap();
        runs("two", Some(Provenance { branch: "b".into(), ..by.clone() })).wait().unwrap();
        assert_eq!(changes.seen("/a").unwrap().as_deref(), Some("- x\n"));
        let one = MemoryRun {
            path: "/a".into(),
            runner: "one".into(),
            process: Process::current(),
            text: "- x\n".into(),
            by: by.clone(),
        };
        assert_eq!(
            changes.runs_of_others("two").unwrap(),
            std::slice::from_ref(&one),
            "of /b nothing was seen"
        );
        // Another call of the same: the file counts as it was before the first.
        changes.look(look("- y\n")).wait().unwrap();
        let later = Provenance { branch: "later".into(), ..by.clone() };
        runs("one", Some(later.clone())).wait().unwrap();
        assert_eq!(changes.runs_of_others("two").unwrap(), [MemoryRun { by: later, ..one }]);
        runs("one", None).wait().unwrap();
        assert_eq!(changes.runs_of_others("two").unwrap(), []);
        assert_eq!(changes.runs_of_others("one").unwrap().len(), 1, "each ends its own");
        let removed = MemoryChange {
            id: 0,
            time: tiller_protocol::Time(0),
            path: "/a".into(),
            removed: Some("x".into()),
            added: None,
            archived: None,
            state: ChangeState::Outside,
            from: by,
            details: ChangeDetails::default(),
        };
        changes.look(MemoryLook { changes: vec![removed], ..look("") }).wait().unwrap();
        assert_eq!(changes.seen("/a").unwrap().as_deref(), Some(""));
        let rows = changes.of_files(&["/a".into()]).unwrap();
        assert_eq!(
            (rows.len(), rows[0].state, rows[0].removed.as_deref()),
            (1, ChangeState::Outside, Some("x"))
        );
        changes.look(MemoryLook { back: vec![rows[0].id], ..look("- x\n") }).wait().unwrap();
        assert_eq!(changes.get(rows[0].id).unwrap().unwrap().state, ChangeState::Declined);
    }

    #[test]
    fn what_vanishes_again_and_again_has_one_row() {
        let (_dir, store) = scratch();
        let changes = store.memory_changes();
        let missing = |time: i64| MemoryChange {
            id: 0,
            time: tiller_protocol::Time(time),
            path: "/a".into(),
            removed: Some("x".into()),
            added: None,
            archived: None,
            state: ChangeState::Outside,
            from: Provenance { session: Some(session_id(1)), ..Provenance::default() },
            details: ChangeDetails::default(),
        };
        let look = MemoryLook { path: "/a".into(), ..MemoryLook::default() };
        for time in 1..=3 {
            changes.look(MemoryLook { changes: vec![missing(time)], ..look.clone() }).wait().unwrap();
            let rows = changes.of_files(&["/a".into()]).unwrap();
            assert_eq!(rows, [MemoryChange { id: rows[0].id, ..missing(time) }]);
            changes.look(MemoryLook { back: vec![rows[0].id], ..look.clone() }).wait().unwrap();
        }
        // Another entry, and a change by Tiller, have rows of their own.
        let other = MemoryChange { removed: Some("y".into()), ..missing(4) };
        let own = MemoryChange { state: ChangeState::Done, ..missing(4) };
        changes.look(MemoryLook { changes: vec![other, own, missing(5)], ..look }).wait().unwrap();
        assert_eq!(changes.of_files(&["/a".into()]).unwrap().len(), 3);
    }
}
