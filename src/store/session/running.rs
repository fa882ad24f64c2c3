//! The running turn. If its process has ended, this is the interrupted turn.

use rusqlite::{Connection, OptionalExtension, params};
use tiller_protocol::{SessionId, Time};

use crate::error::Result;
use crate::handles::Unfinished;
use crate::write::ticket::Ticket;

/// What a session was doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    pub agent: String,
    /// A description for the person, for instance `a reply of anthropic/x` or `the command cargo test`.
    pub what: String,
    pub since: Time,
}

pub(crate) fn put(conn: &Connection, session: SessionId, head: &str, state: Option<&Running>) -> Result<()> {
    match state {
        Some(now) => {
            conn.prepare_cached(
                "INSERT OR REPLACE INTO running(session, head, agent, what, since) VALUES(?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![session.0, head, now.agent, now.what, now.since.millis()])?;
        }
        None => {
            conn.prepare_cached("DELETE FROM running WHERE session = ?1 AND head = ?2")?
                .execute(params![session.0, head])?;
        }
    }
    Ok(())
}

impl Unfinished<'_> {
    /// Records the running turn, or its end. (Usually part of an [`crate::Append`].)
    pub fn set_running(&self, session: SessionId, head: &str, state: Option<Running>) -> Ticket<()> {
        let head = head.to_owned();
        self.store.write(move |conn| put(conn, session, &head, state.as_ref()))
    }

    /// The turn that is recorded as running on a head. On a head that was just opened, that is the interrupted turn.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn interrupted(&self, session: SessionId, head: &str) -> Result<Option<Running>> {
        self.store.read(|conn| {
            Ok(conn
                .prepare_cached("SELECT agent, what, since FROM running WHERE session = ?1 AND head = ?2")?
                .query_row(params![session.0, head], |r| {
                    Ok(Running { agent: r.get(0)?, what: r.get(1)?, since: Time(r.get(2)?) })
                })
                .optional()?)
        })
    }
}
