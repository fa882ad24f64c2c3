//! What a program's call does to the files: other agents see that it is at work, and the states before and after it are
//! kept, as with calls of our own.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tiller_external::{Adapter, AgentEvent, Transport};
use tiller_store::StepOf;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::core::Core;
use crate::core::msg::Msg;
use crate::crew::external::{Open, ProgramWork};
use crate::crew::msg::ExternalMsg;
use crate::files::msg::What;
use crate::files::{Keeper, NotKept, Watched, record};

/// At most so long is the end of a program held back for what its last call did.
const LAST: Duration = Duration::from_secs(1);

/// Some clean up after a call only when they have told its end (files that stand in for others in a sandbox).
const SETTLES: Duration = Duration::from_millis(150);

/// What is needed to keep that state.
pub(super) struct Keeps {
    keeper: Keeper,
    watched: Watched,
    call: String,
    room: OwnedSemaphorePermit,
}

impl Keeps {
    /// Keeps it, and does not wait: it works already.
    fn begun(self) -> ProgramWork {
        let before = record::begin(&self.keeper, What::All, self.watched, self.call.clone());
        ProgramWork { call: self.call, before, room: self.room }
    }

    /// Keeps it, and waits for it: the program must not change anything before.
    pub(super) async fn kept(self) -> ProgramWork {
        let ProgramWork { call, before, room } = self.begun();
        let (kept, before_kept) = oneshot::channel();
        if let Ok(state) = before.await {
            // Its receiver is here.
            let _ = kept.send(state);
        }
        ProgramWork { call, before: before_kept, room }
    }
}

/// Whether a call may change files, by our word for it.
fn may_change(verb: &str) -> bool {
    !matches!(verb, "read" | "search" | "fetch" | "think")
}

/// Whether a program, run in this way or in the first one that it has, tells of no calls.
fn starts_mute(adapter: &Adapter, how: Option<Transport>) -> bool {
    let how = how.unwrap_or(match (&adapter.acp, &adapter.headless) {
        (Some(_), _) => Transport::Acp,
        (None, Some(_)) => Transport::Headless,
        (None, None) => Transport::Pty,
    });
    how == Transport::Pty || adapter.is_mute(how)
}

impl Core {
    /// A call begins.
    pub(super) fn cover(&mut self, id: &str) {
        let (keeper, watched) = (self.services.files.clone(), crate::files::record::watched(self));
        let (agent, writes) = (self.identity.id.clone(), self.watching.writes.clone());
        let Some(o) = self.outside() else { return };
        let room = Arc::clone(&o.room).try_acquire_owned().ok();
        let unkept = Arc::clone(&o.unkept);
        let Some(open) = o.open.get_mut(id).filter(|o| may_change(&o.tool.verb)) else { return };
        let what = if open.tool.target.is_empty() { &open.tool.name } else { &open.tool.target }.clone();
        writes.command(&agent, &what, true);
        open.told = Some(what);
        let Some(keeper) = keeper else { return };
        let Some(room) = room else {
            return crate::files::record::not_kept(self, &NotKept(keeper.behind()));
        };
        let beginning = record::begin(&keeper, What::All, watched, id.to_owned());
        let (tell, before) = oneshot::channel();
        open.before = Some((before, room));
        self.files.keeping.spawn(async move {
            let before = beginning.await.unwrap_or_else(|_| Err(keeper.gone()));
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
            writes.command(&self.identity.id, &what, false);
        }
        let root = &self.services.workspace.root;
        let paths: Vec<PathBuf> = changed.iter().map(|p| root.join(p)).collect();
        if !paths.is_empty() {
            writes.wrote(&self.identity.id, &paths);
        }
        if let Some((before, room)) = open.before.take() {
            self.keep_after(ProgramWork { call: open.tool.id.clone(), before, room });
        }
    }

    /// The state after work of a program: with the one before it, it is a step.
    pub(super) fn keep_after(&mut self, work: ProgramWork) {
        let Some(keeper) = self.services.files.clone() else { return };
        let ProgramWork { call, before, room } = work;
        crate::files::record::record(self, StepOf::Call(call), async move {
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
        let (agent, writes) = (self.identity.id.clone(), self.watching.writes.clone());
        let Some(o) = self.outside().filter(|o| o.covers != works) else { return };
        o.covers = works;
        writes.command(&agent, &o.adapter.title, works);
        if !works {
            self.keep_work();
        } else if o.work.is_none()
            && let Some(keeps) = self.keeps()
            && let Some(o) = self.outside()
        {
            o.work = Some(keeps.begun());
        }
    }

    /// The work of a program without calls is over.
    pub(super) fn keep_work(&mut self) {
        if let Some(work) = self.outside().and_then(|o| o.work.take()) {
            self.keep_after(work);
        }
    }

    /// What keeps the files before a program starts, when no call of it will do that.
    pub(super) fn keeps_first(&mut self) -> Option<Keeps> {
        let o = self.outside()?;
        if !starts_mute(&o.adapter, o.transport) {
            return None;
        }
        self.keeps()
    }

    fn keeps(&mut self) -> Option<Keeps> {
        let (keeper, watched) = (self.services.files.clone()?, crate::files::record::watched(self));
        let call = format!("work-{}", self.turn.live.as_ref().map_or(0, |l| l.no));
        let room = Arc::clone(&self.outside()?.room).try_acquire_owned().ok()?;
        Some(Keeps { keeper, watched, call, room })
    }

    /// The end waits a moment for what the last call did to the files: it comes again then.
    pub(super) fn hold_end(&mut self, turn: u64, said: AgentEvent) -> Option<AgentEvent> {
        let again = self.outside().is_none_or(|o| std::mem::replace(&mut o.held, true));
        let Some(last) = (!again).then(|| self.files.recorded.take()).flatten() else { return Some(said) };
        // Whatever is recorded next comes after it, as it would have.
        let (done, next) = tokio::sync::oneshot::channel::<()>();
        self.files.recorded = Some(next);
        let tx = self.tx.clone();
        self.spawn(async move {
            let _done = done;
            let _ = tokio::time::timeout(LAST, last).await;
            let _ = tx.send(Msg::External(ExternalMsg::Said { turn, said: Box::new(said) })).await;
        });
        None
    }
}
