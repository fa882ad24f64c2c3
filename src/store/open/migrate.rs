//! The schema and its versions (`PRAGMA user_version`). Old migrations never change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::Backup;
use tiller_protocol::Time;

use crate::error::{Result, StoreError};
use crate::open::connect::APPLICATION_ID;
use crate::open::folder;

/// Migrations, each from the version before it. The version is the position in the list, from 1.
pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("../schema/0001_init.sql"),
    include_str!("../schema/0002_heads.sql"),
    include_str!("../schema/0003_steps.sql"),
    include_str!("../schema/0004_branches.sql"),
    include_str!("../schema/0005_agents.sql"),
    include_str!("../schema/0006_workflows.sql"),
    include_str!("../schema/0007_announced.sql"),
    include_str!("../schema/0008_began.sql"),
    include_str!("../schema/0009_estimated.sql"),
    include_str!("../schema/0010_origin.sql"),
    include_str!("../schema/0011_drafts.sql"),
    include_str!("../schema/0012_git_branch.sql"),
    include_str!("../schema/0013_memory.sql"),
    include_str!("../schema/0014_learnings.sql"),
    include_str!("../schema/0015_skill_uses.sql"),
    include_str!("../schema/0016_skill_trials.sql"),
    include_str!("../schema/0017_learning_sources.sql"),
    include_str!("../schema/0018_memory_seen.sql"),
    include_str!("../schema/0019_memory_archived.sql"),
    include_str!("../schema/0020_memory_lookups.sql"),
    include_str!("../schema/0021_memory_runs.sql"),
    include_str!("../schema/0022_imported.sql"),
    include_str!("../schema/0023_learning_matchers.sql"),
    include_str!("../schema/0024_memory_details.sql"),
];

/// Versions of which a backup from before a migration is kept: the newest.
const BACKUPS: usize = 3;

/// A version this far ahead is damage, not a newer program.
const IMPLAUSIBLE: u32 = 10_000;

/// The schema version that this program writes.
pub(crate) fn latest() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// Schema version and application id of an open database.
pub(crate) fn versions(conn: &Connection) -> rusqlite::Result<(u32, i32)> {
    Ok((
        conn.query_row("PRAGMA user_version", [], |r| r.get(0))?,
        conn.query_row("PRAGMA application_id", [], |r| r.get(0))?,
    ))
}

/// The kind of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseKind {
    /// No schema yet.
    Empty,
    /// A database of Tiller's at this older version.
    Older(u32),
    Current,
}

/// Determines the kind without writing.
///
/// # Errors
/// [`StoreError::Newer`], [`StoreError::NotOurs`], or the error of reading the header.
pub(crate) fn judge(conn: &Connection, path: &Path, known: u32) -> Result<DatabaseKind> {
    let sql = |e: rusqlite::Error| StoreError::from_sql(&e, path);
    let (version, application) = versions(conn).map_err(sql)?;
    if application == 0 && version == 0 {
        let tables: i64 =
            conn.query_row("SELECT count(*) FROM sqlite_schema", [], |r| r.get(0)).map_err(sql)?;
        return if tables == 0 {
            Ok(DatabaseKind::Empty)
        } else {
            Err(StoreError::NotOurs { path: path.into() })
        };
    }
    if application != APPLICATION_ID {
        let ours: i64 = conn
            .query_row(
                "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('entries', 'heads', 'todo_states')",
                [],
                |r| r.get(0),
            )
            .map_err(sql)?;
        return Err(if ours == 3 {
            StoreError::Corrupt { path: path.into(), detail: "the application id is wrong".into() }
        } else {
            StoreError::NotOurs { path: path.into() }
        });
    }
    if version == 0 || version > known.saturating_add(IMPLAUSIBLE) {
        return Err(StoreError::Corrupt { path: path.into(), detail: format!("schema version {version}") });
    }
    match version.cmp(&known) {
        std::cmp::Ordering::Greater => Err(StoreError::Newer { path: path.into(), found: version, known }),
        std::cmp::Ordering::Equal => Ok(DatabaseKind::Current),
        std::cmp::Ordering::Less => Ok(DatabaseKind::Older(version)),
    }
}

/// Migrates an empty or older database to the end of `steps`, all in one transaction. An older one is first copied to
/// `<name>.v<version>-<time>.bak` (through SQLite's backup, never by copying the live file).
pub(crate) fn migrate(
    conn: &Connection,
    path: Option<&Path>,
    standing: DatabaseKind,
    steps: &[&str],
    now: Time,
) -> Result<()> {
    let sql = |e: rusqlite::Error| StoreError::from_sql(&e, path.unwrap_or(Path::new("")));
    let from = match standing {
        DatabaseKind::Current => return Ok(()),
        DatabaseKind::Empty => 0,
        DatabaseKind::Older(version) => {
            if let Some(path) = path {
                backup_before(conn, path, &format!("v{version}"), now)?;
            }
            version
        }
    };
    conn.execute_batch("BEGIN EXCLUSIVE").map_err(sql)?;
    let run = || -> rusqlite::Result<()> {
        // Another process may have migrated it in the meantime.
        let (version, _) = versions(conn)?;
        if version != from {
            return Ok(());
        }
        for step in steps.iter().skip(usize::try_from(from).unwrap_or(usize::MAX)) {
            conn.execute_batch(step)?;
        }
        conn.execute_batch(&format!(
            "PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={};",
            steps.len()
        ))
    };
    match run() {
        Ok(()) => conn.execute_batch("COMMIT").map_err(sql),
        Err(error) => {
            if !conn.is_autocommit() {
                conn.execute_batch("ROLLBACK").map_err(sql)?;
            }
            Err(sql(error))
        }
    }
}

/// Copies the database at `path` to `<name>.<label>-<time>.bak`. An earlier copy with this label is replaced: a migration that
/// fails fails at each start. The largest one stays where it is larger than the new one, which may lack what was lost since. Of
/// other versions the newest are kept.
pub(crate) fn backup_before(conn: &Connection, path: &Path, label: &str, now: Time) -> Result<()> {
    let started = |rest: &str| rest.ends_with(".bak.half");
    folder::companions(path).iter().filter(|(_, rest)| started(rest)).for_each(|(half, _)| forget(half));
    let name = format!(".{label}-{}.bak", now.millis());
    backup(conn, &folder::beside(path, &name))?;
    let (mut versions, mut same) = (BTreeMap::<u32, Vec<PathBuf>>::new(), Vec::new());
    for (old, rest) in folder::companions(path) {
        let Some((of, _)) = rest.strip_suffix(".bak").and_then(|rest| rest.rsplit_once('-')) else {
            continue;
        };
        if of == format!(".{label}") {
            // The new one is the last of its size.
            same.push((folder::size(&old), rest == name, old));
        } else if let Some(version) = of.strip_prefix(".v").and_then(|n| n.parse::<u32>().ok()) {
            versions.entry(version).or_default().push(old);
        }
    }
    same.sort();
    same.pop();
    same.iter().filter(|(_, new, _)| !new).for_each(|(.., old)| forget(old));
    let own = usize::from(label.starts_with('v'));
    versions.values().rev().skip(BACKUPS - own).flatten().for_each(|old| forget(old));
    Ok(())
}

/// Removes an old backup. One that stays takes room and does no harm.
fn forget(old: &Path) {
    if let Err(error) = std::fs::remove_file(old) {
        tracing::warn!(%error, path = %old.display(), "an old backup cannot be removed");
    }
}

/// The newest backup beside a database, by its version.
pub(crate) fn newest_backup(path: &Path) -> Option<PathBuf> {
    let version = |rest: &str| -> Option<u32> {
        rest.strip_prefix(".v")?.strip_suffix(".bak")?.split_once('-')?.0.parse().ok()
    };
    let all = folder::companions(path).into_iter();
    all.filter_map(|(path, rest)| Some((version(&rest)?, path))).max().map(|(_, path)| path)
}

/// Copies the database to `to` (0600). The name appears when the copy is complete and on disk.
fn backup(conn: &Connection, to: &Path) -> Result<()> {
    let half = folder::beside(to, ".half");
    let io = |e: std::io::Error| StoreError::from_io(&e, to);
    // A partial copy that a kill left.
    match std::fs::remove_file(&half) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(io(e)),
        _ => {}
    }
    folder::prepare_file(&half, rustix::process::geteuid().as_raw())?;
    let sql = |e: rusqlite::Error| StoreError::from_sql(&e, to);
    let mut copy = Connection::open(&half).map_err(sql)?;
    copy.execute_batch("PRAGMA synchronous=FULL").map_err(sql)?;
    Backup::new(conn, &mut copy)
        .and_then(|b| b.run_to_completion(4096, Duration::ZERO, None))
        .map_err(sql)?;
    copy.close().map_err(|(_, e)| sql(e))?;
    std::fs::rename(&half, to).map_err(io)?;
    let dir = to.parent().unwrap_or(to);
    std::fs::File::open(dir).and_then(|d| d.sync_all()).map_err(io)
}
