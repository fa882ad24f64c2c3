//! Earlier prompts, for the composer.

use rusqlite::{Connection, params};
use tiller_protocol::command::HistoryScope;
use tiller_protocol::{SessionId, Time};

use crate::error::Result;
use crate::handles::Prompts;
use crate::session::sessions::like;
use crate::write::ticket::Ticket;

/// Inserts a prompt under the session's project.
pub(crate) fn insert(conn: &Connection, session: SessionId, text: &str, now: Time) -> Result<()> {
    if text.trim().is_empty() {
        return Ok(());
    }
    conn.prepare_cached(
        "INSERT INTO prompts(project, session, time, text)
         SELECT project, id, ?2, ?3 FROM sessions WHERE id = ?1",
    )?
    .execute(params![session.0, now.millis(), text])?;
    Ok(())
}

impl Prompts<'_> {
    /// Adds a prompt (also a prompt that was cleared instead of sent).
    pub fn add(&self, session: SessionId, text: &str) -> Ticket<()> {
        let (text, now) = (text.to_owned(), self.store.now());
        self.store.write(move |conn| insert(conn, session, &text, now))
    }

    /// Prompts that contain every word of `filter`, newest first, without duplicates.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn list(
        &self,
        session: SessionId,
        scope: HistoryScope,
        filter: &str,
        limit: u32,
    ) -> Result<Vec<String>> {
        let scope = match scope {
            HistoryScope::Session => "session = ?1",
            HistoryScope::Project => "project = (SELECT project FROM sessions WHERE id = ?1)",
            HistoryScope::All => "?1 IS NOT NULL",
        };
        let words: Vec<String> = filter.split_whitespace().map(like).collect();
        let clauses: String =
            (0..words.len()).map(|n| format!(" AND text LIKE ?{} ESCAPE '\\'", n + 3)).collect();
        self.store.read(|conn| {
            let mut statement = conn.prepare(&format!(
                "SELECT text FROM prompts WHERE {scope}{clauses} GROUP BY text ORDER BY max(id) DESC LIMIT ?2"
            ))?;
            let mut values: Vec<&dyn rusqlite::ToSql> = vec![&session.0, &limit];
            values.extend(words.iter().map(|w| w as &dyn rusqlite::ToSql));
            let rows = statement.query_map(values.as_slice(), |r| r.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}
