//! What a program's call does to the files: others are told that it is at work, and the states before and after it are
//! kept, as with calls of our own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tiller_external::{Said, ToolUse};
use tiller_store::StepOf;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::context::clean::Stream;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::files::record::{self, Beginning, What};

/// Calls whose states are being kept at once: one that calls without end is not followed for ever.
const KEPT: usize = 8;
/// At most so long is the end of a program held back for what its last call did.
const LAST: Duration = Duration::from_secs(1);

/// Some clean up after a call only when they have told its end (files that stand in for others in a sandbox).
const SETTLES: Duration = Duration::from_millis(150);

/// A call that is open.
pub(in crate::crew) struct Open {
    pub(super) tool: ToolUse,
    pub(super) since: Duration,
    /// It was shown: some tell what they do only a moment later.
    pub(super) shown: bool,
    /// The person was asked whether it may run.
    pub(in crate::crew) asked: bool,
    /// Its output as it comes: a secret may be cut anywhere between two pieces.
    pub(super) words: Option<Stream>,
    /// Pieces of output so far.
    pub(super) pieces: u64,
    /// As it was told to who watches the folder.
    told: Option<String>,
    before: Option<(Beginning, OwnedSemaphorePermit)>,
}

impl Open {
    pub(super) fn new(tool: ToolUse, since: Duration) -> Self {
        Self { tool, since, shown: false, asked: false, words: None, pieces: 0, told: None, before: None }
    }
}

/// How many states of calls may still be kept.
pub(super) fn room() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(KEPT))
}

/// Whether a call may change files, by our word for it.
fn may_change(verb: &str) -> bool {
    !matches!(verb, "read" | "search" | "fetch" | "think")
}

impl Core {
    /// A call begins.
    pub(super) fn cover(&mut self, id: &str) {
        let (keeper, watched) = (self.w.files.clone(), self.watched());
        let (agent, writes) = (self.me.id.clone(), self.watching.writes.clone());
        let Some(o) = self.outside() else { return };
        let room = Arc::clone(&o.room).try_acquire_owned().ok();
        let Some(open) = o.open.get_mut(id).filter(|o| may_change(&o.tool.verb)) else { return };
        let what = if open.tool.target.is_empty() { &open.tool.name } else { &open.tool.target }.clone();
        writes.command(&agent, &what, true);
        open.told = Some(what);
        if let (Some(keeper), Some(room)) = (keeper, room) {
            open.before = Some((record::begin(&keeper, What::All, watched, id.to_owned()), room));
        }
    }

    /// A call is over, one way or another. `changed` is what it says that it changed.
    pub(super) fn uncover(&mut self, open: &mut Open, changed: &[String]) {
        let writes = &self.watching.writes;
        if let Some(what) = open.told.take() {
            writes.command(&self.me.id, &what, false);
        }
        let root = &self.w.workspace.root;
        let paths: Vec<PathBuf> = changed.iter().map(|p| root.join(p)).collect();
        if !paths.is_empty() {
            writes.wrote(&self.me.id, &paths);
        }
        let Some((keeper, (before, room))) = self.w.files.clone().zip(open.before.take()) else { return };
        self.record(StepOf::Call(open.tool.id.clone()), async move {
            let before = match record::kept_before(&keeper, before).await {
                Ok(before) => before,
                Err(error) => return Some(Err(error)),
            };
            tokio::time::sleep(SETTLES).await;
            let kept = record::after(&keeper, before).kept().await;
            drop(room);
            kept
        });
    }

    /// A program without calls, in its terminal, works or does not.
    pub(in crate::crew) fn cover_all(&mut self, works: bool) {
        let (agent, writes) = (self.me.id.clone(), self.watching.writes.clone());
        let Some(o) = self.outside().filter(|o| o.covers != works) else { return };
        o.covers = works;
        writes.command(&agent, &o.adapter.title, works);
    }

    /// The end waits a moment for what the last call did to the files: it comes again then.
    pub(super) fn hold_end(&mut self, turn: u64, said: Said) -> Option<Said> {
        let again = self.outside().is_none_or(|o| std::mem::replace(&mut o.held, true));
        let Some(last) = (!again).then(|| self.recorded.take()).flatten() else { return Some(said) };
        // Whatever is recorded next comes after it, as it would have.
        let (done, next) = tokio::sync::oneshot::channel::<()>();
        self.recorded = Some(next);
        let tx = self.tx.clone();
        self.spawn(async move {
            let _done = done;
            let _ = tokio::time::timeout(LAST, last).await;
            let _ = tx.send(Msg::Outside { turn, said: Box::new(said) }).await;
        });
        None
    }
}
