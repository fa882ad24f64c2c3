//! Permission rules of one session. The room `permit` defines their meaning.

use rusqlite::params;
use tiller_protocol::SessionId;

use crate::error::Result;
use crate::handles::Rules;
use crate::write::ticket::Ticket;

impl Rules<'_> {
    /// Adds a rule, in the syntax of `permit`.
    pub fn add(&self, session: SessionId, rule: &str) -> Ticket<()> {
        let (rule, now) = (rule.to_owned(), self.store.now());
        self.store.write(move |conn| {
            conn.execute(
                "INSERT INTO rules(session, time, body) VALUES(?1, ?2, ?3)",
                params![session.0, now.millis(), rule],
            )?;
            Ok(())
        })
    }

    /// The session's rules, in the order in which they were added.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn list(&self, session: SessionId) -> Result<Vec<String>> {
        self.store.read(|conn| {
            let mut statement =
                conn.prepare_cached("SELECT body FROM rules WHERE session = ?1 ORDER BY id")?;
            let rows = statement.query_map(params![session.0], |r| r.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}
