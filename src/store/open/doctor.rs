//! The state of the database, for `tiller doctor`.

use serde::Serialize;

use crate::error::Result;
use crate::open::Store;
use crate::open::folder;
use crate::open::migrate;
use crate::tree::entries::{COLUMNS, Raw, uncount};

/// The report of the doctor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Doctor {
    pub path: String,
    pub sqlite: String,
    /// Schema version of the file, and of this program.
    pub schema: u32,
    pub schema_known: u32,
    /// Problems that SQLite's integrity check found.
    pub problems: Vec<String>,
    /// Number of entries with a wrong checksum.
    pub damaged_entries: u64,
    pub sessions: u64,
    pub entries: u64,
    /// Sizes in bytes of the database, of its log, and of the unused part of the database.
    pub bytes: u64,
    pub log_bytes: u64,
    pub free_bytes: u64,
    /// The network file system that it is on, if any.
    pub network: Option<String>,
    /// Why nothing is saved; empty when saving works.
    pub not_saving: String,
}

impl Store {
    /// Checks everything, which reads the whole database once.
    ///
    /// # Errors
    /// When the database cannot be queried at all.
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
