//! The state of the database, for `tiller doctor`.

use serde::Serialize;

use crate::error::Result;
use crate::open::Store;
use crate::open::folder;
use crate::open::migrate;
use crate::tree::entries::{COLUMNS, Raw, uncount};

/// What the doctor saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Doctor {
    pub path: String,
    pub sqlite: String,
    /// Of the file, and of this program.
    pub schema: u32,
    pub schema_known: u32,
    /// What SQLite's integrity check found; empty: nothing.
    pub problems: Vec<String>,
    /// Entries whose checksum is wrong.
    pub damaged_entries: u64,
    pub sessions: u64,
    pub entries: u64,
    /// Bytes of the database, of its log, and within the database unused.
    pub bytes: u64,
    pub log_bytes: u64,
    pub free_bytes: u64,
    /// The network file system that it is on.
    pub network: Option<String>,
    /// Why nothing is saved; empty: all is well.
    pub not_saving: String,
}

impl Store {
    /// Checks everything: reads the whole database once.
    ///
    /// # Errors
    /// When it cannot even be asked.
    pub fn doctor(&self) -> Result<Doctor> {
        let path = self.path();
        let health = self.health().borrow().why();
        self.read(|conn| {
            let number =
                |query: &str| -> Result<u64> { Ok(uncount(conn.query_row(query, [], |r| r.get(0))?)) };
            let mut problems: Vec<String> = Vec::new();
            for pragma in ["PRAGMA integrity_check(20)", "PRAGMA foreign_key_check"] {
                let mut statement = conn.prepare(pragma)?;
                let mut rows = statement.query([])?;
                while let Some(row) = rows.next()? {
                    let text: String = row.get(0)?;
                    if pragma.contains("foreign") {
                        problems.push(format!("a row of {text} refers to a missing row"));
                    } else if text != "ok" {
                        problems.push(text);
                    }
                    if problems.len() > 40 {
                        break;
                    }
                }
            }
            let mut damaged_entries = 0;
            let mut statement = conn.prepare(&format!("SELECT {COLUMNS} FROM entries"))?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let raw = Raw::from_row(row)?;
                damaged_entries += u64::from(raw.sum != raw.checksum());
            }
            Ok(Doctor {
                path: path.display().to_string(),
                sqlite: rusqlite::version().into(),
                schema: migrate::versions(conn)?.0,
                schema_known: migrate::latest(),
                problems,
                damaged_entries,
                sessions: number("SELECT count(*) FROM sessions")?,
                entries: number("SELECT count(*) FROM entries")?,
                bytes: folder::size(&path),
                log_bytes: folder::size(&folder::beside(&path, "-wal")),
                free_bytes: number("PRAGMA freelist_count")? * number("PRAGMA page_size")?,
                network: path.parent().and_then(self.inner.options.network),
                not_saving: health.clone(),
            })
        })
    }
}
