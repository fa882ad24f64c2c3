//! One attempt to commit a batch: exactly once, and only into the file that the path leads to.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, params};
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::open::connect::{self, Target};
use crate::open::folder;
use crate::write::writer::Job;

/// Pages in the log after which it is checkpointed, between commits.
const CHECKPOINT_PAGES: i64 = 1000;
/// Pages of the log after which a checkpoint also waits for readers, so that the log starts again from its beginning.
/// With permanent readers it would never do so by itself.
const RESTART_PAGES: i64 = 8000;

/// The writer's connection and the state of its last commit.
pub(crate) struct Attempt {
    conn: Option<Connection>,
    target: Target,
    /// Device and inode of the database and of its log; the log's is known after the first commit.
    identity: Option<(u64, u64)>,
    log: Option<(u64, u64)>,
    id: Uuid,
    batch: i64,
    /// Whether this batch was attempted before, with a possibly unknown outcome.
    retried: bool,
    /// The result of each job in the last attempt that reached its commit.
    outcomes: Vec<Result<()>>,
    seed: u64,
    /// Pages at which the log is to be restarted.
    restart_at: i64,
    /// The connection does not wait for the disk at commits.
    passing: bool,
}

impl Attempt {
    pub(crate) fn new(conn: Connection, target: Target) -> Self {
        let identity = if target.is_file() { folder::identity(target.path()) } else { None };
        let id = Uuid::now_v7();
        Self {
            conn: Some(conn),
            identity,
            log: None,
            id,
            batch: 0,
            retried: false,
            outcomes: Vec::new(),
            seed: id.as_u64_pair().1 | 1,
            restart_at: RESTART_PAGES,
            passing: false,
            target,
        }
    }

    /// Ends the batch: the next attempt is for another one.
    pub(crate) fn next_batch(&mut self) {
        self.batch += 1;
        self.retried = false;
    }

    /// A random pause of up to `at_most`, so that writers do not stay in step (xorshift; any spread will do).
    pub(crate) fn jitter(&mut self, at_most: Duration) -> Duration {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        let micros = u64::try_from(at_most.as_micros()).unwrap_or(u64::MAX).max(1);
        Duration::from_micros(1 + self.seed % micros)
    }

    /// Runs every job and commits. `Ok`: the batch is on disk (unless all jobs are passing), with the result of each
    /// job. `Err`: nothing may be acknowledged.
    pub(crate) fn commit(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<Vec<Result<()>>> {
        let tried = self.try_commit(jobs);
        if let Err(error) = &tried {
            self.retried = true;
            self.clean_up(error);
        }
        tried
    }

    fn try_commit(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<Vec<Result<()>>> {
        self.check_identity()?;
        self.connect()?;
        let Some(conn) = &self.conn else { return Err(StoreError::Closed) };
        let path = self.target.path();
        let sql = |e: rusqlite::Error| StoreError::from_sql(&e, path);
        let passing = jobs.iter().all(|job| job.passing());
        if passing != self.passing && (!passing || has_log(conn).map_err(sql)?) {
            // The log stays intact without waiting, and the next full commit also flushes this one.
            conn.pragma_update(None, "synchronous", if passing { "NORMAL" } else { "FULL" }).map_err(sql)?;
            self.passing = passing;
        }
        conn.prepare_cached("BEGIN IMMEDIATE").and_then(|mut s| s.execute([])).map_err(sql)?;
        if self.retried && committed(conn, self.id, self.batch).map_err(sql)? {
            conn.execute_batch("ROLLBACK").map_err(sql)?;
        } else {
            let mut outcomes = Vec::with_capacity(jobs.len());
            for job in jobs.iter_mut() {
                outcomes.push(run_one(conn, job.as_mut(), path)?);
            }
            self.outcomes = outcomes;
            if self.outcomes.iter().all(Result::is_err) {
                conn.execute_batch("ROLLBACK").map_err(sql)?;
                return Ok(std::mem::take(&mut self.outcomes));
            }
            conn.prepare_cached(
                "INSERT INTO writers(id, batch) VALUES(?1, ?2)
                 ON CONFLICT(id) DO UPDATE SET batch = excluded.batch",
            )
            .and_then(|mut s| s.execute(params![self.id, self.batch]))
            .map_err(sql)?;
            if self.batch == 1 {
                forget_old_writers(conn).map_err(sql)?;
            }
            conn.prepare_cached("COMMIT").and_then(|mut s| s.execute([])).map_err(sql)?;
        }
        // The commit may have gone into a file that was moved away.
        self.check_identity()?;
        if self.target.is_file() && self.log.is_none() {
            self.log = folder::identity(&folder::beside(self.target.path(), "-wal"));
        }
        Ok(std::mem::take(&mut self.outcomes))
    }

    /// After an error: closes an open transaction, and the connection after a failure of the device.
    fn clean_up(&mut self, error: &StoreError) {
        let Some(conn) = &self.conn else { return };
        if !conn.is_autocommit() && conn.execute_batch("ROLLBACK").is_err() {
            tracing::warn!("the transaction could not be rolled back");
        }
        // A memory database lives only as long as its connections.
        if matches!(error, StoreError::Io { .. }) && self.target.is_file() {
            self.conn = None;
            self.log = None;
        }
    }

    /// Opens a new connection, where the old one was closed.
    fn connect(&mut self) -> Result<()> {
        if self.conn.is_none() {
            let conn = connect::probe(&self.target)?;
            connect::into_writer(&conn, &self.target)?;
            self.passing = false;
            self.conn = Some(conn);
        }
        Ok(())
    }

    /// Checks that the path leads to the open file, and the log's path to its log.
    fn check_identity(&self) -> Result<()> {
        let Some(identity) = self.identity else { return Ok(()) };
        let path = self.target.path();
        let moved = || Err(StoreError::Moved { path: path.into() });
        if folder::identity(path) != Some(identity) {
            return moved();
        }
        if self.log.is_some() && folder::identity(&folder::beside(path, "-wal")) != self.log {
            return moved();
        }
        Ok(())
    }

    /// Checkpoints a long log. Runs after the acknowledgements, so that no writer waits for it; a failure shows at the
    /// next commit.
    pub(crate) fn checkpoint(&mut self) {
        let (Some(conn), true) = (&self.conn, self.target.is_file()) else { return };
        // Whether another connection was in the way, pages in the log, pages of them that were copied back.
        let run = |mode: &str| -> rusqlite::Result<(bool, i64, i64)> {
            conn.prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))?
                .query_row([], |r| Ok((r.get(0)?, r.get(1)?, r.get::<_, i64>(2)?.max(0))))
        };
        let outcome = run("NOOP").and_then(|(_, log, done)| {
            if log >= self.restart_at {
                // A permanent reader makes each attempt a long one: the next follows when the log has grown as much
                // again.
                let (busy, ..) = run("RESTART")?;
                self.restart_at = if busy { log + RESTART_PAGES } else { RESTART_PAGES };
            } else if log - done >= CHECKPOINT_PAGES {
                run("PASSIVE")?;
            } else if log < RESTART_PAGES {
                self.restart_at = RESTART_PAGES;
            }
            Ok(())
        });
        if let Err(error) = outcome {
            tracing::debug!(%error, "checkpoint");
        }
    }
}

/// Runs one job in a savepoint of its own: its failure does not affect the other jobs. The outer error concerns the
/// whole batch.
fn run_one(conn: &Connection, job: &mut dyn Job, path: &Path) -> Result<Result<()>> {
    let sql = |e: rusqlite::Error| StoreError::from_sql(&e, path);
    let step = |text: &str| conn.prepare_cached(text).and_then(|mut s| s.execute([])).map_err(sql);
    step("SAVEPOINT job")?;
    // A panic fails this job and does not end the writer.
    let ran = catch_unwind(AssertUnwindSafe(|| job.run(conn)))
        .unwrap_or_else(|_| Err(StoreError::Internal("a change panicked".into())));
    match ran.map_err(|e| e.at(path)) {
        Ok(()) => {
            step("RELEASE job")?;
            Ok(Ok(()))
        }
        Err(error) if error.is_trouble() || matches!(error, StoreError::Corrupt { .. }) => Err(error),
        Err(error) => {
            step("ROLLBACK TO job")?;
            step("RELEASE job")?;
            Ok(Err(error))
        }
    }
}

/// Whether there is a log. Without it every commit has to wait: a partial one would be damage.
fn has_log(conn: &Connection) -> rusqlite::Result<bool> {
    conn.query_row("PRAGMA journal_mode", [], |r| r.get::<_, String>(0)).map(|mode| mode == "wal")
}

fn committed(conn: &Connection, id: Uuid, batch: i64) -> rusqlite::Result<bool> {
    conn.query_row("SELECT count(*) FROM writers WHERE id = ?1 AND batch = ?2", params![id, batch], |r| {
        r.get::<_, i64>(0)
    })
    .map(|n| n > 0)
}

/// Deletes old rows, since there is one for each process; ids sort by time.
fn forget_old_writers(conn: &Connection) -> rusqlite::Result<()> {
    let rows: i64 = conn.query_row("SELECT count(*) FROM writers", [], |r| r.get(0))?;
    if rows > 256 {
        conn.execute(
            "DELETE FROM writers WHERE id NOT IN (SELECT id FROM writers ORDER BY id DESC LIMIT 128)",
            [],
        )?;
    }
    Ok(())
}
