//! The trash. A session in the trash can be restored for 30 days; then it is removed for good.

use std::time::Duration;

use rusqlite::params;
use tiller_protocol::SessionId;

use crate::error::{Result, StoreError};
use crate::handles::Trash;
use crate::lease;
use crate::lease::hold::LivenessCheck;
use crate::session::family;
use crate::session::made_by::MadeBy;
use crate::tree::entries;
use crate::write::ticket::Ticket;

/// How long a session stays in the trash.
pub(crate) const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// A younger session without a lease may be about to be opened by the process that created it.
const FRESH: Duration = Duration::from_secs(60);

/// Tables with rows of a session, children first.
const TABLES: &[&str] = &[
    "tags",
    "heads",
    "ops",
    "steps",
    "todo_states",
    "audit",
    "queue",
    "asks",
    "pending",
    "prompts",
    "leases",
    "running",
    "rules",
    "entries",
];

/// What was removed for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedSessions {
    pub sessions: u64,
    pub entries: u64,
}

impl Trash<'_> {
    /// Moves a session and those of its agents to the trash, or restores them.
    pub fn set_trashed(&self, session: SessionId, trashed: bool) -> Ticket<()> {
        let now = self.store.now().millis();
        self.store.write(move |conn| {
            let when = trashed.then_some(now);
            let rows =
                conn.execute("UPDATE sessions SET trashed = ?2 WHERE id = ?1", params![session.0, when])?;
            if rows == 0 {
                return Err(StoreError::NoSession(session));
            }
            for child in family::below(conn, session)? {
                conn.execute("UPDATE sessions SET trashed = ?2 WHERE id = ?1", params![child.0, when])?;
            }
            Ok(())
        })
    }

    /// Removes sessions that have been in the trash for more than 30 days. Their costs are kept.
    pub fn sweep(&self) -> Ticket<RemovedSessions> {
        let before = self.store.now().millis() - i64::try_from(KEPT.as_millis()).unwrap_or(i64::MAX);
        self.store.write(move |conn| {
            let mut old: Vec<uuid::Uuid> = {
                let mut statement = conn.prepare("SELECT id FROM sessions WHERE trashed < ?1")?;
                let rows = statement.query_map(params![before], |r| r.get(0))?;
                rows.collect::<rusqlite::Result<_>>()?
            };
            remove(conn, &mut old)
        })
    }

    /// Removes a session for good, with those of its agents. Their costs are kept.
    pub fn discard(&self, session: SessionId) -> Ticket<RemovedSessions> {
        self.store.write(move |conn| remove(conn, &mut vec![session.0]))
    }

    /// Removes ephemeral sessions without a living process: their runs were killed. Returns their ids. A session
    /// without a lease stays for its first minute, because its process may be about to take one.
    pub fn discard_ephemeral(&self) -> Ticket<Vec<SessionId>> {
        let fresh = self.store.now().millis() - i64::try_from(FRESH.as_millis()).unwrap_or(i64::MAX);
        self.store.write(move |conn| {
            let judge = LivenessCheck::of(conn);
            let rows: Vec<(uuid::Uuid, i64)> = {
                let mut statement = conn.prepare_cached(
                    "SELECT id, created FROM sessions WHERE origin = ?1 AND spawned_by IS NULL",
                )?;
                let rows = statement.query_map([MadeBy::Ephemeral.name()], |r| Ok((r.get(0)?, r.get(1)?)))?;
                rows.collect::<rusqlite::Result<_>>()?
            };
            let mut old = Vec::new();
            for (id, created) in rows {
                let mut statement = conn
                    .prepare_cached("SELECT nonce, pid, start, boot, space FROM leases WHERE session = ?1")?;
                let held = statement
                    .query_map(params![id], |r| Ok(judge.alive(r.get(0)?, &lease::process_from(r, 1)?)))?;
                let held: Vec<bool> = held.collect::<rusqlite::Result<_>>()?;
                if if held.is_empty() { created < fresh } else { !held.contains(&true) } {
                    old.push(id);
                }
            }
            if !old.is_empty() {
                remove(conn, &mut old.clone())?;
            }
            Ok(old.into_iter().map(SessionId).collect())
        })
    }

    /// Sessions without a message that no process has open.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn unused(&self) -> Result<Vec<SessionId>> {
        self.store.read(|conn| {
            let mut statement = conn.prepare(
                "SELECT id FROM sessions WHERE used_order = 0 AND spawned_by IS NULL
                   AND id NOT IN (SELECT session FROM leases) ORDER BY id",
            )?;
            let rows = statement.query_map([], |r| r.get(0).map(SessionId))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}

/// Removes these sessions and those below them.
fn remove(conn: &rusqlite::Connection, old: &mut Vec<uuid::Uuid>) -> Result<RemovedSessions> {
    // Including those of agents that were moved to the trash earlier.
    for n in 0..old.len() {
        old.extend(family::below(conn, SessionId(old[n]))?.iter().map(|s| s.0));
    }
    old.sort_unstable();
    old.dedup();
    // Parents and children are deleted together; foreign keys are checked at the end.
    conn.execute_batch("PRAGMA defer_foreign_keys=ON")?;
    let mut swept = RemovedSessions::default();
    entries::keep_row_numbers(conn)?;
    for id in old.iter() {
        for table in TABLES {
            let rows = conn.execute(&format!("DELETE FROM {table} WHERE session = ?1"), params![id])?;
            if *table == "entries" {
                swept.entries += rows as u64;
            }
        }
        conn.execute("DELETE FROM agents WHERE root = ?1", params![id])?;
        conn.execute("DELETE FROM workflow_steps WHERE root = ?1", params![id])?;
        conn.execute("DELETE FROM workflows WHERE root = ?1", params![id])?;
        conn.execute("DELETE FROM sessions WHERE id = ?1", params![id])?;
        swept.sessions += 1;
    }
    Ok(swept)
}
