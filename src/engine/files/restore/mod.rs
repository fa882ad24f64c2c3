//! Commands about states of files: preview, restore, undo, checkpoint.

pub mod back;
pub(crate) mod by_tool;
pub(crate) mod hunks;
pub(crate) mod replies;
pub(crate) mod undo;

use crate::core::follow_up::FollowUp;
use crate::files::record;
use crate::files::written;
use crate::memory::branches::would_move;
use crate::session::branch::fork;
use crate::session::change;
use crate::undo::undoing;
use crate::undo::{Inverse, OpTitle};
use std::sync::Arc;

use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::op::OpChange;
use tiller_protocol::restore::{RestorePreview, RestoreWhat, StepFile};
use tiller_protocol::{CommandId, EntryBody, EntryId, EventBody, Notice, NoticeKind, OpId, SessionId};
use tiller_snapshot::{Goal, SnapshotError};
use tiller_store::{StepOf, Store};

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::Then;
use crate::files::keeper::Keeper;
use crate::files::msg::{FilesMsg, RestoreKind, RestoreOutcome, RestoreReport};
use crate::files::others::SessionFiles;
use crate::files::restore::back::RestoreChoices;
use crate::prompts::doing::JobKind;
use crate::session::load::blocking;

/// Most files that the model is shown by name.
const TOLD: usize = 20;

pub(crate) fn off() -> Notice {
    Notice::new(NoticeKind::User, "no snapshots are kept for this folder")
        .hint("Set snapshots.enabled to true in config.toml and restart.")
}

pub(crate) fn unknown() -> Notice {
    Notice::new(NoticeKind::User, "there is no snapshot of the files at that point")
        .hint("Choose a later message, or restore the conversation only.")
}

/// The first line of an entry's text.
fn title(store: &Store, entry: EntryId) -> tiller_store::Result<String> {
    let node = store.entries().get(entry)?;
    let name = match &node.body {
        EntryBody::Checkpoint { name } => name.clone(),
        body => body.search_text(),
    };
    Ok(name.lines().find(|l| !l.trim().is_empty()).unwrap_or_default().trim().to_owned())
}

/// The state to restore, with a title for the log.
pub(crate) fn goal(
    store: &Store,
    session: SessionId,
    entry: EntryId,
) -> Result<(Goal, String, tiller_protocol::Time), Notice> {
    let node = store.entries().get(entry).map_err(|e| e.notice())?;
    if node.session != session {
        return Err(Notice::new(NoticeKind::User, "this entry belongs to another session")
            .hint("Open that session first."));
    }
    let point = back::point(store, session, entry).map_err(|e| e.notice())?.ok_or_else(unknown)?;
    let title = title(store, entry).map_err(|e| e.notice())?;
    let time = point.time;
    Ok((point.goal(), title, time))
}

pub(crate) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Notice> + Send + 'static,
) -> Result<T, Notice> {
    let failed = |_| Err(Notice::new(NoticeKind::Internal, "the sessions could not be read"));
    tokio::task::spawn_blocking(work).await.unwrap_or_else(failed)
}

pub(crate) async fn go(
    keeper: &Keeper,
    goal: Goal,
    wishes: RestoreChoices,
    watched: SessionFiles,
    op: OpId,
) -> Result<RestoreOutcome, Notice> {
    attempt(keeper, goal, wishes, watched, op).await.map_err(|e| e.notice())
}

pub(crate) async fn attempt(
    keeper: &Keeper,
    goal: Goal,
    wishes: RestoreChoices,
    watched: SessionFiles,
    op: OpId,
) -> Result<RestoreOutcome, SnapshotError> {
    keeper
        .run(move |s| {
            let (done, files) = back::go(s, &goal, &wishes)?;
            let others = watched.others(s, &done.before, StepOf::OthersBeforeRestore(op));
            watched.own(&done.after);
            Ok(RestoreOutcome { done, files, others, way: RestoreKind::Back })
        })
        .await
}

pub(crate) fn cannot_restore(core: &Core) -> Option<Notice> {
    let why = if core.session.read_only {
        "this session is open read-only"
    } else if core.occupied() {
        "a turn is running: stop it first"
    } else {
        return None;
    };
    Some(Notice::new(NoticeKind::User, why))
}

pub(crate) fn restore_preview(core: &mut Core, client: ClientId, cause: CommandId, entry: EntryId) {
    let (bus, scope, store, session) =
        (Arc::clone(&core.bus), core.scope_of(Some(cause)), core.services.store.clone(), core.session.id);
    let (keeper, written) = (core.services.snapshots.workspace.clone(), written::written(core));
    let head = core.session.head.name.clone();
    let owns = core.identity.owns_session();
    let memory = core.services.user.memory.clone().filter(|_| owns);
    let learnings = core.services.user.learnings.clone().filter(|_| owns);
    core.spawn(async move {
        written.await;
        let path = store.clone();
        let counted = blocking(move || path.paths().prompts_from(session, &head, entry)).await;
        let messages = counted.unwrap_or_default();
        let made = async {
            let title_of = store.clone();
            let found = off_thread(move || goal(&store, session, entry)).await;
            let (goal, title, time) = match (found, &keeper) {
                (Ok(found), Some(_)) => found,
                // The conversation can be restored without the files.
                (Err(why), _) => {
                    let title = blocking(move || title(&title_of, entry)).await.unwrap_or_default();
                    let notes = vec![why.message];
                    return Ok(RestorePreview { title, notes, ..RestorePreview::default() });
                }
                (Ok((_, title, _)), None) => {
                    let notes = vec![off().message];
                    return Ok(RestorePreview { title, notes, ..RestorePreview::default() });
                }
            };
            let Some(keeper) = keeper else { return Err(off()) };
            let made = keeper.run(move |s| {
                let plan = s.plan(&goal)?;
                Ok(back::preview(s, &plan, title, time, back::LISTED))
            });
            made.await.map_err(|e| e.notice())
        };
        let reply = match made.await {
            Ok(mut preview) => {
                preview.messages = messages;
                let moves = off_thread(move || {
                    Ok(would_move(memory.as_deref(), learnings.as_deref(), session, entry))
                });
                let moves = moves.await;
                preview.notes.extend(moves.unwrap_or_default());
                ReplyEvent::RestorePreviewReply { entry, preview }
            }
            Err(notice) => ReplyEvent::ErrorReply { notice },
        };
        bus.reply(client, &scope, reply);
    });
}

pub(crate) fn restore(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    entry: EntryId,
    what: RestoreWhat,
    wishes: RestoreChoices,
) {
    if let Some(why) = cannot_restore(core) {
        return core.refuse(client, cause, why);
    }
    if !what.files() {
        return fork::fork(core, client, cause, entry, None);
    }
    let Some(keeper) = core.services.snapshots.workspace.clone() else {
        return core.refuse(client, cause, off());
    };
    let (no, store, session) = (core.next_job(), core.services.store.clone(), core.session.id);
    let (tx, watched) = (core.tx.clone(), record::watched(core));
    let op = OpId::fresh(&*core.services.ids, core.services.clock.now());
    let done = async move {
        let mut title = OpTitle::default();
        let result = async {
            let (goal, name, _) = off_thread(move || goal(&store, session, entry)).await?;
            title = format!("restore files: {name}").into();
            go(&keeper, goal, wishes, watched, op).await
        };
        let result = result.await;
        let talk = what.talk().then_some(entry);
        let restored = RestoreReport {
            no,
            client,
            cause,
            session,
            op,
            title,
            of: None,
            talk,
            entry: Some(entry),
            rest: None,
            closes: None,
            result,
        };
        let _ = tx.send(Msg::Files(FilesMsg::RestoreReport(Box::new(restored)))).await;
    };
    restoring(core, no, client, cause, done);
}

/// Restores only these files to their state at `entry`, as operation `op`.
pub(crate) fn restore_only(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    entry: EntryId,
    paths: Vec<String>,
    op: OpId,
) {
    if let Some(why) = cannot_restore(core) {
        return core.refuse(client, cause, why);
    }
    let Some(keeper) = core.services.snapshots.workspace.clone() else {
        return core.refuse(client, cause, off());
    };
    let (store, session, watched) = (core.services.store.clone(), core.session.id, record::watched(core));
    let work = async move {
        let (mut goal, name, _) = off_thread(move || goal(&store, session, entry)).await?;
        goal.select = Some(paths.iter().map(|p| tiller_protocol::names::path(p)).collect());
        let gone = go(&keeper, goal, RestoreChoices::default(), watched, op).await?;
        Ok((RestoreOutcome { way: RestoreKind::Rejected, ..gone }, format!("reject files of: {name}")))
    };
    change_files(core, client, cause, work, op);
}

/// Changes files by `work`, which returns the title for the log as well.
pub(crate) fn change_files(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    work: impl Future<Output = Result<(RestoreOutcome, String), Notice>> + Send + 'static,
    op: OpId,
) {
    let (no, session) = (core.next_job(), core.session.id);
    let tx = core.tx.clone();
    let done = async move {
        let (result, title) = match work.await {
            Ok((gone, title)) => (Ok(gone), title.into()),
            Err(notice) => (Err(notice), OpTitle::default()),
        };
        let (of, talk, entry, rest, closes) = (None, None, None, None, None);
        let restored =
            RestoreReport { no, client, cause, session, op, title, of, talk, entry, rest, closes, result };
        let _ = tx.send(Msg::Files(FilesMsg::RestoreReport(Box::new(restored)))).await;
    };
    restoring(core, no, client, cause, done);
}

/// Restores files by `work` once all states and the log are on disk. At the end of the engine one that has begun is waited for,
/// since its row in the log makes it undoable; another one does not begin any more.
pub(super) fn after_writes(core: &Core, work: impl Future<Output = ()> + Send + 'static) {
    let (written, quitting) = (written::written(core), core.files.quitting.clone());
    core.files.restores.spawn(async move {
        tokio::select! {
            biased;
            () = quitting.cancelled() => {}
            () = written => work.await,
        }
    });
}

/// Starts a restore as a job, so that no turn begins meanwhile. Its result is recorded even after the user stopped
/// waiting for it.
pub(crate) fn restoring(
    core: &mut Core,
    no: u64,
    client: ClientId,
    cause: CommandId,
    work: impl Future<Output = ()> + Send + 'static,
) {
    after_writes(core, work);
    let wait = tokio::spawn(std::future::pending());
    core.busy_with(no, JobKind::Other { client, cause }, wait);
}

pub(crate) fn files_restored(core: &mut Core, report: RestoreReport) {
    record::files_words(core);
    let waited = core.job_done(report.no);
    let RestoreOutcome { done, files, others, way } = match report.result {
        Ok(gone) => gone,
        Err(notice) => {
            if let Some(change) = report.closes {
                close_op(core, report.session, report.cause, report.op, &report.title, report.of, change);
                let on = "The next undo continues with the step before it.";
                core.refuse(report.client, report.cause, notice.hint(on));
            } else {
                core.refuse(report.client, report.cause, notice);
            }
            return core.follow_up(FollowUp::SendBehindJob);
        }
    };
    let scope = core.scope_of(Some(report.cause));
    let said = match (report.of, &way) {
        (None, _) => back::sentence(&done, &files),
        (Some(_), RestoreKind::Turn(_)) => back::turn_undone(&report.title, &done, &files),
        (Some(_), _) => back::undone(&report.title, &done, &files),
    };
    let turn = if let RestoreKind::Turn(turn) = &way { Some(turn.clone()) } else { None };
    let (client, cause) = (report.client, report.cause);
    let tell = |way: RestoreKind| {
        let reply = match way {
            RestoreKind::Took(took) => replies::reply(&done, took),
            RestoreKind::Back | RestoreKind::Turn(_) => ReplyEvent::DoneReply { said },
            RestoreKind::Rejected => replies::whole_reply(&done),
        };
        Then::Reply { client, cause, reply: Box::new(reply) }
    };
    let mut with = None;
    let nothing = || crate::core::saves::After { events: Vec::new(), then: Then::Nothing };
    if let Some(row) = others {
        let step = core.services.store.steps().add(report.session, row);
        core.saves.push(step, nothing());
    }
    if done.before.id != done.after.id {
        let whose = StepOf::Restore(report.op);
        let (mut change, row) = back::traces(done.step(), files.clone(), done.after.time, report.of, whose);
        if let OpChange::Files { turn: of, .. } = &mut change {
            *of = turn;
        }
        let op = tiller_protocol::Op {
            id: report.op,
            ..change::op(core, report.session, report.cause, &report.title.to_string(), change)
        };
        with = Some(op.id);
        let step = core.services.store.steps().add(report.session, row);
        core.saves.push(step, nothing());
        // Another session may be open by now, if the user stopped waiting.
        if report.session != core.session.id {
            core.saves.push(core.services.store.sessions().log(op), nothing());
            return;
        }
        let mut append = core.append();
        append.op = Some(op);
        let event = |entry| (scope.clone(), EventBody::State(StateEvent::Restored { entry }));
        let events = report.entry.or(core.session.head.id).map(event).into_iter().collect();
        let redo = report.title.inverse == Some(Inverse::Redo);
        tell_of_files(core, &files, report.talk.is_some(), redo, &way);
        // The reply is sent once the operation is in the log, so that it can be undone at once.
        core.save(append, events, tell(way));
    } else {
        if let Some(root) = report.of {
            // Marks it as handled: the next undo continues with the operation before it.
            let nothing = back::nothing(done.after.id.to_string(), root, turn);
            close_op(core, report.session, report.cause, report.op, &report.title, report.of, nothing);
        }
        core.saves.push_after(crate::core::saves::After { events: Vec::new(), then: tell(way) });
    }
    if let Some(entry) = report.talk.filter(|_| waited) {
        fork::fork(core, report.client, report.cause, entry, with);
    } else if let Some(rest) = report.rest.filter(|_| waited) {
        undoing::undo_rest(core, report.client, report.cause, rest);
    } else if waited {
        core.follow_up(FollowUp::NextQueued(tiller_protocol::event::TurnStatus::Interrupted));
    }
}

/// A row for an undo that changed nothing.
fn close_op(
    core: &mut Core,
    session: SessionId,
    cause: CommandId,
    id: OpId,
    title: &OpTitle,
    of: Option<OpId>,
    change: OpChange,
) {
    if session != core.session.id {
        return;
    }
    let op = tiller_protocol::Op { id, of, ..change::op(core, session, cause, &title.to_string(), change) };
    let mut append = core.append();
    append.op = Some(op);
    core.save(append, Vec::new(), Then::Nothing);
}

/// Reports the restored files to the model, which knows their earlier content.
fn tell_of_files(core: &mut Core, files: &[StepFile], back: bool, redo: bool, way: &RestoreKind) {
    if back || files.is_empty() {
        return;
    }
    let names: Vec<&str> = files.iter().take(TOLD).map(|f| f.path.as_str()).collect();
    let more = if files.len() > TOLD { ", ..." } else { "" };
    let did = match way {
        RestoreKind::Took(took) => format!("took the version on the branch {} of", took.from),
        RestoreKind::Back => "restored earlier states of".to_owned(),
        RestoreKind::Turn(_) if redo => "made your changes again to".to_owned(),
        RestoreKind::Turn(_) => "took back your changes to".to_owned(),
        RestoreKind::Rejected => "reverted your change to".to_owned(),
    };
    core.context.news.add(format!("the user {did} these files: {}{more}", names.join(", ")));
}

/// Adds a checkpoint with this name.
pub(crate) fn checkpoint(core: &mut Core, client: ClientId, cause: CommandId, name: &str) {
    let name = core.redact(name.trim());
    let why = if name.is_empty() {
        Some(Notice::new(NoticeKind::User, "a checkpoint needs a name"))
    } else {
        cannot_restore(core)
    };
    if let Some(why) = why {
        return core.refuse(client, cause, why);
    }
    let entry = core.session.grow(&core.services, EntryBody::Checkpoint { name: name.clone() });
    let scope = core.scope_of(Some(cause));
    let id = entry.id;
    let events = vec![
        (scope.clone(), Core::entry_event(&entry)),
        (scope.clone(), EventBody::State(StateEvent::CheckpointCreated { entry: id, name: name.clone() })),
    ];
    let append = core.append().entries(vec![entry]);
    core.save(append, events, Then::Nothing);
    record::keep_points(core, vec![id]);
    core.bus.reply(client, &scope, ReplyEvent::DoneReply { said: format!("Checkpoint \"{name}\" created.") });
}
