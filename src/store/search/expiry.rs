//! Whether the index is out of date although it has all entries: some of them are to be indexed in another way.

use rusqlite::{Connection, OptionalExtension};

/// The key in `meta` of the number of times that the index expired.
const KEY: &str = "search_expired";

/// Has the index made anew at its next use, by whatever process. It counts once the change that it is part of is committed.
pub(crate) fn expire(conn: &Connection) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO meta(key, value) VALUES(?1, '1')
         ON CONFLICT(key) DO UPDATE SET value = CAST(value + 1 AS TEXT)",
    )?
    .execute([KEY])?;
    Ok(())
}

/// How often the index expired. `conn`: of the main database.
pub(super) fn times(conn: &Connection) -> rusqlite::Result<i64> {
    let times = conn
        .prepare_cached("SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?1")?
        .query_row([KEY], |r| r.get(0))
        .optional()?;
    Ok(times.unwrap_or(0))
}
