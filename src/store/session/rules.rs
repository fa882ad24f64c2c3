//! Permission rules that hold for one session. What they mean is the permission room's affair.

use rusqlite::params;
use tiller_protocol::SessionId;

use crate::error::Result;
use crate::open::Store;
use crate::write::ticket::Ticket;

impl Store {
    /// Forgets the rules of a session: one that came from elsewhere brings no permissions along.
    pub fn clear_rules(&self, session: SessionId) -> Ticket<()> {
        self.write(move |conn| {
            conn.execute("DELETE FROM rules WHERE session = ?1", [session.0])?;
            Ok(())
        })
    }

    /// Adds a rule, in the form in which the permission room writes it.
    pub fn add_rule(&self, session: SessionId, rule: &str) -> Ticket<()> {
        let (rule, now) = (rule.to_owned(), self.now());
        self.write(move |conn| {
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
    pub fn rules(&self, session: SessionId) -> Result<Vec<String>> {
        self.read(|conn| {
            let mut statement =
                conn.prepare_cached("SELECT body FROM rules WHERE session = ?1 ORDER BY id")?;
            let rows = statement.query_map(params![session.0], |r| r.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}
