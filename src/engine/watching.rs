//! The watcher's seam: what it sees goes to the feed, and what others changed is told to the model.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::view::GitState;
use tiller_protocol::{AgentId, ChangeKind, CommandId, FileChange, Notice, NoticeKind, Who};
use tiller_tool::Workspace;
use tiller_tool::cx::Seen as Known;
use tiller_tool::state::ToolState;
use tokio::sync::mpsc;

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::services::lock;

/// Lines of the feed that are kept.
const FEED: usize = 200;
/// How often, and after which pause, a report is offered to an engine that is behind.
const TRIES: u32 = 200;
/// Characters of a command beside a change.
const DURING: usize = 120;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(5);

/// What the watcher saw, after its quiet time.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub changes: Vec<FileChange>,
    pub git: Option<GitState>,
    /// It fell back to polling, or lost track.
    pub notice: Option<Notice>,
}

/// Gives what was seen to the engine. Waits at most a second while the engine is behind; false when it has ended.
pub type Sink = Box<dyn Fn(Seen) -> bool + Send + Sync>;

/// A watcher. Dropping it ends it.
pub trait Watcher: Send + Sync {
    /// Begins to watch, and to tell `sink`.
    fn start(&self, sink: Sink);
    /// `agent` is about to write these paths.
    fn writing(&self, agent: &AgentId, paths: &[PathBuf]);
    /// It has written them.
    fn wrote(&self, agent: &AgentId, paths: &[PathBuf]);
    /// `agent` runs the command `what` (or has ended it): what changes meanwhile may be its doing.
    fn command(&self, agent: &AgentId, what: &str, running: bool);
    /// Whether anything changed since [`Self::outside`] was asked last for `agent`. Quick.
    fn stirred(&self, agent: &AgentId) -> bool;
    /// Files of `seen` (what the agent knows, by absolute path) that changed since it was asked last, not by
    /// the agent's own edits, and that are not as the agent knows them. Reads those files: blocks.
    fn outside(&self, agent: &AgentId, seen: &HashMap<PathBuf, Known>) -> Outside;
    /// The text of a file as the agent just saw or left it.
    fn known(&self, path: &Path, text: &Arc<str>);
    fn pause(&self, paused: bool);
    fn mute(&self, path: &str);
    /// The difference of a file against its state when watching began.
    ///
    /// # Errors
    /// In words.
    fn diff(&self, path: &str) -> Result<String, String>;
}

/// What an agent is to be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outside {
    pub files: Vec<Changed>,
    /// How many more there are.
    pub more: usize,
}

/// A file that is not any more as the agent knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Relative to the workspace.
    pub path: String,
    pub deleted: bool,
    /// Lines added and removed against what the agent knows, where that is known.
    pub lines: Option<(u32, u32)>,
    /// The command of the agent's that ran at that time. It may have been that, or anybody else.
    pub during: Option<String>,
}

/// For tools: who writes what.
#[derive(Clone, Default)]
pub(crate) struct Writes {
    watcher: Option<Arc<dyn Watcher>>,
    /// What was found to have changed and is not told yet. Whoever looks puts it here itself, so that nothing is
    /// lost when the one who asked is stopped.
    found: Arc<Mutex<Vec<Outside>>>,
}

impl Writes {
    pub(crate) fn writing(&self, agent: &AgentId, paths: &[PathBuf]) {
        if let Some(w) = &self.watcher {
            w.writing(agent, paths);
        }
    }

    pub(crate) fn wrote(&self, agent: &AgentId, paths: &[PathBuf]) {
        if let Some(w) = &self.watcher {
            w.wrote(agent, paths);
        }
    }

    pub(crate) fn command(&self, agent: &AgentId, what: &str, running: bool) {
        if let Some(w) = &self.watcher {
            w.command(agent, what, running);
        }
    }

    /// What `agent` knows now of these files, so that differences can be shown.
    pub(crate) fn known(&self, workspace: &Workspace, paths: &[PathBuf]) {
        let Some(w) = &self.watcher else { return };
        let texts: Vec<_> = {
            let seen = lock(&workspace.seen);
            paths.iter().filter_map(|p| Some((p, seen.get(p)?.text.clone()?))).collect()
        };
        texts.iter().for_each(|(path, text)| w.known(path, text));
    }

    /// Looks what others changed of the files that `agent` knows, since it was asked last.
    pub(crate) async fn look(&self, agent: &AgentId, workspace: &Workspace) {
        let Some(w) = self.watcher.clone().filter(|w| w.stirred(agent)) else { return };
        let (agent, seen, found) = (agent.clone(), lock(&workspace.seen).clone(), Arc::clone(&self.found));
        let look = move || {
            let outside = w.outside(&agent, &seen);
            lock(&found).push(outside);
        };
        // A panic there leaves the agent to the check before each edit.
        let _ = tokio::task::spawn_blocking(look).await;
    }

    /// What was found, once.
    pub(crate) fn found(&self) -> Vec<Outside> {
        std::mem::take(&mut *lock(&self.found))
    }
}

/// The engine's side of watching.
#[derive(Default)]
pub(crate) struct Watching {
    pub(crate) git: Option<GitState>,
    pub(crate) writes: Writes,
}

/// Waits a little while the engine is behind, and then leaves the lines out: who ends the watcher waits for
/// its thread, so that must not wait for the engine.
#[expect(clippy::disallowed_methods, reason = "a thread of the watcher's own, which must not wait for good")]
fn give(tx: &mpsc::Sender<Msg>, seen: Seen) -> bool {
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
        if let Some(w) = &watcher {
            w.start(Box::new(move |seen| give(&tx, seen)));
        }
        Self { git: None, writes: Writes { watcher, ..Writes::default() } }
    }

    /// For an agent of the crew: the same watcher tells who writes what; what it sees goes to the main agent.
    pub(crate) fn for_child(&self) -> Self {
        Self {
            git: self.git.clone(),
            writes: Writes { watcher: self.writes.watcher.clone(), ..Writes::default() },
        }
    }

    pub(crate) fn pause(&self, paused: bool) {
        if let Some(w) = &self.writes.watcher {
            w.pause(paused);
        }
    }

    pub(crate) fn mute(&self, path: &str) {
        if let Some(w) = &self.writes.watcher {
            w.mute(path);
        }
    }

    /// Ends it. It waits for its thread, so that is done where waiting is allowed.
    pub(crate) async fn stop(&mut self) {
        let writes = std::mem::take(&mut self.writes);
        // A panic there is its own end, too.
        let _ = tokio::task::spawn_blocking(move || drop(writes)).await;
    }
}

impl Core {
    pub(crate) fn seen(&mut self, mut seen: Seen) {
        if let Some(notice) = seen.notice {
            self.notice(notice);
        }
        if let Some(git) = seen.git
            && self.watching.git.as_ref() != Some(&git)
        {
            let before = self.watching.git.replace(git.clone());
            if let Some(before) = before
                && before.branch != git.branch
                && self.has_words()
            {
                self.news.set("git", format!("the git branch is now {}", git.branch));
            }
            self.state(None, StateEvent::GitChanged { git });
        }
        if seen.changes.is_empty() {
            return;
        }
        for change in &mut seen.changes {
            // One line of the command, without secrets.
            change.during = change.during.take().map(|d| {
                crate::job::cut(&self.redact(&d).split_whitespace().collect::<Vec<_>>().join(" "), DURING)
            });
        }
        if seen.changes.iter().any(|c| c.kind != ChangeKind::Modified) {
            self.finder.stir();
        }
        for change in &seen.changes {
            // Files that the model knows are reported by `Watcher::outside`, also where the feed is silent.
            let others = matches!(change.who, Who::You | Who::Git);
            if others && change.kind == ChangeKind::Storm && self.has_words() {
                self.news.set(
                    "storm",
                    format!("{} files under {} were changed by someone else", change.count, change.path),
                );
            }
        }
        self.crew_changed(&seen.changes);
        self.look_for_comments(&seen.changes);
        self.feed.extend(seen.changes.iter().cloned());
        let over = self.feed.len().saturating_sub(FEED);
        self.feed.drain(..over);
        self.state(None, StateEvent::WorkspaceChanged { changes: seen.changes });
    }

    pub(crate) fn watch_diff(&mut self, client: ClientId, cause: CommandId, path: String) {
        let Some(watcher) = self.watching.writes.watcher.clone() else {
            let notice = Notice::new(NoticeKind::User, "watching is turned off");
            return self.refuse(client, cause, notice);
        };
        let (bus, place) = (Arc::clone(&self.bus), self.place_of(Some(cause)));
        self.spawn(async move {
            let asked = path.clone();
            let diff = tokio::task::spawn_blocking(move || watcher.diff(&asked)).await;
            let reply = match diff {
                Ok(Ok(diff)) => ReplyEvent::DiffReply { path, diff },
                Ok(Err(why)) => ReplyEvent::ErrorReply { notice: Notice::new(NoticeKind::User, why) },
                Err(_) => ReplyEvent::ErrorReply {
                    notice: Notice::new(NoticeKind::Internal, "the difference could not be computed"),
                },
            };
            bus.reply(client, &place, reply);
        });
    }
}

/// Ends every process that the session's tools own.
pub(crate) async fn end_children(state: Arc<ToolState>) {
    let left = state.shells.shutdown().await;
    if left > 0 {
        tracing::error!(left, "processes did not end");
    }
}
