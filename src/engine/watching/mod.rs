//! The interface to the watcher: changes are published in the feed, and changes by others are reported to the model.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tiller_protocol::AgentId;
use tiller_protocol::FileChange;
use tiller_protocol::view::GitState;
use tiller_tool::Workspace;
use tiller_tool::shell::Witness;
use tiller_tool::state::ToolState;
use tokio::sync::mpsc;

use crate::core::msg::Msg;
use crate::core::services::{StaleFiles, WatchReport, Watcher};
use crate::lock::lock;

pub(crate) mod feed;

/// Lines of the feed that are kept.
const FEED: usize = 200;
/// How often a report is offered to an engine whose inbox is full, and the pause between.
const TRIES: u32 = 200;
/// Characters of the command that is shown beside a change.
const DURING: usize = 120;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(5);

/// Reports the writes of tools to the watcher.
#[derive(Clone, Default)]
pub(crate) struct Writes {
    watcher: Option<Arc<dyn Watcher>>,
    /// Changes that were found and not reported yet. Stored here by the search itself, so that nothing is lost when
    /// its caller is stopped.
    found: Arc<Mutex<Vec<StaleFiles>>>,
    /// It was waited for once.
    ready: Arc<AtomicBool>,
}

impl Writes {
    pub(crate) fn writing(&self, agent: &AgentId, paths: &[PathBuf]) {
        if let Some(watcher) = &self.watcher {
            watcher.writing(agent, paths);
        }
    }

    pub(crate) fn wrote(&self, agent: &AgentId, paths: &[PathBuf]) {
        if let Some(watcher) = &self.watcher {
            watcher.wrote(agent, paths);
        }
    }

    pub(crate) fn command(&self, agent: &AgentId, what: &str, witness: Option<&Witness>, running: bool) {
        if let Some(watcher) = &self.watcher {
            watcher.command(agent, what, witness, running);
        }
    }

    /// Remembers the present content of these files as known to `agent`, so that differences can be shown.
    pub(crate) fn known(&self, workspace: &Workspace, paths: &[PathBuf]) {
        let Some(watcher) = &self.watcher else { return };
        let texts: Vec<_> = {
            let seen = lock(&workspace.seen);
            paths.iter().filter_map(|p| Some((p, seen.get(p)?.text.clone()?))).collect()
        };
        texts.iter().for_each(|(path, text)| watcher.known(path, text));
    }

    pub(crate) fn is_for_hooks(&self) -> bool {
        self.watcher.as_ref().is_some_and(|watcher| watcher.is_for_hooks())
    }

    /// Ends when what changed before is reported; `None`: the watcher is not there for hooks.
    pub(crate) fn settled(&self) -> Option<tokio::task::JoinHandle<()>> {
        let watcher = self.watcher.clone().filter(|_| self.is_for_hooks())?;
        Some(tokio::task::spawn_blocking(move || watcher.settle()))
    }

    /// Waits until changes are seen, where that matters; once.
    pub(crate) async fn ready(&self) {
        if self.ready.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(settled) = self.settled() {
            // After a panic there nothing is reported.
            let _ = settled.await;
        }
    }

    /// Searches for changes by others of files that `agent` knows, since the last search.
    pub(crate) async fn look(&self, agent: &AgentId, workspace: &Workspace) {
        let Some(watcher) = self.watcher.clone().filter(|watcher| watcher.has_changes(agent)) else { return };
        let (agent, seen, found) = (agent.clone(), lock(&workspace.seen).clone(), Arc::clone(&self.found));
        let look = move || {
            let outside = watcher.stale(&agent, &seen);
            lock(&found).push(outside);
        };
        // After a panic there the check before each edit still applies.
        let _ = tokio::task::spawn_blocking(look).await;
    }

    /// Takes the changes that were found.
    pub(crate) fn found(&self) -> Vec<StaleFiles> {
        std::mem::take(&mut *lock(&self.found))
    }
}

/// The engine's side of watching.
#[derive(Default)]
pub(crate) struct Watching {
    pub(crate) git: Option<GitState>,
    pub(crate) writes: Writes,
    /// The last changes, for a client that connects.
    pub(crate) feed: VecDeque<FileChange>,
    /// Hooks for changed files are at work, or were just now.
    pub(crate) hook_busy: Arc<AtomicBool>,
    /// Changes by agents that came meanwhile, for the next run.
    pub(crate) hook_missed: Vec<FileChange>,
    /// Locked while they are at work.
    pub(crate) hook_run: Arc<tokio::sync::Mutex<()>>,
}

/// Waits a little while the inbox is full, then drops the report: ending the watcher waits for its thread, so that
/// thread must not wait for the engine.
#[expect(clippy::disallowed_methods, reason = "a thread of the watcher's own, which must not wait for good")]
fn give(tx: &mpsc::Sender<Msg>, seen: WatchReport) -> bool {
    let mut msg = Msg::Watch(seen);
    for _ in 0..TRIES {
        match tx.try_send(msg) {
            Ok(()) => return true,
            Err(mpsc::error::TrySendError::Closed(_)) => return false,
            Err(mpsc::error::TrySendError::Full(back)) => msg = back,
        }
        std::thread::sleep(PAUSE);
    }
    true
}

impl Watching {
    pub(crate) fn start(watcher: Option<Arc<dyn Watcher>>, tx: mpsc::Sender<Msg>) -> Self {
        if let Some(watcher) = &watcher {
            watcher.start(Box::new(move |seen| give(&tx, seen)));
        }
        Self {
            git: None,
            writes: Writes { watcher, ..Writes::default() },
            feed: VecDeque::new(),
            ..Self::default()
        }
    }

    /// For a child agent: its writes are reported to the same watcher; what the watcher sees goes to the main agent.
    pub(crate) fn for_child(&self) -> Self {
        Self {
            git: self.git.clone(),
            writes: Writes { watcher: self.writes.watcher.clone(), ..Writes::default() },
            ..Self::default()
        }
    }

    pub(crate) fn pause(&self, paused: bool) {
        if let Some(watcher) = &self.writes.watcher {
            watcher.pause(paused);
        }
    }

    pub(crate) fn mute(&self, path: &str) {
        if let Some(watcher) = &self.writes.watcher {
            watcher.mute(path);
        }
    }

    /// Ends the watcher. Waits for its thread, on a thread that may block.
    pub(crate) async fn stop(&mut self) {
        let writes = std::mem::take(&mut self.writes);
        // A panic there ends it, too.
        let _ = tokio::task::spawn_blocking(move || drop(writes)).await;
    }
}

/// Ends every process that the session's tools own.
pub(crate) async fn end_children(state: Arc<ToolState>) {
    let (left, ()) = tokio::join!(state.shells.shutdown(), state.browser.end());
    if left > 0 {
        tracing::error!(left, "processes did not end");
    }
}
