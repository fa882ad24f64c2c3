//! Opens a connection and checks its schema, its pages and its indexes.

use std::path::Path;
use std::sync::Arc;
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

/// The time after which a check reports that it runs.
const TOLD: Duration = Duration::from_secs(1);

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
    let (limit, pragmas) = check.plan();
    let wrong = self_check(&mut conn, path, pragmas, &mut || patience(limit, options))?;
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

/// Asked during a check: true ends it.
type Late = Box<dyn FnMut() -> bool + Send>;

/// Ends a check after `limit`, and tells the person who waits that it takes long.
fn patience(limit: Option<Duration>, options: &Options) -> Late {
    tells(limit, TOLD, Arc::clone(&options.waits))
}

fn tells(limit: Option<Duration>, after: Duration, tell: Arc<dyn Fn(&str) + Send + Sync>) -> Late {
    let began = Instant::now();
    let mut tell = Some(tell);
    Box::new(move || {
        let passed = began.elapsed();
        if passed >= after
            && let Some(tell) = tell.take()
        {
            tell("the database is being checked before it is used, which takes long where it is large");
        }
        limit.is_some_and(|limit| passed > limit)
    })
}

/// SQLite's own checks, each with its own `late`. Returns problems of indexes, which can be made again from their tables.
fn self_check(
    conn: &mut Connection,
    path: &Path,
    pragmas: &[&str],
    late: &mut dyn FnMut() -> Late,
) -> Result<Vec<String>> {
    for pragma in pragmas {
        let (found, whole) = problems(conn, path, pragma, late())?;
        if let Some(detail) = found.iter().find(|problem| !of_index(problem)) {
            return Err(StoreError::Corrupt { path: path.into(), detail: detail.clone() });
        }
        if !found.is_empty() {
            return Ok(found);
        }
        if !whole {
            break;
        }
    }
    Ok(Vec::new())
}

/// What a check finds, up to [`PROBLEMS`], and whether it came to its end: what it found before counts.
fn problems(conn: &mut Connection, path: &Path, pragma: &str, late: Late) -> Result<(Vec<String>, bool)> {
    let sql = |e: rusqlite::Error| StoreError::from_sql(&e, path);
    conn.progress_handler(1000, Some(late)).map_err(sql)?;
    let mut found = Vec::new();
    let ended = gather(conn, pragma, &mut found);
    conn.progress_handler(0, None::<fn() -> bool>).map_err(sql)?;
    match ended {
        Ok(()) => Ok((found, true)),
        Err(rusqlite::Error::SqliteFailure(code, _))
            if code.code == rusqlite::ErrorCode::OperationInterrupted =>
        {
            tracing::info!("a check of the database was cut short");
            Ok((found, false))
        }
        Err(error) => Err(sql(error)),
    }
}

/// The problems that a check of SQLite lists.
pub(crate) fn list(conn: &Connection, pragma: &str) -> rusqlite::Result<Vec<String>> {
    let mut found = Vec::new();
    gather(conn, pragma, &mut found).map(|()| found)
}

/// Adds the problems that a check of SQLite lists, also those before an error.
fn gather(conn: &Connection, pragma: &str, found: &mut Vec<String>) -> rusqlite::Result<()> {
    let mut statement = conn.prepare(&format!("PRAGMA {pragma}({PROBLEMS})"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        if text != "ok" {
            found.push(text);
        }
    }
    Ok(())
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
    let (left, _) = problems(conn, path, "integrity_check", patience(None, options))?;
    if let Some(left) = left.into_iter().next() {
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
