//! State that waits on a head: messages, questions, and entries that are not in the tree yet. Short lists that are
//! replaced as a whole.

use rusqlite::{Connection, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tiller_protocol::{Ask, EntryBody, Queued, SessionId, Taint};

use crate::error::Result;
use crate::handles::Unfinished;
use crate::open::Store;
use crate::tree::entries::distrust;
use crate::write::ticket::Ticket;

/// `table` is `queue`, `asks` or `pending`.
pub(crate) fn put<T: Serialize>(
    conn: &Connection,
    table: &'static str,
    session: SessionId,
    head: &str,
    items: &[T],
) -> Result<()> {
    conn.prepare_cached(&format!("DELETE FROM {table} WHERE session = ?1 AND head = ?2"))?
        .execute(params![session.0, head])?;
    for (place, item) in items.iter().enumerate() {
        let place = i64::try_from(place).unwrap_or(i64::MAX);
        put_one(conn, table, session, head, place, &serde_json::to_string(item)?, false)?;
    }
    Ok(())
}

/// Inserts one row unchanged. `imported`: a file brought it.
pub(crate) fn put_one(
    conn: &Connection,
    table: &'static str,
    session: SessionId,
    head: &str,
    place: i64,
    body: &str,
    imported: bool,
) -> Result<()> {
    conn.prepare_cached(&format!(
        "INSERT INTO {table}(session, head, place, body, imported) VALUES(?1, ?2, ?3, ?4, ?5)"
    ))?
    .execute(params![session.0, head, place, body, imported])?;
    Ok(())
}

/// `others`: what to do with one that a file brought.
fn get<T: DeserializeOwned>(
    store: &Store,
    table: &'static str,
    session: SessionId,
    head: &str,
    others: fn(&mut T),
) -> Result<Vec<T>> {
    let bodies: Vec<(String, bool)> = store.read(|conn| {
        let mut statement = conn.prepare_cached(&format!(
            "SELECT body, imported FROM {table} WHERE session = ?1 AND head = ?2 ORDER BY place"
        ))?;
        let rows = statement.query_map(params![session.0, head], |r| Ok((r.get(0)?, r.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    })?;
    // An unreadable one must not hide the others.
    Ok(bodies
        .iter()
        .filter_map(|(body, imported)| {
            let mut item = serde_json::from_str(body)
                .inspect_err(|error| tracing::warn!(%error, table, "a waiting item cannot be read"))
                .ok()?;
            if *imported {
                others(&mut item);
            }
            Some(item)
        })
        .collect())
}

impl Unfinished<'_> {
    /// Saves the waiting messages of a head, in order. (Usually part of an [`crate::Append`].)
    pub fn save_queue(&self, session: SessionId, head: &str, items: Vec<Queued>) -> Ticket<()> {
        let head = head.to_owned();
        self.store.write(move |conn| put(conn, "queue", session, &head, &items))
    }

    /// The waiting messages of a head. Those that a file brought are text of others.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn queue(&self, session: SessionId, head: &str) -> Result<Vec<Queued>> {
        get(self.store, "queue", session, head, |queued: &mut Queued| {
            queued.taint = Some(Taint::Web);
            // Its entry is one of the session that it came from.
            queued.run = None;
        })
    }

    /// The waiting questions of a head.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn asks(&self, session: SessionId, head: &str) -> Result<Vec<Ask>> {
        get(self.store, "asks", session, head, |_| {})
    }

    /// Adds the body of an entry to a head that no agent of this process has open; it is appended when the head is
    /// opened.
    pub fn add_pending(&self, session: SessionId, head: &str, body: EntryBody) -> Ticket<()> {
        let head = head.to_owned();
        self.store.write(move |conn| {
            let place: i64 = conn.query_row(
                "SELECT coalesce(max(place) + 1, 0) FROM pending WHERE session = ?1 AND head = ?2",
                params![session.0, head],
                |r| r.get(0),
            )?;
            put_one(conn, "pending", session, &head, place, &serde_json::to_string(&body)?, false)
        })
    }

    /// Bodies of entries that are not in the tree yet.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn pending(&self, session: SessionId, head: &str) -> Result<Vec<EntryBody>> {
        get(self.store, "pending", session, head, distrust)
    }
}
