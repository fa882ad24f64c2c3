//! States of the files before and after calls of an external program, stored as for Tiller's own calls; other agents see
//! that it is at work. The same of memory files, where nothing confines the program: what it writes there is not the user's.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tiller_protocol::event::StateEvent;
use tiller_protocol::{EventBody, ToolVerb};

use tiller_external::{Adapter, AgentEvent, Transport};
use tiller_store::StepOf;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::core::msg::Msg;
use crate::crew::driver::ExternalDriver;
use crate::crew::external::msg::ExternalMsg;
use crate::crew::external::{OpenCall, ProgramWork};
use crate::files::msg::CallScope;
use crate::files::{Keeper, NotKept, SessionFiles, record};
use crate::memory::unconfined::{UnconfinedProgram, UnconfinedStart};
use crate::memory::unconfined_programs::of_turn;

/// Longest delay of the end of a program's turn for the state after its last call. The report of the end waits longer.
const LAST: Duration = Duration::from_secs(1);

/// Wait before the state after a call: some programs clean up after they have reported its end.
const SETTLES: Duration = Duration::from_millis(150);

/// What is needed to store a state before work.
pub(crate) struct Keeps {
    keeper: Keeper,
    watched: SessionFiles,
    call: String,
    room: OwnedSemaphorePermit,
}

impl Keeps {
    /// Stores the state without waiting: the program already works.
    fn begun(self) -> ProgramWork {
        let before = record::begin(&self.keeper, CallScope::All, self.watched, self.call.clone());
        ProgramWork { call: self.call, before, room: self.room }
    }

    /// Stores the state and waits for it: the program must not change anything before.
    pub(crate) async fn kept(self) -> ProgramWork {
        let ProgramWork { call, before, room } = self.begun();
        let (kept, before_kept) = oneshot::channel();
        if let Ok(state) = before.await {
            // Its receiver is here.
            let _ = kept.send(state);
        }
        ProgramWork { call, before: before_kept, room }
    }
}

/// Whether a call of this kind may change files.
fn may_change(verb: &ToolVerb) -> bool {
    !matches!(verb, ToolVerb::Read | ToolVerb::Search | ToolVerb::Fetch | ToolVerb::Think)
}

/// Whether a program with this transport, or the first that it supports, reports no calls.
fn starts_mute(adapter: &Adapter, how: Option<Transport>) -> bool {
    let how = how.unwrap_or(match (&adapter.acp, &adapter.headless) {
        (Some(_), _) => Transport::Acp,
        (None, Some(_)) => Transport::Headless,
        (None, None) => Transport::Pty,
    });
    how == Transport::Pty || adapter.is_mute(how)
}

impl ExternalDriver<'_> {
    /// A call begins.
    pub(crate) fn call_started(&mut self, id: &str) {
        let (keeper, watched) =
            (self.core.services.snapshots.workspace.clone(), crate::files::record::watched(self.core));
        let (agent, writes) = (self.core.identity.id.clone(), self.core.watching.writes.clone());
        let Some(o) = self.core.identity.external_mut() else { return };
        let room = Arc::clone(&o.calls.permits).try_acquire_owned().ok();
        let unkept = Arc::clone(&o.calls.state_not_stored);
        let Some(open) = o.calls.open.get_mut(id).filter(|o| may_change(&o.tool.verb)) else { return };
        let what = if open.tool.target.is_empty() { &open.tool.name } else { &open.tool.target }.clone();
        writes.command(&agent, &what, None, true);
        open.watched = Some(what);
        let Some(keeper) = keeper else { return };
        let Some(room) = room else {
            return crate::files::record::not_kept(self.core, &NotKept(keeper.behind()));
        };
        let beginning = record::begin(&keeper, CallScope::All, watched, id.to_owned());
        let (tell, before) = oneshot::channel();
        open.before = Some((before, room));
        self.core.files.keeping.spawn(async move {
            let before = beginning.await.unwrap_or_else(|_| Err(keeper.gone()));
            unkept.store(before.is_err(), Ordering::Relaxed);
            // The call may have ended.
            drop(tell.send(before));
        });
    }

    /// A state could not be stored: changes of the program cannot be undone until one is stored again.
    pub(crate) fn state_not_stored(&mut self) {
        if let Some(o) = self.core.identity.external_mut() {
            o.calls.state_not_stored.store(true, Ordering::Relaxed);
        }
    }

    /// A call has ended. `changed`: the files that it reports as changed.
    pub(crate) fn call_ended(&mut self, open: &mut OpenCall, changed: &[String]) {
        let writes = &self.core.watching.writes;
        if let Some(what) = open.watched.take() {
            writes.command(&self.core.identity.id, &what, None, false);
        }
        let root = &self.core.services.workspace.root;
        let paths: Vec<PathBuf> = changed.iter().map(|p| root.join(p)).collect();
        if !paths.is_empty() {
            writes.wrote(&self.core.identity.id, &paths);
        }
        if let Some((before, room)) = open.before.take() {
            self.store_state_after(ProgramWork { call: open.tool.id.clone(), before, room });
        }
    }

    /// Stores the state after work of a program; with the one before, it is an undo step.
    pub(crate) fn store_state_after(&mut self, work: ProgramWork) {
        let Some(keeper) = self.core.services.snapshots.workspace.clone() else { return };
        let ProgramWork { call, before, room } = work;
        crate::files::record::record(self.core, StepOf::Call(call), async move {
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

    /// A program without reported calls begins or stops to work.
    pub(crate) fn set_working(&mut self, works: bool) {
        let (agent, writes) = (self.core.identity.id.clone(), self.core.watching.writes.clone());
        let Some(o) = self.core.identity.external_mut().filter(|o| o.marked_working != works) else { return };
        o.marked_working = works;
        writes.command(&agent, &o.adapter.title, None, works);
        if !works {
            self.end_work();
        } else if o.before.files.is_none()
            && let Some(keeps) = self.state_before_work()
            && let Some(o) = self.core.identity.external_mut()
        {
            o.before.files = Some(keeps.begun());
        }
    }

    /// Ends the work of a program without reported calls.
    pub(crate) fn end_work(&mut self) {
        if let Some(work) = self.core.identity.external_mut().and_then(|o| o.before.files.take()) {
            self.store_state_after(work);
        }
    }

    /// What is noted before the program starts; `None`: it is confined, or there is no memory.
    pub(crate) fn unconfined_start(&self) -> Option<UnconfinedStart> {
        let services = &self.core.services;
        let confined = services.crew.programs.as_ref().is_none_or(|programs| programs.host.confines());
        let memory = services.user.exposed().memory.filter(|_| !confined)?;
        let turn = self.core.turn.live.as_ref()?.no;
        let call = format!("program {} {turn}", self.core.identity.id);
        Some(UnconfinedStart {
            memory,
            config: services.places.config.clone(),
            call,
            from: of_turn(self.core),
        })
    }

    /// The program has ended: memory is compared with its state before.
    pub(crate) fn unconfined_ended(&mut self) {
        let program = self.core.identity.external_mut().and_then(|o| o.before.memory.take());
        if let Some(program) = program {
            self.show_memory_changes(program);
        }
    }

    /// Shows the user notices about what the program may have written into memory or removed from it.
    pub(crate) fn show_memory_changes(&mut self, program: UnconfinedProgram) {
        let core = &mut *self.core;
        let (session, bus, scope) = (core.session.id, Arc::clone(&core.bus), core.scope());
        core.spawn(async move {
            for notice in program.changes(session).await {
                bus.publish(&scope, EventBody::State(StateEvent::Notice { notice }));
            }
        });
    }

    /// For a program without reported calls: what is needed to store the state before it starts.
    pub(crate) fn state_before_start(&mut self) -> Option<Keeps> {
        let o = self.core.identity.external_mut()?;
        if !starts_mute(&o.adapter, o.transport) {
            return None;
        }
        self.state_before_work()
    }

    pub(crate) fn state_before_work(&mut self) -> Option<Keeps> {
        let (keeper, watched) =
            (self.core.services.snapshots.workspace.clone()?, crate::files::record::watched(self.core));
        let call = format!("work-{}", self.core.turn.live.as_ref().map_or(0, |l| l.no));
        let room = Arc::clone(&self.core.identity.external_mut()?.calls.permits).try_acquire_owned().ok()?;
        Some(Keeps { keeper, watched, call, room })
    }

    /// Delays the end of a program until the state after its last call is stored; the message is sent again then.
    pub(crate) fn delay_end(&mut self, turn: u64, said: AgentEvent) -> Option<AgentEvent> {
        let again =
            self.core.identity.external_mut().is_none_or(|o| std::mem::replace(&mut o.end_delayed, true));
        let Some(last) = (!again).then(|| self.core.files.recorded.clone()).flatten() else {
            return Some(said);
        };
        let tx = self.core.tx.clone();
        self.core.spawn(async move {
            let _ = tokio::time::timeout(LAST, last.wait()).await;
            let _ = tx.send(Msg::External(ExternalMsg::Said { turn, said: Box::new(said) })).await;
        });
        None
    }
}
