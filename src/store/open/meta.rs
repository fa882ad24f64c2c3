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

    /// Sets a value where `before` is there (`None`: nothing), so that of several processes one does. False: another one is
    /// there, and stays.
    pub fn replace_meta(&self, key: &str, before: Option<String>, value: String) -> Ticket<bool> {
        let key = key.to_owned();
        self.write(move |conn| {
            let now: Option<String> = conn
                .prepare_cached("SELECT value FROM meta WHERE key = ?1")?
                .query_row(params![key], |r| r.get(0))
                .optional()?;
            if now != before {
                return Ok(false);
            }
            conn.execute("INSERT OR REPLACE INTO meta(key, value) VALUES(?1, ?2)", params![key, value])?;
            Ok(true)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::*;

    #[test]
    fn a_value_is_replaced_only_where_the_one_before_is_still_there() {
        let (_dir, store) = scratch();
        let replace = |before: Option<&str>, value: &str| {
            store.replace_meta("k", before.map(Into::into), value.into()).wait().unwrap()
        };
        assert!(!replace(Some("a"), "b"));
        assert!(replace(None, "a") && !replace(None, "b") && replace(Some("a"), "c"));
        assert_eq!(store.meta("k").unwrap().as_deref(), Some("c"));
    }
}
