//! The trash. A session that was thrown away can be taken back for 30 days; then it goes for good.

use std::time::Duration;

use rusqlite::params;
use tiller_protocol::SessionId;

use crate::error::{Result, StoreError};
use crate::family;
use crate::open::Store;
use crate::ticket::Ticket;

/// How long the trash keeps.
pub(crate) const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// Everything that belongs to a session, children first.
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
    "drafts",
    "prompts",
    "leases",
    "running",
    "rules",
    "entries",
];

/// What was removed for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    pub sessions: u64,
    pub entries: u64,
}

impl Store {
    /// Throws a session into the trash, or takes it back. Those of its agents go with it.
    pub fn set_trashed(&self, session: SessionId, trashed: bool) -> Ticket<()> {
        let now = self.now().millis();
        self.write(move |conn| {
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

    /// Removes what lies in the trash for more than 30 days. What was paid stays in the table of costs.
    pub fn sweep(&self) -> Ticket<Swept> {
        let before = self.now().millis() - i64::try_from(KEPT.as_millis()).unwrap_or(i64::MAX);
        self.write(move |conn| {
            let mut old: Vec<uuid::Uuid> = {
                let mut statement = conn.prepare("SELECT id FROM sessions WHERE trashed < ?1")?;
                let rows = statement.query_map(params![before], |r| r.get(0))?;
                rows.collect::<rusqlite::Result<_>>()?
            };
            // Those of agents that were thrown away before they went along.
            for n in 0..old.len() {
                old.extend(family::below(conn, SessionId(old[n]))?.iter().map(|s| s.0));
            }
            old.sort_unstable();
            old.dedup();
            // Parents and children go together; the links are checked at the end.
            conn.execute_batch("PRAGMA defer_foreign_keys=ON")?;
            let mut swept = Swept::default();
            for id in old {
                for table in TABLES {
                    let rows =
                        conn.execute(&format!("DELETE FROM {table} WHERE session = ?1"), params![id])?;
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
        })
    }

    /// Sessions that were made but in which nothing was ever said, and that nobody has open.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn unused(&self) -> Result<Vec<SessionId>> {
        self.read(|conn| {
            let mut statement = conn.prepare(
                "SELECT id FROM sessions WHERE used_order = 0 AND spawned_by IS NULL
                   AND id NOT IN (SELECT session FROM leases) ORDER BY id",
            )?;
            let rows = statement.query_map([], |r| r.get(0).map(SessionId))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}
