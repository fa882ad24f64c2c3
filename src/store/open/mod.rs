//! Opening and closing the store.

pub(crate) mod check;
pub(crate) mod connect;
pub(crate) mod doctor;
pub(crate) mod folder;
pub(crate) mod meta;
pub(crate) mod migrate;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use rusqlite::Connection;
use tiller_protocol::{Clock, IdSource, Notice, NoticeKind, RandomIds, SystemClock};
use tokio::sync::watch;

use crate::damage::recover;
use crate::damage::report;
use crate::error::{Result, StoreError};
use crate::lease::hold::LeaseFiles;
use crate::open::check::{Check, Opening, open_writer};
use crate::open::connect::Target;
use crate::open::folder::{LogMark, Presence, Stamp};
use crate::search::index::Index;
use crate::write::health::{self, Health};
use crate::write::ticket::Ticket;
use crate::write::writer::{OnFailure, Writer};

/// Maximum number of idle read connections that are kept: each has two descriptors, and up to 0.7 MiB of pages and compiled
/// statements. More reads at once than that are rare; each opens a connection of its own, and closes it.
const READERS: usize = 2;
/// External dependencies of the store. The default is the real system.
#[derive(Clone)]
pub struct Options {
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdSource>,
    pub on_failure: OnFailure,
    /// The user who must own the files.
    pub uid: u32,
    /// Time zone for the day of a cost; `None`: the system's, determined on first use.
    pub zone: Option<TimeZone>,
    /// Returns the name of the network file system of a folder, if it is on one.
    pub network: fn(&Path) -> Option<String>,
    /// Use a network file system nevertheless, without a write-ahead log (slower, and for one process at a time).
    pub network_ok: bool,
    /// Called while opening takes long, with what it does.
    pub waits: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock::default()),
            ids: Arc::new(RandomIds),
            on_failure: OnFailure::Keep,
            uid: rustix::process::geteuid().as_raw(),
            zone: None,
            network: folder::network_kind,
            network_ok: false,
            waits: Arc::new(|_| {}),
        }
    }
}

/// The store. Cheap to clone; dropping the last clone saves waiting jobs and closes it.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    // Fields are dropped in this order: the writer ends before the readers and the presence.
    writer: Option<Writer>,
    pub(crate) readers: Mutex<Vec<Connection>>,
    pub(crate) index: Index,
    pub(crate) target: Target,
    pub(crate) options: Options,
    zone: OnceLock<TimeZone>,
    health: watch::Receiver<Health>,
    identity: Option<(u64, u64)>,
    notices: Vec<Notice>,
    /// True for the reader of a file on a file system that is read-only.
    pub(crate) immutable: bool,
    presence: Option<Presence>,
    pub(crate) holds: LeaseFiles,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.inner.target.path()).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the database at `path` (usually `<data>/tiller.db`), creating folder and file if needed.
    ///
    /// After an unclean end it is checked; damage leads to a salvage, which [`Store::notices`] reports.
    ///
    /// # Errors
    /// `ReadOnly`, `Foreign`, `Network`, `Newer`, `NotOurs`, `OldSqlite`, `Full` or `Io`; each says what to do.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        connect::check_version(rusqlite::version_number())?;
        let (dir, name) = match (path.parent(), path.file_name()) {
            (Some(dir), Some(name)) => (if dir.as_os_str().is_empty() { Path::new(".") } else { dir }, name),
            _ => {
                return Err(StoreError::ReadOnly {
                    path: path.into(),
                    detail: "it is not a file name".into(),
                });
            }
        };
        folder::prepare_dir(dir, options.uid)?;
        // The file itself must not be a symbolic link; its folders may be.
        let path = dir.canonicalize().map_err(|e| StoreError::from_io(&e, dir))?.join(name);
        let mut notices = Vec::new();
        let network = (options.network)(path.parent().unwrap_or(dir));
        if let Some(kind) = &network {
            let error = StoreError::Network { path: path.clone(), kind: kind.clone() };
            if !options.network_ok {
                return Err(error);
            }
            notices.push(error.notice());
        }
        let (presence, alone) = Presence::take(&path)?;
        recover::finish(&path)?;
        let traces = folder::traces(&path);
        let mark = alone.then(|| LogMark::put(&path));
        let made = folder::prepare_file(&path, options.uid)?;
        let stamp = if alone { folder::take_stamp(&path) } else { Stamp::Right };
        let suspect = folder::beside(&path, ".suspect");
        let check = match () {
            () if made || !alone => Check::None,
            () if suspect.exists() => Check::Everything,
            () if stamp == Stamp::Wrong => Check::Full,
            () if stamp == Stamp::Right => Check::None,
            () => Check::Quick,
        };
        let log = folder::beside(&path, "-wal");
        // From opening to a clean end there is a log, possibly an empty one, except where the mark is.
        let log_lost = check != Check::None
            && stamp == Stamp::Absent
            && folder::size(&path) > 0
            && !log.exists()
            && !mark.as_ref().is_some_and(|mark| mark.found);
        let target = Target::File(path.clone());
        // SQLite would take an empty file as new, and delete its log. One that is missing may have been moved away on purpose.
        // One that others have open, too, may be a new one that is being made.
        let had_contents = alone && !made && !traces.is_empty();
        let emptied = folder::size(&path) == 0 && (had_contents || folder::size(&log) > 0);
        let how = Opening { check, alone, no_log_ok: network.is_some(), had_contents };
        let opened = if emptied {
            Err(StoreError::Corrupt { path: path.clone(), detail: "the file is empty".into() })
        } else {
            open_writer(&target, how, &options)
        };
        let (conn, told) = match opened {
            Err(StoreError::Corrupt { detail, .. }) if alone => {
                let salvage = recover::salvage(&path, &detail, &options)?;
                let (conn, _) = open_writer(&target, Opening::unchecked(network.is_some()), &options)?;
                (conn, Some(salvage.notice()))
            }
            Ok((conn, None)) if made => (conn, traces.first().map(|left| report::missing(&path, left))),
            other => other?,
        };
        // The process that opens it first may not be able to show notices.
        if let Some(notice) = told
            && report::keep(&path, &notice).is_err()
        {
            notices.push(notice);
        }
        if log_lost {
            notices.push(
                Notice::new(
                    NoticeKind::Store,
                    "the database's log is missing: the last saved changes may be lost",
                )
                .detail(path.display().to_string()),
            );
        }
        // Who is not alone did not check it.
        if alone && suspect.exists() && std::fs::remove_file(&suspect).is_err() {
            tracing::debug!("the mark of a suspect database cannot be removed");
        }
        if alone && let Err(error) = crate::lease::end_stale(&conn) {
            tracing::debug!(%error, "stale leases could not be ended");
        }
        notices.extend(report::read(&path));
        drop(mark);
        presence.share();
        Self::assemble(conn, target, options, notices, Health::Ok, Some(presence))
    }

    /// Keeps everything in memory, after the person agreed to continue without saving.
    ///
    /// # Errors
    /// When SQLite cannot start.
    pub fn not_saving(why: &str, options: Options) -> Result<Self> {
        connect::check_version(rusqlite::version_number())?;
        let target = Target::Memory(format!("tiller-{}", uuid::Uuid::now_v7()));
        let (conn, _) = open_writer(&target, Opening::unchecked(true), &options)?;
        Self::assemble(conn, target, options, Vec::new(), Health::NotSaving(why.into()), None)
    }

    /// Opens for reading only: a newer schema, a foreign or read-only folder. The file is not changed.
    ///
    /// # Errors
    /// When it cannot be read, or is not a database of Tiller's.
    pub fn read_only(path: &Path, options: Options) -> Result<Self> {
        connect::check_version(rusqlite::version_number())?;
        let path = path.canonicalize().map_err(|e| StoreError::from_io(&e, path))?;
        let target = Target::File(path.clone());
        // With a log shared memory is needed; without a log, or without shared memory, the file alone is read.
        let log = folder::size(&folder::beside(&path, "-wal")) > 0;
        let tried = connect::reader(&target).and_then(|conn| {
            migrate::versions(&conn).map(|v| (conn, v)).map_err(|e| StoreError::from_sql(&e, &path))
        });
        let (conn, (_, application), immutable) = match tried {
            Ok((conn, versions)) if log => (conn, versions, false),
            _ => {
                let conn = connect::immutable_reader(&path)?;
                let versions = migrate::versions(&conn).map_err(|e| StoreError::from_sql(&e, &path))?;
                (conn, versions, true)
            }
        };
        if application != connect::APPLICATION_ID {
            return Err(StoreError::NotOurs { path });
        }
        let why = format!("{} is open read-only", path.display());
        let (_, health) = health::channel(Health::NotSaving(why));
        Ok(Self {
            inner: Arc::new(Inner {
                writer: None,
                readers: Mutex::new(vec![conn]),
                index: Index::default(),
                identity: folder::identity(&path),
                target,
                zone: OnceLock::new(),
                options,
                health,
                notices: Vec::new(),
                immutable,
                presence: None,
                holds: LeaseFiles::default(),
            }),
        })
    }

    fn assemble(
        conn: Connection,
        target: Target,
        options: Options,
        notices: Vec<Notice>,
        start: Health,
        presence: Option<Presence>,
    ) -> Result<Self> {
        let (sender, health) = health::channel(start);
        let identity = if target.is_file() { folder::identity(target.path()) } else { None };
        let writer = Writer::start(conn, target.clone(), options.on_failure, sender)?;
        Ok(Self {
            inner: Arc::new(Inner {
                writer: Some(writer),
                readers: Mutex::new(Vec::new()),
                index: Index::default(),
                target,
                zone: OnceLock::new(),
                options,
                health,
                identity,
                notices,
                immutable: false,
                presence,
                holds: LeaseFiles::default(),
            }),
        })
    }

    /// Notices for the person about the opening (salvage, lost log, network file system).
    pub fn notices(&self) -> &[Notice] {
        &self.inner.notices
    }

    /// Marks [`Self::notices`] as shown, so that the next opening does not repeat them.
    pub fn mark_notices_shown(&self) {
        if self.inner.notices.iter().any(|n| n.kind == NoticeKind::Store) && self.inner.target.is_file() {
            report::forget(self.inner.target.path());
        }
    }

    /// Whether writes reach the disk. The writer thread holds the sender and sends each change.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.inner.health.clone()
    }

    /// Checks the file now: an idle store does not notice that its file was moved away.
    ///
    /// # Errors
    /// [`StoreError::Moved`], or the reason why nothing is saved.
    pub fn check(&self) -> Result<()> {
        if let Health::Failing(error) = &*self.inner.health.borrow() {
            return Err(error.clone());
        }
        let path = self.inner.target.path();
        match self.inner.identity {
            Some(identity) if folder::identity(path) != Some(identity) => {
                Err(StoreError::Moved { path: path.into() })
            }
            _ => Ok(()),
        }
    }

    /// Resolves once each write that was submitted before this call is answered: a read sees it from then on. While nothing
    /// can be saved, writes stay in the queue, and it does not resolve.
    pub fn settled(&self) -> impl Future<Output = ()> + Send + use<> {
        let written = self.inner.writer.as_ref().map(Writer::settled);
        async move {
            if let Some(written) = written {
                written.await;
            }
        }
    }

    /// Retries saving now instead of after the present pause.
    pub fn retry(&self) {
        if let Some(writer) = &self.inner.writer {
            writer.retry();
        }
    }

    /// The path of the database; in memory, its name.
    pub fn path(&self) -> PathBuf {
        self.inner.target.path().to_owned()
    }

    /// Saves waiting jobs and ends the writer; later writes give [`StoreError::Closed`]. Reads still work.
    pub fn close(&self) {
        let _mark = self.inner.presence.as_ref().map(|_| LogMark::put(self.inner.target.path()));
        if let Some(writer) = &self.inner.writer {
            writer.close();
        }
    }

    /// Submits a change to the writer. The change may run more than once, each time in a new transaction.
    pub(crate) fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T> + Send + 'static,
    ) -> Ticket<T> {
        self.submit(false, work)
    }

    /// As [`Self::write`], for data that matters to living processes only: it is visible to all of them when it is
    /// acknowledged, but does not wait for the disk.
    pub(crate) fn write_passing<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T> + Send + 'static,
    ) -> Ticket<T> {
        self.submit(true, work)
    }

    fn submit<T: Send + 'static>(
        &self,
        passing: bool,
        work: impl FnMut(&Connection) -> Result<T> + Send + 'static,
    ) -> Ticket<T> {
        match &self.inner.writer {
            Some(writer) => writer.submit(passing, work),
            None => Ticket::ready(Err(StoreError::ReadOnly {
                path: self.inner.target.path().into(),
                detail: "it is open read-only".into(),
            })),
        }
    }

    /// Reads on a connection other than the writer's.
    pub(crate) fn read<T>(&self, work: impl Fn(&Connection) -> Result<T>) -> Result<T> {
        let path = self.inner.target.path();
        let taken = self.inner.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let conn = match taken {
            Some(conn) => conn,
            None if self.inner.immutable => connect::immutable_reader(path)?,
            None => connect::reader(&self.inner.target)?,
        };
        let began = Instant::now();
        let result = loop {
            match work(&conn).map_err(|e| e.at(path)) {
                // SQLite has already waited each time.
                Err(StoreError::Busy { .. }) if began.elapsed() < Duration::from_secs(5) => {}
                other => break other,
            }
        };
        if matches!(result, Err(StoreError::Corrupt { .. })) {
            self.suspect();
        }
        let mut readers = self.inner.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < READERS
            && !matches!(result, Err(StoreError::Corrupt { .. } | StoreError::Io { .. }))
        {
            readers.push(conn);
        }
        result
    }

    /// As [`Store::read`] for work that cannot be repeated.
    pub(crate) fn read_once<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let work = std::cell::Cell::new(Some(work));
        self.read(|conn| match work.take() {
            // One transaction, so that all reads see the same state.
            Some(work) => {
                conn.execute_batch("BEGIN")?;
                let result = work(conn);
                conn.execute_batch("ROLLBACK")?;
                result
            }
            None => Err(StoreError::Internal("a read was repeated".into())),
        })
    }

    /// Records signs of damage: the next start checks thoroughly.
    pub(crate) fn suspect(&self) {
        if let Target::File(path) = &self.inner.target
            && !self.inner.immutable
            && std::fs::write(folder::beside(path, ".suspect"), "").is_err()
        {
            tracing::debug!("the database cannot be marked as suspect");
        }
    }

    pub(crate) fn now(&self) -> tiller_protocol::Time {
        self.inner.options.clock.now()
    }

    pub(crate) fn zone(&self) -> TimeZone {
        let zone = &self.inner.options.zone;
        self.inner.zone.get_or_init(|| zone.clone().unwrap_or_else(TimeZone::system)).clone()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let damaged = matches!(&*self.health.borrow(), Health::Failing(StoreError::Corrupt { .. }));
        if damaged && std::fs::write(folder::beside(self.target.path(), ".suspect"), "").is_err() {
            tracing::debug!("the database cannot be marked as suspect");
        }
        let _mark = self.presence.as_ref().map(|_| LogMark::put(self.target.path()));
        if let Some(writer) = &self.writer {
            writer.close();
        }
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        if let Some(presence) = &self.presence
            && self.health.borrow().ok()
            && presence.alone()
        {
            folder::write_stamp(self.target.path());
        }
    }
}

#[cfg(test)]
#[path = "open_tests.rs"]
mod tests;
