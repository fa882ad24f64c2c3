//! What memory files held when Tiller looked at them last, and what was missing from them later.

use rusqlite::{Connection, OptionalExtension, params};
use tiller_protocol::memory::{ChangeState, MemoryChange};
use tiller_protocol::{AgentId, EntryId, Provenance, SessionId, Taint};

use crate::error::Result;
use crate::handles::MemoryChanges;
use crate::knowledge::memory::{insert, insert_missing};
use crate::write::ticket::Ticket;

/// A memory file as it was at the last look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySeen {
    pub text: String,
    /// The call that may write the file by itself and was running when this was stored. Its process may have been killed.
    pub by: Option<Provenance>,
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
    /// A file as it was at the last look; `None`: it was never looked at.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn seen(&self, path: &str) -> Result<Option<MemorySeen>> {
        self.store.read(|conn| {
            let sql =
                "SELECT text, by_session, by_entry, by_branch, by_agent FROM memory_seen WHERE path = ?1";
            let seen = conn.prepare_cached(sql)?.query_row([path], |row| {
                let session = row.get::<_, Option<uuid::Uuid>>(1)?.map(SessionId);
                let by = Provenance {
                    session,
                    entry: row.get::<_, Option<uuid::Uuid>>(2)?.map(EntryId),
                    branch: row.get(3)?,
                    agent: AgentId(row.get(4)?),
                    taint: Taint::ToolOutput,
                };
                Ok(MemorySeen { text: row.get(0)?, by: session.map(|_| by) })
            });
            Ok(seen.optional()?)
        })
    }

    /// Stores a look: the file as it is now, and what other programs did to it, with the times of the changes. All of it or,
    /// after a kill, nothing.
    pub fn look(&self, look: MemoryLook) -> Ticket<()> {
        self.store.write(move |conn| {
            set_text(conn, &look.path, &look.text)?;
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

    /// A call begins that may write these files by itself; `None`: it has ended.
    pub fn runs(&self, paths: Vec<String>, by: Option<Provenance>) -> Ticket<()> {
        self.store.write(move |conn| {
            for path in &paths {
                conn.prepare_cached(
                    "UPDATE memory_seen SET by_session = ?2, by_entry = ?3, by_branch = ?4, by_agent = ?5 WHERE path = ?1",
                )?
                .execute(params![
                    path,
                    by.as_ref().and_then(|by| by.session).map(|s| s.0),
                    by.as_ref().and_then(|by| by.entry).map(|e| e.0),
                    by.as_ref().map_or("", |by| by.branch.as_str()),
                    by.as_ref().map_or("", |by| by.agent.0.as_str()),
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
        changes.runs(vec!["/a".into()], Some(by.clone())).wait().unwrap();
        assert_eq!(
            changes.seen("/a").unwrap(),
            Some(MemorySeen { text: "- x\n".into(), by: Some(by.clone()) })
        );
        let removed = MemoryChange {
            id: 0,
            time: tiller_protocol::Time(0),
            path: "/a".into(),
            removed: Some("x".into()),
            added: None,
            archived: None,
            state: ChangeState::Outside,
            from: by,
        };
        changes.look(MemoryLook { changes: vec![removed], ..look("") }).wait().unwrap();
        changes.runs(vec!["/a".into()], None).wait().unwrap();
        assert_eq!(changes.seen("/a").unwrap(), Some(MemorySeen { text: String::new(), by: None }));
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
