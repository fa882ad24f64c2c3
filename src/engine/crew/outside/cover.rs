//! What a program's call does to the files: others are told that it is at work, and the states before and after it are
//! kept, as with calls of our own.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tiller_external::Said;
use tiller_store::StepOf;
use tokio::sync::oneshot;

use crate::core::Core;
use crate::core::msg::Msg;
use crate::crew::external::Open;
use crate::crew::msg::ExternalMsg;
use crate::files::NotKept;
use crate::files::msg::What;
use crate::files::record;

/// At most so long is the end of a program held back for what its last call did.
const LAST: Duration = Duration::from_secs(1);

/// Some clean up after a call only when they have told its end (files that stand in for others in a sandbox).
const SETTLES: Duration = Duration::from_millis(150);

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
        let unkept = Arc::clone(&o.unkept);
        let Some(open) = o.open.get_mut(id).filter(|o| may_change(&o.tool.verb)) else { return };
        let what = if open.tool.target.is_empty() { &open.tool.name } else { &open.tool.target }.clone();
        writes.command(&agent, &what, true);
        open.told = Some(what);
        let Some(keeper) = keeper else { return };
        let Some(room) = room else {
            return self.not_kept(&NotKept(keeper.behind()));
        };
        let beginning = record::begin(&keeper, What::All, watched, id.to_owned());
        let (tell, before) = oneshot::channel();
        open.before = Some((before, room));
        self.keeping.spawn(async move {
            let before = record::kept_before(&keeper, beginning).await;
            unkept.store(before.is_err(), Ordering::Relaxed);
            // The call may be over and forgotten.
            drop(tell.send(before));
        });
    }

    /// A state was not kept: what the program asks for from now on cannot be undone, until one is kept again.
    pub(crate) fn outside_not_kept(&mut self) {
        if let Some(o) = self.outside() {
            o.unkept.store(true, Ordering::Relaxed);
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
            let before = match before.await.unwrap_or_else(|_| Err(keeper.gone())) {
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
            let _ = tx.send(Msg::External(ExternalMsg::Said { turn, said: Box::new(said) })).await;
        });
        None
    }
}
