//! Heads: named pointers into the tree. A branch is a head.

use rusqlite::{Connection, OptionalExtension, params};
use tiller_protocol::{EntryId, Op, SessionId};
use uuid::Uuid;

use crate::append::optional;
use crate::error::{Result, StoreError};
use crate::open::Store;
use crate::ticket::Ticket;
use crate::{entries, ops, sessions};

/// A head's row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head {
    pub(crate) entry: Option<Uuid>,
    pub(crate) todo: Option<i64>,
}

pub(crate) fn get(conn: &Connection, session: SessionId, name: &str) -> Result<Option<Head>> {
    Ok(conn
        .prepare_cached("SELECT entry, todo FROM heads WHERE session = ?1 AND name = ?2")?
        .query_row(params![session.0, name], |r| Ok(Head { entry: r.get(0)?, todo: r.get(1)? }))
        .optional()?)
}

pub(crate) fn put(
    conn: &Connection,
    session: SessionId,
    name: &str,
    entry: Option<Uuid>,
    todo: Option<i64>,
) -> Result<()> {
    conn.prepare_cached(
        "INSERT INTO heads(session, name, entry, todo) VALUES(?1, ?2, ?3, ?4)
         ON CONFLICT(session, name) DO UPDATE SET entry = excluded.entry, todo = excluded.todo",
    )?
    .execute(params![session.0, name, entry, todo])?;
    Ok(())
}

impl Store {
    /// Where a head stands. `None`: there is no such head, or nothing was said on it yet.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn head(&self, session: SessionId, name: &str) -> Result<Option<EntryId>> {
        self.read(|conn| Ok(get(conn, session, name)?.and_then(|h| h.entry).map(EntryId)))
    }

    /// All heads of a session, by name.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn heads(&self, session: SessionId) -> Result<Vec<(String, Option<EntryId>)>> {
        self.read(|conn| {
            let mut statement =
                conn.prepare_cached("SELECT name, entry FROM heads WHERE session = ?1 ORDER BY name")?;
            let rows = statement.query_map(params![session.0], |r| {
                Ok((r.get(0)?, r.get::<_, Option<Uuid>>(1)?.map(EntryId)))
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Moves a head (or makes it) without adding an entry: fork, jump, undo. It becomes the session's
    /// current head, and takes the todo list of the entry that it moves to.
    pub fn set_head(
        &self,
        session: SessionId,
        name: &str,
        entry: Option<EntryId>,
        op: Option<Op>,
    ) -> Ticket<()> {
        let name = name.to_owned();
        self.write(move |conn| {
            sessions::must_exist(conn, session)?;
            let todo = match entry {
                None => None,
                Some(id) => {
                    let there = entries::inherited(conn, id.0)?.ok_or(StoreError::NoEntry(id))?;
                    if there.session != session.0 {
                        return Err(StoreError::Conflict(format!("entry {id} is of another session")));
                    }
                    there.todo
                }
            };
            put(conn, session, &name, optional(entry), todo)?;
            conn.execute("UPDATE sessions SET head = ?2 WHERE id = ?1", params![session.0, name])?;
            op.as_ref().map_or(Ok(()), |op| ops::append(conn, op))
        })
    }
}
