//! The file watcher: what changes in the workspace, and the author of each change.
//!
//! | file | its job |
//! | --- | --- |
//! | `worker` | the thread: events in, reports out |
//! | `source` | change events of the system; `rules` says which paths are not watched |
//! | `tree` | the last known files, to distinguish added from changed and to find missed changes |
//! | `pending` | waits until a change has come to rest; turns too many into a storm |
//! | `who` | the evidence for the author of a change |
//! | `lines` | changes as lines of the feed |
//! | `outside` | notices for agents about files that they have read |
//! | `gitwatch`, `gitstate` | when to look at git; branch, commits, conflicts |
//! | `place` | network and foreign file systems |
//!
//! Starting returns at once; folders are walked and watched on the watcher's own thread. Without changes the thread
//! does not wake up. Read accesses are not watched, so Tiller's own reading causes no events.

mod gitstate;
mod gitwatch;
mod lines;
mod outside;
mod pending;
mod place;
mod rules;
mod source;
mod tree;
mod who;
mod worker;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tiller_protocol::lock;
use tiller_protocol::view::GitState;
use tiller_protocol::{AgentId, Clock, FileChange, Notice, Who};
use tiller_tool::cx::SeenFile;
use tiller_tool::shell::Witness;

use crate::git::Repository;
pub use outside::{OutsideChange, OutsideChanges};
use source::Waker;
use tree::Meta;

/// How to watch.
#[derive(Clone)]
pub struct Config {
    /// How long a file must rest before its change is reported.
    pub debounce: Duration,
    /// Patterns besides .gitignore, in its style.
    pub ignore: Vec<String>,
    /// Poll instead of watching.
    pub poll: bool,
    /// Tiller's own folders, absolute: never watched.
    pub own: Vec<PathBuf>,
    /// Source of the times in the feed.
    pub clock: Arc<dyn Clock>,
    /// Maximum number of watches; the system's own limit applies too.
    pub max_watches: usize,
}

impl Config {
    /// The defaults.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            debounce: Duration::from_millis(200),
            ignore: Vec::new(),
            poll: false,
            own: Vec::new(),
            clock,
            max_watches: 60_000,
        }
    }
}

/// Receives the reports. Called on the watcher's thread; must not block for long.
pub type Sink = Arc<dyn Fn(Report) + Send + Sync>;

/// One report of the watcher.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// The first walk is done; from here on changes are reported.
    Ready {
        folders: usize,
        polling: bool,
    },
    /// Lines of the feed.
    Changes(Vec<FileChange>),
    Git(GitState),
    /// Polling, a folder that went away, and the like.
    Notice(Notice),
}

/// Counts for tests and `doctor`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Events taken from the system.
    pub events: u64,
    /// Walks over the whole folder because events were lost.
    pub rescans: u64,
    pub watches: usize,
    pub polling: bool,
}

/// Requests to the watcher's thread.
#[derive(Debug)]
enum Ask {
    Expect(Vec<PathBuf>, Who),
    Wrote(Vec<(PathBuf, Option<Meta>)>, Who),
    Shell(who::Command, bool),
    /// Drops the sender once what changed before is reported.
    Settle(SyncSender<()>),
    /// Simulates lost events, for tests.
    #[cfg(test)]
    Overflow,
    Stop,
}

/// How long `drop` waits for the thread.
const LAST: Duration = Duration::from_secs(1);

/// Capacity of the queue of requests. The thread takes them at each wake-up; a dropped request only costs the
/// attribution of a change.
const ASKS: usize = 10_000;

/// Shared by [`Watcher`] and its thread.
struct Shared {
    asks: Mutex<VecDeque<(Instant, Ask)>>,
    log: Mutex<outside::Log>,
    /// Known texts of files, for diffs: as an agent read them or the watcher saw them, up to a total size.
    texts: Mutex<lines::Texts>,
    muted: Mutex<HashSet<String>>,
    paused: std::sync::atomic::AtomicBool,
    stats: Mutex<Stats>,
}

/// Handle of the watcher. Dropping it ends the thread.
pub struct Watcher {
    root: PathBuf,
    shared: Arc<Shared>,
    waker: Option<Waker>,
    /// The thread, and the receiver of a channel whose sender the thread holds: it closes when the thread ends.
    thread: Option<(JoinHandle<()>, Mutex<Receiver<()>>)>,
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watcher").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Watcher {
    /// Begins to watch `root` (absolute, links resolved). Returns at once; failures are reported as notices.
    pub fn start(root: &Path, config: Config, sink: Sink) -> Self {
        let shared = Arc::new(Shared {
            asks: Mutex::default(),
            log: Mutex::default(),
            texts: Mutex::default(),
            muted: Mutex::default(),
            paused: false.into(),
            stats: Mutex::default(),
        });
        let mut watcher = Self { root: root.to_owned(), shared: shared.clone(), waker: None, thread: None };
        match source::open() {
            Ok((source, waker)) => {
                watcher.waker = Some(waker.clone());
                let worker = worker::Worker::new(root, config, sink, shared, source, waker);
                let thread = std::thread::Builder::new().name("tiller-watch".into()).stack_size(1 << 20);
                let (running, ended) = sync_channel(1);
                let work = move || {
                    worker.run();
                    drop(running);
                };
                watcher.thread = thread.spawn(work).ok().map(|thread| (thread, Mutex::new(ended)));
            }
            Err(e) => sink(Report::Notice(lines::no_watching(&e))),
        }
        watcher
    }

    fn ask(&self, ask: Ask, wake: bool) {
        let mut asks = lock(&self.shared.asks);
        if asks.len() >= ASKS {
            asks.pop_front();
        }
        asks.push_back((Instant::now(), ask));
        drop(asks);
        if wake && let Some(waker) = &self.waker {
            waker();
        }
    }

    /// Announces that an edit tool is about to write these files (absolute).
    pub fn expect(&self, paths: &[PathBuf], who: &Who) {
        // No wake-up: the events of the write will cause one.
        self.ask(Ask::Expect(paths.to_vec(), who.clone()), false);
    }

    /// Reports that the tool has written them. Stores the state of each, so that a later change by others is
    /// recognised.
    pub fn wrote(&self, paths: &[PathBuf], who: &Who) {
        let metas = paths.iter().map(|p| (p.clone(), Meta::of(p))).collect();
        self.ask(Ask::Wrote(metas, who.clone()), false);
    }

    /// Reports that the command `what` of an agent begins or ends. `witness`: its changes, where its supervisors see it.
    pub fn shell_running(&self, agent: &AgentId, what: &str, witness: Option<&Witness>, running: bool) {
        let command = who::Command { agent: agent.clone(), what: what.into(), witness: witness.cloned() };
        self.ask(Ask::Shell(command, running), false);
    }

    /// Waits until what changed before is reported, at most this long. Blocks.
    pub fn settle(&self, most: Duration) {
        // Without the thread there is no answer.
        if self.thread.is_none() {
            return;
        }
        let (answer, settled) = sync_channel(1);
        self.ask(Ask::Settle(answer), true);
        // The sender is dropped in either case.
        let _ = settled.recv_timeout(most);
    }

    /// Stores the text of a file as an agent has just read it, so that a later diff can be shown.
    pub fn known(&self, path: &Path, text: &Arc<str>) {
        lock(&self.shared.texts).put(path, text.clone());
    }

    /// Pauses the feed. Agents still get their notices.
    pub fn pause(&self, paused: bool) {
        self.shared.paused.store(paused, std::sync::atomic::Ordering::Release);
    }

    /// Whether the feed is paused.
    pub fn paused(&self) -> bool {
        self.shared.paused.load(std::sync::atomic::Ordering::Acquire)
    }

    /// Mutes this path (relative, as in the feed) and everything below it, or unmutes it. Returns whether it is muted
    /// now.
    pub fn mute(&self, path: &str) -> bool {
        let mut muted = lock(&self.shared.muted);
        if muted.remove(path) { false } else { muted.insert(path.to_owned()) }
    }

    /// Whether anything changed since [`Self::changes_outside`] was called last for this agent.
    pub fn stirred(&self, agent: &AgentId) -> bool {
        lock(&self.shared.log).stirred(agent)
    }

    /// Files of `seen` (what the agent has read, by absolute path) that others changed since the last call for this
    /// agent, and that differ from what it read. Changes by its own commands count too, since it has not seen them.
    /// Reads those files: call it from a blocking thread.
    pub fn changes_outside(&self, agent: &AgentId, seen: &HashMap<PathBuf, SeenFile>) -> OutsideChanges {
        let new = lock(&self.shared.log).since(agent, seen);
        outside::compare(new, seen)
    }

    /// The diff of a file (relative, as in the feed) against git's committed version, else against the text that was
    /// seen first. `None` when there is nothing to compare with. Reads files and may call git: call it from a blocking
    /// thread.
    pub fn diff(&self, path: &str) -> Option<String> {
        let full = self.root.join(lines::unescape(path));
        let first = lock(&self.shared.texts).first(&full);
        lines::diff(Repository::find(&self.root).as_ref(), &full, path, first.as_deref())
    }

    /// Counters.
    pub fn stats(&self) -> Stats {
        *lock(&self.shared.stats)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.ask(Ask::Stop, true);
        if let Some((thread, ended)) = self.thread.take() {
            // The thread may be in the middle of a walk, which checks for this request at each folder, or in a sink
            // that does not return. The latter is not waited for: the thread ends when the call returns.
            if lock(&ended).recv_timeout(LAST) == Err(RecvTimeoutError::Timeout) {
                tracing::warn!("the watcher's thread does not end; it is left behind");
            } else {
                let _ = thread.join();
            }
        }
    }
}

#[cfg(test)]
mod tests;
