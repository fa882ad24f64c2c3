//! Small values by name (the last model, the chosen theme, the tour's progress).

use rusqlite::{OptionalExtension, params};

use crate::error::Result;
use crate::open::Store;
use crate::write::ticket::Ticket;

impl Store {
    /// The value of a key.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn meta(&self, key: &str) -> Result<Option<String>> {
        self.read(|conn| {
            Ok(conn
                .prepare_cached("SELECT value FROM meta WHERE key = ?1")?
                .query_row(params![key], |r| r.get(0))
                .optional()?)
        })
    }

    /// Sets a value; `None` removes it.
    pub fn set_meta(&self, key: &str, value: Option<String>) -> Ticket<()> {
        let key = key.to_owned();
        self.write(move |conn| {
            match &value {
                Some(value) => conn
                    .execute("INSERT OR REPLACE INTO meta(key, value) VALUES(?1, ?2)", params![key, value])?,
                None => conn.execute("DELETE FROM meta WHERE key = ?1", params![key])?,
            };
            Ok(())
        })
    }
}
