//! Tags: names that the person gives to single entries.

use rusqlite::{OptionalExtension, params};
use tiller_protocol::op::OpChange;
use tiller_protocol::{EntryId, Op, SessionId};
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::handles::Tags;
use crate::tree::branches::logged;
use crate::write::ticket::Ticket;

/// A name for one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagRow {
    pub name: String,
    pub entry: EntryId,
}

impl Tags<'_> {
    /// The tags of a session, by name.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn list(&self, session: SessionId) -> Result<Vec<TagRow>> {
        self.store.read(|conn| {
            let mut statement =
                conn.prepare_cached("SELECT name, entry FROM tags WHERE session = ?1 ORDER BY name")?;
            let rows = statement.query_map(params![session.0], |r| {
                Ok(TagRow { name: r.get(0)?, entry: EntryId(r.get(1)?) })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Tags an entry (`None`: removes the tag). An existing tag moves. The entry before is filled into `op`.
    ///
    /// The ticket's error is [`StoreError::NotFound`] when there is no tag to remove.
    pub fn set(&self, session: SessionId, name: &str, entry: Option<EntryId>, op: Option<Op>) -> Ticket<()> {
        self.put(session, name, entry, true, op)
    }

    /// As [`Self::set`], for a new tag: the ticket's error is [`StoreError::Conflict`] when another entry has it.
    pub fn add(&self, session: SessionId, name: &str, entry: EntryId, op: Option<Op>) -> Ticket<()> {
        self.put(session, name, Some(entry), false, op)
    }

    fn put(
        &self,
        session: SessionId,
        name: &str,
        entry: Option<EntryId>,
        may_move: bool,
        op: Option<Op>,
    ) -> Ticket<()> {
        let (name, now) = (name.to_owned(), self.store.now().millis());
        self.store.write(move |conn| {
            let was = conn
                .prepare_cached("SELECT entry FROM tags WHERE session = ?1 AND name = ?2")?
                .query_row(params![session.0, name], |r| r.get::<_, Uuid>(0))
                .optional()?;
            if !may_move && was.is_some() && was != entry.map(|e| e.0) {
                return Err(StoreError::Conflict(format!("another entry already has the tag {name}")));
            }
            if was.is_none() && entry.is_none() {
                return Err(StoreError::NotFound(format!("tag {name}")));
            }
            match entry {
                Some(id) => {
                    let here: bool = conn
                        .prepare_cached("SELECT exists(SELECT 1 FROM entries WHERE id = ?1 AND session = ?2)")?
                        .query_row(params![id.0, session.0], |r| r.get(0))?;
                    if !here {
                        return Err(StoreError::NoEntry(id));
                    }
                    conn.prepare_cached(
                        "INSERT INTO tags(session, name, entry, time) VALUES(?1, ?2, ?3, ?4)
                         ON CONFLICT(session, name) DO UPDATE SET entry = excluded.entry, time = excluded.time",
                    )?
                    .execute(params![session.0, name, id.0, now])?;
                }
                None => {
                    conn.prepare_cached("DELETE FROM tags WHERE session = ?1 AND name = ?2")?
                        .execute(params![session.0, name])?;
                }
            }
            logged(conn, op.as_ref(), |change| {
                if let OpChange::Tag { before, .. } = change {
                    *before = was.map(EntryId);
                }
            })
        })
    }
}
