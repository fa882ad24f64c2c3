//! Todo lists. Each state is a row that never changes; entries and heads refer to the one in force, so every branch has
//! its own list.

use rusqlite::{Connection, OptionalExtension, params};
use tiller_protocol::{EntryId, SessionId, TodoItem};

use crate::error::Result;
use crate::handles::Todos;
use crate::write::ticket::Ticket;
use crate::{session::sessions, tree::heads};

/// Adds a state and makes it that of the head and of its entry. Earlier entries keep their states.
pub(crate) fn put(conn: &Connection, session: SessionId, head: &str, list: &[TodoItem]) -> Result<()> {
    let entry = heads::get(conn, session, head)?.and_then(|h| h.entry);
    conn.prepare_cached("INSERT INTO todo_states(session, entry, list) VALUES(?1, ?2, ?3)")?
        .execute(params![session.0, entry, serde_json::to_string(list)?])?;
    let state = conn.last_insert_rowid();
    if let Some(entry) = entry {
        conn.prepare_cached("UPDATE entries SET todo = ?2 WHERE id = ?1")?.execute(params![entry, state])?;
    }
    heads::put(conn, session, head, entry, Some(state))
}

fn list(text: Option<String>) -> Result<Vec<TodoItem>> {
    text.map_or_else(|| Ok(Vec::new()), |text| Ok(serde_json::from_str(&text)?))
}

impl Todos<'_> {
    /// The list at an entry; empty when there was none.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn at(&self, entry: EntryId) -> Result<Vec<TodoItem>> {
        list(self.store.read(|conn| {
            Ok(conn
                .prepare_cached(
                    "SELECT t.list FROM entries e JOIN todo_states t ON t.id = e.todo WHERE e.id = ?1",
                )?
                .query_row(params![entry.0], |r| r.get(0))
                .optional()?)
        })?)
    }

    /// The list of a head.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn list(&self, session: SessionId, head: &str) -> Result<Vec<TodoItem>> {
        list(self.store.read(|conn| {
            Ok(conn
                .prepare_cached(
                    "SELECT t.list FROM heads h JOIN todo_states t ON t.id = h.todo
                     WHERE h.session = ?1 AND h.name = ?2",
                )?
                .query_row(params![session.0, head], |r| r.get(0))
                .optional()?)
        })?)
    }

    /// Saves a list that the person changed between turns.
    pub fn set(&self, session: SessionId, head: &str, list: Vec<TodoItem>) -> Ticket<()> {
        let head = head.to_owned();
        self.store.write(move |conn| {
            sessions::must_exist(conn, session)?;
            put(conn, session, &head, &list)
        })
    }
}
