//! The thread that owns the snapshots. Work is done in the order in which it was handed over, so the state before a
//! call is kept before the call, without anybody waiting who need not. It is started by the first work, and at rest
//! it sleeps.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tiller_protocol::Clock;
use tiller_protocol::restore::StepFile;
use tiller_snapshot::{Id, Limits, Shadow, SnapshotError};
use tokio::sync::oneshot;

use super::back;
use crate::world::lock;

/// Work that may wait. A turn has a handful.
const WAITING: usize = 256;

/// Where snapshots are kept.
#[derive(Clone, Debug)]
pub struct Snapshots {
    /// The folder that is looked at.
    pub workspace: PathBuf,
    /// The folder of the store, outside of it.
    pub store: PathBuf,
    pub limits: Limits,
    /// Bytes that they may take; the oldest go first.
    pub quota: u64,
}

/// What a person should hear once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// A restore had been interrupted. When it was finished now: the states before and after, and what changed.
    Recovered { text: String, step: Option<Finished> },
    /// What is not covered.
    Partly(String),
}

/// A restore that was finished at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finished {
    pub(crate) before: Id,
    pub(crate) after: Id,
    pub(crate) files: Vec<StepFile>,
}

/// Between two collections.
const COLLECT: Duration = Duration::from_secs(6 * 3600);

type Result<T> = std::result::Result<T, SnapshotError>;
type Work = Box<dyn FnOnce(&mut Opened) + Send>;

/// Hands work over. Dropping the last clone ends the thread, after what it was given.
#[derive(Clone)]
pub struct Keeper {
    place: Arc<Snapshots>,
    clock: Arc<dyn Clock>,
    /// The thread holds the other end; `None` until it is needed.
    work: Arc<Mutex<Option<SyncSender<Work>>>>,
    words: Arc<Mutex<Vec<Word>>>,
    doings: Arc<Mutex<super::record::Doings>>,
}

/// The snapshots, opened by the first work that needs them.
struct Opened {
    place: Arc<Snapshots>,
    clock: Arc<dyn Clock>,
    shadow: Option<Shadow>,
    words: Arc<Mutex<Vec<Word>>>,
    /// That only named files are covered was said.
    told: bool,
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Keeper {
    /// Nothing is opened yet.
    pub fn new(place: Snapshots, clock: Arc<dyn Clock>) -> Self {
        Self {
            place: Arc::new(place),
            clock,
            work: Arc::default(),
            words: Arc::default(),
            doings: Arc::default(),
        }
    }

    /// Who wrote what, of everybody who works in the folder.
    pub(crate) fn doings(&self) -> Arc<Mutex<super::record::Doings>> {
        Arc::clone(&self.doings)
    }

    /// Bytes that the snapshots may take.
    pub(crate) fn quota(&self) -> u64 {
        self.place.quota
    }

    /// Whether it is time to collect what nobody needs: at most once in a while. Says so once.
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

    /// Whether a restore was interrupted, so that opening at once is worth it.
    pub(crate) fn interrupted(&self) -> bool {
        ["journal", "journal.new"].iter().any(|name| self.place.store.join(name).exists())
    }

    /// Hands work over; it is done in order. The answer may be waited for, or not.
    pub fn submit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Shadow) -> Result<T> + Send + 'static,
    ) -> oneshot::Receiver<Result<T>> {
        let (reply, answer) = oneshot::channel();
        let work: Work = Box::new(move |opened| {
            let done = opened.shadow().and_then(work);
            opened.note();
            // Whoever asked may have gone.
            drop(reply.send(done));
        });
        let mut slot = lock(&self.work);
        if slot.is_none() {
            *slot = self.start();
        }
        if let Some(sender) = slot.as_ref()
            && sender.try_send(work).is_err()
        {
            tracing::warn!("the thread of snapshots is behind, or gone");
        }
        answer
    }

    /// As [`Self::submit`], and waits.
    ///
    /// # Errors
    /// What the work gave, or that the thread is gone.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Shadow) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let gone =
            || SnapshotError::Io { path: self.place.store.clone(), detail: "snapshots have ended".into() };
        self.submit(work).await.unwrap_or_else(|_| Err(gone()))
    }

    pub(crate) fn has_words(&self) -> bool {
        !lock(&self.words).is_empty()
    }

    /// What a person should hear, once.
    pub(crate) fn words(&self) -> Vec<Word> {
        std::mem::take(&mut lock(&self.words))
    }

    fn start(&self) -> Option<SyncSender<Work>> {
        let (sender, inbox) = sync_channel(WAITING);
        let opened = Opened {
            place: Arc::clone(&self.place),
            clock: Arc::clone(&self.clock),
            shadow: None,
            words: Arc::clone(&self.words),
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

impl Opened {
    fn work(mut self, inbox: &Receiver<Work>) {
        while let Ok(work) = inbox.recv() {
            // A panic there is that work's failure; what was in memory is not trusted any more.
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&mut self))).is_err() {
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

    fn shadow(&mut self) -> Result<&mut Shadow> {
        if self.shadow.is_none() {
            let place = &self.place;
            let mut shadow =
                Shadow::open(&place.workspace, &place.store, place.limits.clone(), Arc::clone(&self.clock))?;
            if let Some(recovered) = shadow.recovered() {
                let step = recovered.step().map(|s| {
                    let files =
                        shadow.compare(s.before, s.after).map(|d| back::named(&d)).unwrap_or_default();
                    Finished { before: s.before, after: s.after, files }
                });
                lock(&self.words).push(Word::Recovered { text: recovered.sentence(), step });
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
            lock(&self.words).push(Word::Partly(text));
        }
    }
}
