//! The person's decisions about folders. Trust applies to content: it is valid only while every item has the hash that
//! was shown.

use rusqlite::{OptionalExtension, Row, params};
use tiller_protocol::Time;
use tiller_protocol::ask::TrustItem;

use crate::error::Result;
use crate::handles::Trust;
use crate::write::ticket::Ticket;

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustRow {
    /// Absolute real path.
    pub folder: String,
    /// False: never ask again, and never load.
    pub trusted: bool,
    /// The items that were shown.
    pub items: Vec<TrustItem>,
    pub time: Time,
}

impl TrustRow {
    /// New and changed items since the decision. Empty: the decision is still valid.
    pub fn news<'a>(&self, now: &'a [TrustItem]) -> Vec<&'a TrustItem> {
        now.iter().filter(|item| !self.items.contains(item)).collect()
    }
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<(TrustRow, String)> {
    Ok((
        TrustRow {
            folder: row.get(0)?,
            trusted: row.get::<_, String>(1)? == "trusted",
            items: Vec::new(),
            time: Time(row.get(3)?),
        },
        row.get(2)?,
    ))
}

/// Unreadable items count as not shown.
fn with_items((row, items): (TrustRow, String)) -> TrustRow {
    TrustRow { items: serde_json::from_str(&items).unwrap_or_default(), ..row }
}

impl Trust<'_> {
    /// Records a decision.
    pub fn set(&self, folder: &str, trusted: bool, items: Vec<TrustItem>) -> Ticket<()> {
        let (folder, now) = (folder.to_owned(), self.store.now());
        self.store.write(move |conn| {
            conn.execute(
                "INSERT OR REPLACE INTO trust(folder, decision, items, time) VALUES(?1, ?2, ?3, ?4)",
                params![
                    folder,
                    if trusted { "trusted" } else { "never" },
                    serde_json::to_string(&items)?,
                    now.millis()
                ],
            )?;
            Ok(())
        })
    }

    /// The decision on a folder.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn get(&self, folder: &str) -> Result<Option<TrustRow>> {
        self.store.read(|conn| {
            Ok(conn
                .prepare_cached("SELECT folder, decision, items, time FROM trust WHERE folder = ?1")?
                .query_row(params![folder], from_row)
                .optional()?
                .map(with_items))
        })
    }

    /// All decisions.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn list(&self) -> Result<Vec<TrustRow>> {
        self.store.read(|conn| {
            let mut statement =
                conn.prepare("SELECT folder, decision, items, time FROM trust ORDER BY folder")?;
            let rows = statement.query_map([], from_row)?;
            Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().map(with_items).collect())
        })
    }

    /// Deletes a decision. Returns whether there was one.
    pub fn revoke(&self, folder: &str) -> Ticket<bool> {
        let folder = folder.to_owned();
        self.store
            .write(move |conn| Ok(conn.execute("DELETE FROM trust WHERE folder = ?1", params![folder])? > 0))
    }
}
