//! Opens a connection and checks its schema, its pages and its indexes.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tiller_protocol::{Notice, NoticeKind};

use crate::error::{Result, StoreError};
use crate::open::Options;
use crate::open::connect::{self, Target};
use crate::open::migrate::{self, DatabaseKind};

/// Time limit of the check after an unclean end. Damage that it does not reach is found when it is read.
const CHECK: Duration = Duration::from_millis(150);

/// Time limit of the check after a change by another program.
const FULL_CHECK: Duration = Duration::from_secs(3);

/// Problems that a check lists.
const PROBLEMS: usize = 100;

/// What is known of a database before it is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub(crate) check: Check,
    /// No other process has it open, so that it can be checked and repaired.
    pub(crate) alone: bool,
    /// It may work without a write-ahead log.
    pub(crate) no_log_ok: bool,
    /// What lies beside it shows that it had contents.
    pub(crate) had_contents: bool,
}

impl Opening {
    /// One that is not checked.
    pub(crate) fn unchecked(no_log_ok: bool) -> Self {
        Self { check: Check::None, alone: false, no_log_ok, had_contents: false }
    }
}

/// A connection for writing, with the present schema and (where asked for) checked, and what was repaired.
pub(crate) fn open_writer(
    target: &Target,
    how: Opening,
    options: &Options,
) -> Result<(Connection, Option<Notice>)> {
    let path = target.path();
    let mut conn = connect::probe(target)?;
    let standing = migrate::judge(&conn, path, migrate::latest())?;
    let check = match standing {
        DatabaseKind::Empty if how.had_contents => {
            return Err(StoreError::Corrupt { path: path.into(), detail: "it has no tables".into() });
        }
        DatabaseKind::Empty => Check::None,
        // It happens once, and copies the whole database anyway.
        DatabaseKind::Older(_) if how.alone => Check::Everything,
        _ => how.check,
    };
    let wrong = self_check(&mut conn, path, check)?;
    let log = connect::into_writer(&conn, target)?;
    if !log && !how.no_log_ok {
        return Err(StoreError::Network {
            path: path.into(),
            kind: "a file system without shared memory".into(),
        });
    }
    let repaired = match wrong.as_slice() {
        [] => None,
        wrong => Some(rebuild_indexes(&mut conn, path, wrong, options)?),
    };
    let file = target.is_file().then_some(path);
    migrate::migrate(&conn, file, standing, migrate::MIGRATIONS, options.clock.now())?;
    Ok((conn, repaired))
}

/// How thoroughly a database is checked when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    None,
    /// Pages first, then indexes; ended after [`CHECK`].
    Quick,
    /// Another program changed the files: indexes are compared with tables, too. Ended after [`FULL_CHECK`].
    Full,
    /// Damage was found in the last run, or a migration follows: everything, however long it takes.
    Everything,
}

impl Check {
    /// The checks of SQLite to make, and their time limit. The quick one does not compare indexes with their tables.
    fn plan(self) -> (Option<Duration>, &'static [&'static str]) {
        match self {
            Self::None => (None, &[]),
            Self::Quick => (Some(CHECK), &["quick_check", "integrity_check"]),
            Self::Full => (Some(FULL_CHECK), &["integrity_check"]),
            Self::Everything => (None, &["integrity_check"]),
        }
    }
}

/// SQLite's own check. Returns problems of indexes, which can be made again from their tables.
fn self_check(conn: &mut Connection, path: &Path, check: Check) -> Result<Vec<String>> {
    let (limit, pragmas) = check.plan();
    let end = limit.map(|limit| Instant::now() + limit);
    for pragma in pragmas {
        let Some(found) = problems(conn, path, pragma, end)? else { break };
        if let Some(detail) = found.iter().find(|problem| !of_index(problem)) {
            return Err(StoreError::Corrupt { path: path.into(), detail: detail.clone() });
        }
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// What a check finds, up to [`PROBLEMS`]; `None`: it was cut short.
fn problems(
    conn: &mut Connection,
    path: &Path,
    pragma: &str,
    end: Option<Instant>,
) -> Result<Option<Vec<String>>> {
    let sql = |e: rusqlite::Error| StoreError::from_sql(&e, path);
    let late = move || end.is_some_and(|end| Instant::now() > end);
    conn.progress_handler(1000, Some(late)).map_err(sql)?;
    let found = list(conn, pragma);
    conn.progress_handler(0, None::<fn() -> bool>).map_err(sql)?;
    match found {
        Ok(found) => Ok(Some(found)),
        Err(rusqlite::Error::SqliteFailure(code, _))
            if code.code == rusqlite::ErrorCode::OperationInterrupted =>
        {
            tracing::info!("a check of the database was cut short");
            Ok(None)
        }
        Err(error) => Err(sql(error)),
    }
}

/// The problems that a check of SQLite lists.
pub(crate) fn list(conn: &Connection, pragma: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = conn.prepare(&format!("PRAGMA {pragma}({PROBLEMS})"))?;
    let rows = statement.query_map([], |r| r.get::<_, String>(0))?;
    rows.filter(|row| !row.as_ref().is_ok_and(|text| text == "ok")).collect()
}

/// Whether a problem is one of an index only: a row that it lacks, has in another form, or has too often.
fn of_index(problem: &str) -> bool {
    problem.rsplit_once(" index ").is_some_and(|(what, name)| {
        !name.contains(' ')
            && ["row ", "wrong # of entries in", "rowid not at end-of-record"]
                .iter()
                .any(|start| what.starts_with(start))
    })
}

/// Makes all indexes again from their tables, after a backup, and returns what is said of it.
fn rebuild_indexes(
    conn: &mut Connection,
    path: &Path,
    wrong: &[String],
    options: &Options,
) -> Result<Notice> {
    migrate::backup_before(conn, path, "reindex", options.clock.now())?;
    let damaged = |detail: String| StoreError::Corrupt { path: path.into(), detail };
    // What cannot be made again is salvaged.
    conn.execute_batch("REINDEX").map_err(|e| match StoreError::from_sql(&e, path) {
        error if error.is_trouble() => error,
        _ => damaged(wrong.first().cloned().unwrap_or_default()),
    })?;
    if let Some(left) = problems(conn, path, "integrity_check", None)?.unwrap_or_default().into_iter().next()
    {
        return Err(damaged(left));
    }
    tracing::warn!(?wrong, "indexes of the database were made again");
    Ok(Notice::new(
        NoticeKind::Store,
        "an index of the database was damaged: it was made again from its table, and no entry is lost",
    )
    .hint("the database as it was is kept beside it, as a file whose name ends in .bak")
    .detail(wrong.join("\n")))
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
