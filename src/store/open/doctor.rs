//! The state of the database, for `tiller doctor`.

use serde::Serialize;

use crate::error::Result;
use crate::open::Store;
use crate::open::check;
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
    /// Problems of the search index. It was removed for them, and is made again by the next search.
    pub search_problems: Vec<String>,
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
    /// Checks everything, which reads the whole database once. A damaged database is marked, so that the next start repairs it.
    ///
    /// # Errors
    /// When the database cannot be queried at all.
    pub fn doctor(&self) -> Result<Doctor> {
        let path = self.path();
        let health = self.health().borrow().why();
        let search_problems = self.search().verify_index();
        self.read(|conn| {
            let number =
                |query: &str| -> Result<u64> { Ok(uncount(conn.query_row(query, [], |r| r.get(0))?)) };
            let mut problems = check::list(conn, "integrity_check")?;
            if !problems.is_empty() {
                self.suspect();
            }
            let mut statement = conn.prepare("PRAGMA foreign_key_check")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()?.filter(|_| problems.len() <= 40) {
                problems.push(format!("a row of {} refers to a missing row", row.get::<_, String>(0)?));
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
                search_problems: search_problems.clone(),
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
