//! Connections: one for writing, several for reading, with the same settings for safety.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::{Result, StoreError};

/// Before 3.51.3 two writers could corrupt a file (a race of checkpoint and log reset).
pub(crate) const SQLITE_FLOOR: i32 = 3_051_003;

/// "TLLR": identifies a database of Tiller's (`file` and SQLite's header show it).
pub(crate) const APPLICATION_ID: i32 = 0x544c_4c52;

/// SQLite's own busy time-out; the writer retries beyond it.
const BUSY: Duration = Duration::from_millis(400);

/// Where a database is.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    File(PathBuf),
    /// In memory under this name; gone when the last connection closes.
    Memory(String),
}

impl Target {
    /// The path for messages and checks; in memory, the name.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Memory(name) => Path::new(name),
        }
    }

    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }
}

/// Refuses versions of SQLite that are known to lose data.
pub(crate) fn check_version(number: i32) -> Result<()> {
    if number >= SQLITE_FLOOR {
        return Ok(());
    }
    let text = |n: i32| format!("{}.{}.{}", n / 1_000_000, n / 1000 % 1000, n % 1000);
    Err(StoreError::OldSqlite { found: text(number), floor: text(SQLITE_FLOOR) })
}

fn open(target: &Target, flags: OpenFlags) -> Result<Connection> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = match target {
        Target::File(path) => Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NOFOLLOW),
        Target::Memory(name) => {
            let flags = (flags | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_CREATE)
                & !OpenFlags::SQLITE_OPEN_READ_ONLY
                | OpenFlags::SQLITE_OPEN_READ_WRITE;
            Connection::open_with_flags(format!("file:/{name}?vfs=memdb"), flags)
        }
    };
    let conn = opened.map_err(|e| StoreError::from_sql(&e, target.path()))?;
    conn.busy_timeout(BUSY).map_err(|e| StoreError::from_sql(&e, target.path()))?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

/// Opens without changing the file: closing it leaves the log alone. Used to read versions first.
pub(crate) fn probe(target: &Target) -> Result<Connection> {
    let conn = open(target, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(|e| StoreError::from_sql(&e, target.path()))?;
    Ok(conn)
}

/// Turns a probed connection into the writer's. Returns whether the write-ahead log is in use.
pub(crate) fn into_writer(conn: &Connection, target: &Target) -> Result<bool> {
    let sql = |e: rusqlite::Error| StoreError::from_sql(&e, target.path());
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(sql)?;
    let wal = if target.is_file() {
        let now: String = conn.query_row("PRAGMA journal_mode", [], |r| r.get(0)).map_err(sql)?;
        if now == "wal" {
            true
        } else {
            let mode: String = conn.query_row("PRAGMA journal_mode=WAL", [], |r| r.get(0)).map_err(sql)?;
            mode == "wal"
        }
    } else {
        false
    };
    // Checkpoints are run explicitly: after the acknowledgement, never within a commit that a caller waits for.
    conn.execute_batch(
        "PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA fullfsync=ON; PRAGMA checkpoint_fullfsync=ON;
         PRAGMA mmap_size=0; PRAGMA wal_autocheckpoint=0; PRAGMA journal_size_limit=33554432;
         PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;",
    )
    .map_err(sql)?;
    Ok(wal)
}

/// A read-only connection.
pub(crate) fn reader(target: &Target) -> Result<Connection> {
    let conn = open(target, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    // In the long run each reader fills its cache, here 512 KiB; the system holds the same pages once for all of them.
    conn.execute_batch(
        "PRAGMA query_only=ON; PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF;
         PRAGMA cell_size_check=ON; PRAGMA cache_size=-512;",
    )
    .map_err(|e| StoreError::from_sql(&e, target.path()))?;
    Ok(conn)
}

/// A reader of a file that no process writes and whose folder may be read-only (no shared memory needed).
pub(crate) fn immutable_reader(path: &Path) -> Result<Connection> {
    let sql = |e: rusqlite::Error| StoreError::from_sql(&e, path);
    let text = path
        .to_str()
        .ok_or_else(|| StoreError::ReadOnly { path: path.into(), detail: "its name is not UTF-8".into() })?;
    let escaped = text.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(format!("file:{escaped}?immutable=1"), flags).map_err(sql)?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.execute_batch("PRAGMA query_only=ON; PRAGMA mmap_size=0; PRAGMA cell_size_check=ON;")
        .map_err(sql)?;
    Ok(conn)
}
