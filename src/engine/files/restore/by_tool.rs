//! Naming a state and restoring it by a tool, in the middle of a turn. The tool asks the user; this carries it out.

use std::path::PathBuf;

use crate::files::record;
use crate::files::written;
use crate::session::change;
use tiller_protocol::event::StateEvent;
use tiller_protocol::{
    CommandId, EntryBody, EntryId, EventBody, Notice, NoticeKind, Op, OpId, RestorePreview, SessionId,
};
use tiller_snapshot::Plan;
use tiller_store::{StepOf, Store};

use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::{After, Then};
use crate::files::msg::{FilesMsg, FilesRequest, NamedState, ReplySender, ToolRestore};
use crate::files::msg::{KeptState, RestoreOutcome};
use crate::files::restore::back::{self, RestoreChoices};
use crate::files::restore::{go, goal, off_thread};
use crate::turn::Input;

const OFF: &str = "no snapshots are taken in this folder: snapshots.enabled is false in config.toml";

pub(crate) fn files_asked(core: &mut Core, asked: FilesRequest) {
    match asked {
        FilesRequest::Name { name, call, reply } => {
            let _ = reply.send(name_moment(core, &name, call));
        }
        FilesRequest::Preview { name, reply } => preview_for_tool(core, name, reply),
        FilesRequest::Restore { entry, call, reply } => restore_for_tool(core, entry, call, reply),
        FilesRequest::RestoreEnded { back, result, reply } => {
            let _ = reply.send(restore_ended_for_tool(core, back, *result));
        }
    }
}

fn name_moment(core: &mut Core, name: &str, call: String) -> Result<String, String> {
    let keeper = core.services.snapshots.workspace.clone().ok_or(OFF)?;
    let name = core.redact(name);
    let watched = record::watched(core);
    // The state is kept now, not when the entry is added: later calls of the same reply are not part of it.
    let kept = keeper.submit(move |s| {
        let after = s.snapshot()?;
        let others = watched.others(s, &after, StepOf::OthersBeforeCall(call));
        Ok(KeptState {
            others,
            before: None,
            began: None,
            after,
            files: Vec::new(),
            unkept: Vec::new(),
            open: None,
        })
    });
    // Its row must precede later ones, so the entry's id is made now.
    let entry = EntryId::fresh(&*core.services.ids, core.services.clock.now());
    record::record(core, StepOf::Point(entry), async { kept.await.ok() });
    core.files.named.push(NamedState { name: name.clone(), entry });
    core.prompts.pending.push(EntryBody::Checkpoint { name: name.clone() });
    let mut append = core.append();
    append.pending = Some(core.prompts.pending.clone());
    core.save(append, Vec::new(), Then::Nothing);
    if core.turn.live.is_some() {
        core.feed(Input::Steer(true));
    }
    Ok(format!("This state is now the checkpoint \"{name}\"."))
}

fn preview_for_tool(core: &mut Core, name: String, reply: ReplySender<(EntryId, RestorePreview)>) {
    let name = core.redact(&name);
    let (keeper, store, session) =
        (core.services.snapshots.workspace.clone(), core.services.store.clone(), core.session.id);
    let written = written::written(core);
    let denied = DeniedFiles::new(core);
    core.spawn(async move {
        written.await;
        let made = async {
            let keeper = keeper.ok_or(OFF)?;
            let found = off_thread(move || {
                let entry = find(&store, session, &name)?;
                Ok((entry, goal(&store, session, entry)?))
            });
            let (entry, (goal, title, time)) = found.await.map_err(|n| n.message)?;
            let made = keeper.run(move |s| {
                let plan = s.plan(&goal)?;
                Ok(denied.check(&plan).map(|()| back::preview(s, &plan, title, time, back::LISTED)))
            });
            Ok((entry, made.await.map_err(|e| e.notice().message)??))
        };
        let _ = reply.send(made.await);
    });
}

fn restore_for_tool(core: &mut Core, entry: EntryId, call: String, reply: ReplySender<String>) {
    let (keeper, store, session) =
        (core.services.snapshots.workspace.clone(), core.services.store.clone(), core.session.id);
    let (tx, watched) = (core.tx.clone(), record::watched(core));
    let op = OpId::fresh(&*core.services.ids, core.services.clock.now());
    let denied = DeniedFiles::new(core);
    super::after_writes(core, async move {
        let mut back = ToolRestore { entry, call, op, title: String::new() };
        let work = async {
            let keeper = keeper.ok_or(OFF)?;
            let (goal, name, _) =
                off_thread(move || goal(&store, session, entry)).await.map_err(|n| n.message)?;
            back.title = format!("restore files: {name}");
            // The files may have changed since the question.
            let planned = goal.clone();
            let checked = keeper.run(move |s| Ok(denied.check(&s.plan(&planned)?)));
            checked.await.map_err(|e| e.notice().message)??;
            go(&keeper, goal, RestoreChoices::default(), watched, op).await.map_err(|n| n.message)
        };
        let result = Box::new(work.await);
        let _ = tx
            .send(Msg::Files(FilesMsg::FilesRequest(FilesRequest::RestoreEnded { back, result, reply })))
            .await;
    });
}

fn restore_ended_for_tool(
    core: &mut Core,
    way: ToolRestore,
    gone: Result<RestoreOutcome, String>,
) -> Result<String, String> {
    let RestoreOutcome { done, files, others, .. } = gone?;
    let said = back::sentence(&done, &files);
    let scope = core.scope();
    // Recorded for the call as well, so that the call's own view lists its changes.
    let whose = StepOf::Call(way.call);
    let (change, row) = back::traces(done.step(), files, done.after.time, None, whose);
    let logged = change::op(core, core.session.id, CommandId(0), &way.title, change);
    let op = Op { id: way.op, cause: scope.cause, ..logged };
    let own = (done.before.id != done.after.id).then_some(row);
    let changed = own.is_some();
    for row in others.into_iter().chain(own) {
        let step = core.services.store.steps().add(core.session.id, row);
        core.saves.push(step, After { events: Vec::new(), then: Then::Nothing });
    }
    if changed {
        let mut append = core.append();
        append.op = Some(op);
        let events = vec![(scope, EventBody::State(StateEvent::Restored { entry: way.entry }))];
        core.save(append, events, Then::Nothing);
    }
    Ok(said)
}

/// The files that rules keep an agent from writing.
struct DeniedFiles {
    root: PathBuf,
    rules: tiller_tool::Unreadable,
}

impl DeniedFiles {
    fn new(core: &Core) -> Self {
        let root = core.services.workspace.root.clone();
        Self { root, rules: core.services.permit.unwritable(&core.identity.id) }
    }

    /// # Errors
    /// When the plan changes one of them; for the model.
    fn check(&self, plan: &Plan) -> Result<(), String> {
        for item in &plan.items {
            if let Some(why) = (self.rules)(&self.root.join(&item.diff.path)) {
                let path = back::shown(&item.diff.path);
                return Err(format!(
                    "nothing was restored: an agent may not change {path} ({why}); the user can restore it in the tree"
                ));
            }
        }
        Ok(())
    }
}

/// The last entry with this name.
fn find(store: &Store, session: SessionId, name: &str) -> Result<EntryId, Notice> {
    let mut names = Vec::new();
    for row in store.steps().list(session, 0).map_err(|e| e.notice())?.iter().rev() {
        // A damaged or deleted entry cannot be restored.
        if let StepOf::Point(id) = row.of
            && let Ok(entry) = store.entries().get(id)
            && let EntryBody::Checkpoint { name: this } = entry.body
        {
            if this == name {
                return Ok(id);
            }
            if !names.contains(&this) && names.len() < 10 {
                names.push(this);
            }
        }
    }
    let there = if names.is_empty() {
        "there is no checkpoint yet".to_owned()
    } else {
        format!("available: {}", names.join(", "))
    };
    let text = format!("there is no checkpoint \"{name}\"; {there}");
    Err(Notice::new(NoticeKind::User, text))
}
