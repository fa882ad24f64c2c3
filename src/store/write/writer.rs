//! The only thread that writes. Waiting jobs share one transaction; each is acknowledged after its fully synchronised
//! commit, never before. Only a transaction that consists of passing jobs does not wait for the disk.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

use crate::error::{Result, StoreError};
use crate::open::connect::Target;
use crate::write::attempt::Attempt;
use crate::write::health::Health;
use crate::write::pending::Pending;
use crate::write::ticket::Ticket;

/// Capacity of the queue of jobs. With more unanswered jobs than this, submitting fails.
const WAITING: usize = 1024;
/// Maximum number of jobs in one transaction.
const BATCH: usize = 128;
/// How long another process may hold the lock before a notice appears.
const BUSY_QUIET: Duration = Duration::from_secs(5);
/// Shortest pause between attempts while saving fails.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// What to do with jobs that cannot be saved now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// Keep them and retry; tickets stay open and [`Health`] gives the reason.
    #[default]
    Keep,
    /// Answer with the error at once (for a headless run that must end).
    Answer,
}

/// A change to the database. May run several times, each time in a new transaction.
pub(crate) trait Job: Send {
    fn run(&mut self, conn: &Connection) -> Result<()>;
    fn answer(self: Box<Self>, outcome: Result<()>);
    /// Whether it may be lost at a loss of power: its data matters to living processes only.
    fn passing(&self) -> bool;
}

struct TypedJob<T, F> {
    work: F,
    passing: bool,
    out: Option<T>,
    reply: oneshot::Sender<Result<T>>,
    pending: Arc<Pending>,
}

impl<T: Send, F: FnMut(&Connection) -> Result<T> + Send> Job for TypedJob<T, F> {
    fn run(&mut self, conn: &Connection) -> Result<()> {
        self.out = Some((self.work)(conn)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        let Self { work, out, reply, pending, .. } = *self;
        // Resources of the change (locks, files) are released before the caller gets the result.
        drop(work);
        let answer = outcome.and_then(|()| out.ok_or_else(|| StoreError::Internal("no result".into())));
        pending.answered();
        // The caller may have dropped the ticket; the write stays.
        drop(reply.send(answer));
    }

    fn passing(&self) -> bool {
        self.passing
    }
}

/// Wakes the writer from a pause, to stop or to retry now.
#[derive(Default)]
pub(crate) struct Waker {
    signal: Mutex<Signal>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
struct Signal {
    stop: bool,
    retry: bool,
}

impl Waker {
    fn wake(&self, set: impl FnOnce(&mut Signal)) {
        set(&mut self.signal.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits for `at_most`, or until woken. True when the writer is to stop.
    fn pause(&self, at_most: Duration) -> bool {
        let signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut signal, _) = self
            .changed
            .wait_timeout_while(signal, at_most, |r| !r.stop && !r.retry)
            .unwrap_or_else(PoisonError::into_inner);
        signal.retry = false;
        signal.stop
    }
}

/// The store's handle of the thread. Dropping it saves the submitted jobs and stops the thread.
pub(crate) struct Writer {
    /// The thread holds the receiver; `None` once closing began, and then the thread drains the queue and ends.
    jobs: Mutex<Option<SyncSender<Box<dyn Job>>>>,
    waker: Arc<Waker>,
    pending: Arc<Pending>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Starts the thread on `conn`.
    pub(crate) fn start(
        conn: Connection,
        target: Target,
        on_failure: OnFailure,
        health: watch::Sender<Health>,
    ) -> Result<Self> {
        let (jobs, inbox) = sync_channel(WAITING);
        let waker = Arc::new(Waker::default());
        let attempt = Attempt::new(conn, target);
        let resting = health.borrow().clone();
        let mut writer = WriterLoop { inbox, attempt, on_failure, health, resting, waker: waker.clone() };
        let thread = std::thread::Builder::new()
            .name("tiller-store".into())
            .spawn(move || writer.work())
            .map_err(|e| StoreError::Internal(e.to_string()))?;
        Ok(Self {
            jobs: Mutex::new(Some(jobs)),
            waker,
            pending: Pending::new(),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Submits a change. Never blocks. `passing`: see [`Job::passing`].
    pub(crate) fn submit<T: Send + 'static>(
        &self,
        passing: bool,
        work: impl FnMut(&Connection) -> Result<T> + Send + 'static,
    ) -> Ticket<T> {
        let (reply, receiver) = oneshot::channel();
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(jobs) = jobs.as_ref() else {
            return Ticket::ready(Err(StoreError::Closed));
        };
        let pending = Arc::clone(&self.pending);
        match jobs.try_send(Box::new(TypedJob { work, passing, out: None, reply, pending })) {
            Ok(()) => {
                self.pending.submitted();
                Ticket::new(receiver)
            }
            Err(TrySendError::Full(_)) => Ticket::ready(Err(StoreError::Overloaded { waiting: WAITING })),
            Err(TrySendError::Disconnected(_)) => Ticket::ready(Err(StoreError::Closed)),
        }
    }

    /// Resolves once each write that was submitted before this call is answered.
    pub(crate) fn settled(&self) -> impl Future<Output = ()> + Send + use<> {
        self.pending.settled()
    }

    /// Retries now, instead of after the present pause.
    pub(crate) fn retry(&self) {
        self.waker.wake(|r| r.retry = true);
    }

    /// Saves the waiting jobs and ends. Jobs that cannot be saved are answered with the reason.
    pub(crate) fn close(&self) {
        drop(self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.waker.wake(|r| r.stop = true);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the store's writer ended by a panic");
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

/// State of the writer's thread.
struct WriterLoop {
    inbox: Receiver<Box<dyn Job>>,
    attempt: Attempt,
    on_failure: OnFailure,
    health: watch::Sender<Health>,
    /// The health when nothing fails.
    resting: Health,
    waker: Arc<Waker>,
}

impl WriterLoop {
    fn work(&mut self) {
        while let Ok(first) = self.inbox.recv() {
            let mut batch = vec![first];
            batch.extend(self.inbox.try_iter().take(BATCH - 1));
            self.save(batch);
            self.attempt.checkpoint();
        }
    }

    /// Commits a batch, however long it takes, and answers each job.
    fn save(&mut self, mut batch: Vec<Box<dyn Job>>) {
        let began = Instant::now();
        let mut pause = PAUSE_MIN;
        let mut last = false;
        self.attempt.next_batch();
        loop {
            let error = match self.attempt.commit(&mut batch) {
                Ok(outcomes) => {
                    self.tell(self.resting.clone());
                    for (job, outcome) in batch.into_iter().zip(outcomes) {
                        job.answer(outcome);
                    }
                    return;
                }
                Err(error) => error,
            };
            let busy = matches!(error, StoreError::Busy { .. });
            if !busy || began.elapsed() > BUSY_QUIET {
                tracing::warn!(%error, "not saved");
                self.tell(Health::Failing(error.clone()));
            }
            let hopeless =
                matches!(error, StoreError::Corrupt { .. } | StoreError::Internal(_) | StoreError::Record(_));
            let give_up = self.on_failure == OnFailure::Answer && (!busy || began.elapsed() > BUSY_QUIET);
            if hopeless || give_up || (last && (!busy || began.elapsed() > BUSY_QUIET)) {
                for job in batch {
                    job.answer(Err(error.clone()));
                }
                return;
            }
            let wait = if busy { self.attempt.jitter(Duration::from_millis(20)) } else { pause };
            // After the request to stop there is one more attempt.
            last = self.waker.pause(wait);
            if !busy {
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }

    fn tell(&self, now: Health) {
        self.health.send_if_modified(|health| {
            let changed = *health != now;
            if changed {
                *health = now;
            }
            changed
        });
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
