//! The thread that owns the snapshots. Requests are carried out in order, so the state before a call is kept before
//! the call, and only those wait that must. The first request starts the thread; without requests it sleeps.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tiller_protocol::Clock;
use tiller_protocol::restore::StepFile;
use tiller_snapshot::{Id, Limits, Shadow, SnapshotError};
use tokio::sync::oneshot;

use super::cut::InterruptedCall;
use crate::files::restore::back;
use crate::lock::lock;

/// Requests that may wait. A turn makes a few.
const WAITING: usize = 256;

/// Where snapshots are kept.
#[derive(Clone, Debug)]
pub struct SnapshotOptions {
    /// The folder whose states are kept.
    pub workspace: PathBuf,
    /// The folder of the store, outside of it.
    pub store: PathBuf,
    pub limits: Limits,
    /// Most bytes of all snapshots; the oldest are deleted first.
    pub quota: u64,
    /// Whether the user must approve a call when the files before it could not be kept.
    pub ask: bool,
}

/// A notice of the snapshots, shown once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SnapshotNotice {
    /// An interrupted restore was handled. When it was completed: the states before and after, and the changed files.
    Recovered { text: String, step: Option<CompletedRestore> },
    /// Files that are not covered.
    NotCovered(String),
    /// Changes of an interrupted call.
    InterruptedCall(InterruptedCall),
}

/// Notices from the thread of the snapshots to the engine. Few at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct SnapshotNotices(Arc<Mutex<Vec<SnapshotNotice>>>);

impl SnapshotNotices {
    fn push(&self, word: SnapshotNotice) {
        lock(&self.0).push(word);
    }

    pub(super) fn credited(&self, all: Vec<InterruptedCall>) {
        all.into_iter().for_each(|c| self.push(SnapshotNotice::InterruptedCall(c)));
    }
}

/// A restore that was completed at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompletedRestore {
    pub(crate) before: Id,
    pub(crate) after: Id,
    pub(crate) files: Vec<StepFile>,
}

/// Time between two heartbeats of running calls.
const BEAT: Duration = Duration::from_secs(1);
/// Time between two garbage collections.
const COLLECT: Duration = Duration::from_secs(6 * 3600);

type Result<T> = std::result::Result<T, SnapshotError>;
/// A request. Called with an error when it cannot be carried out.
type Request = Box<dyn FnOnce(Result<&mut SnapshotThread>) + Send>;

/// Sends requests to the thread. Dropping the last clone ends the thread after its last request.
#[derive(Clone)]
pub struct Keeper {
    place: Arc<SnapshotOptions>,
    clock: Arc<dyn Clock>,
    /// The thread holds the receiver; `None` until it is needed.
    work: Arc<Mutex<Option<SyncSender<Request>>>>,
    words: SnapshotNotices,
    doings: Arc<Mutex<crate::files::doings::WriteLog>>,
}

/// The snapshots, opened by the first request that needs them.
struct SnapshotThread {
    place: Arc<SnapshotOptions>,
    clock: Arc<dyn Clock>,
    shadow: Option<Shadow>,
    words: SnapshotNotices,
    /// The notice that only named files are covered was shown.
    told: bool,
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Keeper {
    /// Opens nothing yet.
    pub fn new(place: SnapshotOptions, clock: Arc<dyn Clock>) -> Self {
        Self {
            place: Arc::new(place),
            clock,
            work: Arc::default(),
            words: SnapshotNotices::default(),
            doings: Arc::default(),
        }
    }

    /// Writes of all sessions that work in the folder.
    pub(crate) fn doings(&self) -> Arc<Mutex<crate::files::doings::WriteLog>> {
        Arc::clone(&self.doings)
    }

    /// Bytes that the snapshots may take.
    pub(crate) fn quota(&self) -> u64 {
        self.place.quota
    }

    /// Whether a garbage collection is due: at most once per [`COLLECT`]. True once.
    pub(crate) fn collect_now(&self) -> bool {
        let mark = self.place.store.join("collected");
        let age = mark.metadata().and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok());
        let due = self.place.store.exists() && age.is_none_or(|age| age >= COLLECT);
        let mut options = std::fs::OpenOptions::new();
        let ours = std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        due && ours
            .write(true)
            .create(true)
            .truncate(true)
            .open(&mark)
            .is_ok_and(|f| f.set_modified(SystemTime::now()).is_ok())
    }

    /// Whether a restore or a call was interrupted, so that opening at once is worth it.
    pub(crate) fn interrupted(&self) -> bool {
        let calls = std::fs::read_dir(self.place.store.join("calls"));
        ["journal", "journal.new"].iter().any(|name| self.place.store.join(name).exists())
            || calls.is_ok_and(|mut all| all.next().is_some())
    }

    /// Sends a request; requests are carried out in order. The answer may be awaited or dropped.
    pub fn submit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Shadow) -> Result<T> + Send + 'static,
    ) -> oneshot::Receiver<Result<T>> {
        let (reply, answer) = oneshot::channel();
        let work: Request = Box::new(move |opened| {
            let done = opened.and_then(|opened| {
                let done = opened.shadow().and_then(work);
                opened.note();
                done
            });
            // The requester may have ended.
            drop(reply.send(done));
        });
        let mut slot = lock(&self.work);
        if slot.is_none() {
            *slot = self.start();
        }
        let path = self.place.store.clone();
        match slot.as_ref().map(|sender| sender.try_send(work)) {
            Some(Ok(())) => {}
            Some(Err(TrySendError::Full(work))) => work(Err(SnapshotError::Behind { path })),
            // The receiver of the answer sees that its sender is gone.
            Some(Err(TrySendError::Disconnected(_))) | None => {
                tracing::warn!("the snapshot thread has ended");
            }
        }
        answer
    }

    /// Whether the user must approve a call when the files before it could not be kept.
    pub(crate) fn asks(&self) -> bool {
        self.place.ask
    }

    pub(super) fn now(&self) -> tiller_protocol::Time {
        self.clock.now()
    }

    /// The folder of the store.
    pub(super) fn store(&self) -> &std::path::Path {
        &self.place.store
    }

    /// The error when too many requests wait.
    pub(crate) fn behind(&self) -> SnapshotError {
        SnapshotError::Behind { path: self.place.store.clone() }
    }

    /// The error when the thread has ended.
    pub(crate) fn gone(&self) -> SnapshotError {
        SnapshotError::Io { path: self.place.store.clone(), detail: "snapshots have ended".into() }
    }

    /// Like [`Self::submit`], and waits for the answer.
    ///
    /// # Errors
    /// The request's own error, or that the thread has ended.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Shadow) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.submit(work).await.unwrap_or_else(|_| Err(self.gone()))
    }

    pub(crate) fn has_words(&self) -> bool {
        !lock(&self.words.0).is_empty()
    }

    /// Takes the notices.
    pub(crate) fn words(&self) -> Vec<SnapshotNotice> {
        std::mem::take(&mut lock(&self.words.0))
    }

    /// The queue of notices.
    pub(crate) fn said(&self) -> SnapshotNotices {
        self.words.clone()
    }

    fn start(&self) -> Option<SyncSender<Request>> {
        let (sender, inbox) = sync_channel(WAITING);
        let opened = SnapshotThread {
            place: Arc::clone(&self.place),
            clock: Arc::clone(&self.clock),
            shadow: None,
            words: self.words.clone(),
            told: false,
        };
        let thread = std::thread::Builder::new().name("tiller-files".into());
        match thread.spawn(move || opened.work(&inbox)) {
            Ok(_) => Some(sender),
            Err(error) => {
                tracing::warn!(%error, "no thread for snapshots");
                None
            }
        }
    }
}

impl SnapshotThread {
    fn work(mut self, inbox: &Receiver<Request>) {
        while let Some(work) = self.next(inbox) {
            // A panic there is that work's failure; what was in memory is not trusted any more.
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(Ok(&mut self)))).is_err() {
                self.shadow = None;
            }
        }
        if let Some(mut shadow) = self.shadow.take() {
            if let Err(error) = shadow.settle() {
                tracing::warn!(%error, "snapshots may not survive a loss of power");
            }
            shadow.save_cache();
        }
    }

    /// The next request. While calls are running, writes their heartbeats.
    fn next(&self, inbox: &Receiver<Request>) -> Option<Request> {
        while self.shadow.as_ref().is_some_and(Shadow::beat) {
            match inbox.recv_timeout(BEAT) {
                Ok(work) => return Some(work),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        inbox.recv().ok()
    }

    fn shadow(&mut self) -> Result<&mut Shadow> {
        if self.shadow.is_none() {
            let place = &self.place;
            let mut shadow =
                Shadow::open(&place.workspace, &place.store, place.limits.clone(), Arc::clone(&self.clock))?;
            if let Some(recovered) = shadow.recovered() {
                let step = recovered.step().map(|s| {
                    let files =
                        shadow.compare(s.before, s.after).map(|d| back::named(&d)).unwrap_or_default();
                    CompletedRestore { before: s.before, after: s.after, files }
                });
                self.words.push(SnapshotNotice::Recovered { text: recovered.sentence(), step });
            }
            self.shadow = Some(shadow);
        }
        self.shadow.as_mut().ok_or(SnapshotError::Busy { path: self.place.store.clone() })
    }

    fn note(&mut self) {
        let partly = self.shadow.as_ref().and_then(Shadow::last).and_then(tiller_snapshot::Snapshot::notice);
        if let Some(text) = partly
            && !self.told
        {
            self.told = true;
            self.words.push(SnapshotNotice::NotCovered(text));
        }
    }
}
