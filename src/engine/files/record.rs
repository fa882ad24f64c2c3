//! Records points and steps of the session as the keeper's thread delivers them. They arrive after their entry or
//! call, so nothing waits for them.

use crate::session::change;
use std::path::PathBuf;
use std::time::Duration;

use tiller_protocol::{Entry, EntryBody, EntryId, Notice, NoticeKind, OpId, Origin, SessionId};
use tiller_snapshot::{CallNote, Id, OpenCall, Snapshot, SnapshotError, UnkeptChange};
use tiller_store::{StepOf, StepRow, Store};
use tiller_tool::shell::Witness;
use tokio::sync::mpsc;

use super::keeper::{CompletedRestore, Keeper, SnapshotNotice};
use super::others::SessionFiles;
use super::outside;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::{After, Then};
use crate::files::msg::{CallScope, FilesMsg, KeptState, NotKept, PendingState, PendingStep, StateBefore};
use crate::files::outside::OldFile;
use crate::files::restore::back;
use crate::files::witnessed::{self, Doubts};
use crate::files::written::Recorded;
use crate::lock::lock;

/// Age at which snapshots that no session uses are deleted.
const UNNEEDED: Duration = Duration::from_secs(7 * 24 * 3600);
/// Time limit for recording the last states.
const LAST: Duration = Duration::from_secs(1);

fn look(shadow: &mut tiller_snapshot::Shadow, what: &CallScope) -> Result<Snapshot, SnapshotError> {
    match what {
        CallScope::Paths(paths) => shadow.snapshot_touched(paths),
        CallScope::All => shadow.snapshot(),
    }
}

/// Keeps the state before a call. The caller waits, since the call must not change anything before.
///
/// # Errors
/// When it could not be kept; the call's changes cannot be undone then.
pub(crate) async fn before(
    keeper: &Keeper,
    what: CallScope,
    watched: SessionFiles,
    call: String,
) -> Result<StateBefore, SnapshotError> {
    kept_before(keeper, begin(keeper, what, watched, call)).await
}

/// Like [`before`], for an external agent's call, which does not wait for it.
pub(crate) fn begin(keeper: &Keeper, what: CallScope, watched: SessionFiles, call: String) -> PendingState {
    let store = keeper.store().to_owned();
    keeper.submit(move |s| {
        let before = look(s, &what)?;
        let paths = if let CallScope::Paths(paths) = &what { Some(paths.clone()) } else { None };
        let bare = outside::uncovered(s, &before, paths.as_deref().unwrap_or_default())?;
        let outside = outside::keep(&store, bare, before.time)?;
        let session = watched.session.to_string();
        let note = CallNote { session, call: call.clone(), before: before.id, began: before.time, paths };
        let others = watched.others(s, &before, StepOf::OthersBeforeCall(call));
        let open = s.begin_call(&note).inspect_err(|error| {
            tracing::warn!(%error, "a call could not be recorded; after a kill its changes would have no author");
        });
        let (id, began, open, witness) = (before.id, before.time, open.ok(), None);
        Ok(StateBefore { id, began, others, what, watched, open, witness, outside })
    })
}

/// Copies files (absolute) that belong to none of the keeper's states: an agent with a folder of its own writes them.
///
/// # Errors
/// When they could not be copied.
pub(crate) async fn copy(keeper: &Keeper, paths: Vec<PathBuf>) -> Result<Vec<OldFile>, SnapshotError> {
    let (store, now) = (keeper.store().to_owned(), keeper.now());
    let files = paths.into_iter().filter(|p| p.is_file()).map(|p| (p, outside::Uncovered::Outside));
    keeper.run(move |_| outside::keep(&store, files.collect(), now)).await
}

/// Waits for the state that [`begin`] started to keep.
///
/// # Errors
/// As [`before`].
pub(crate) async fn kept_before(
    keeper: &Keeper,
    beginning: PendingState,
) -> Result<StateBefore, SnapshotError> {
    let kept = beginning.await.unwrap_or_else(|_| Err(keeper.gone()));
    kept.inspect_err(|error| tracing::warn!(%error, "no snapshot was taken before a call"))
}

/// Keeps the state after a call. The caller does not wait: requests are carried out in order.
pub(crate) fn after(keeper: &Keeper, before: StateBefore) -> PendingStep {
    let doings = keeper.doings();
    PendingStep(keeper.submit(move |s| {
        let seen = look(s, &before.what)?;
        let changed = if seen.id == before.id { Vec::new() } else { s.compare(before.id, seen.id)? };
        let unkept = match before.what {
            CallScope::All if seen.id != before.id => s.unkept(before.id, seen.id)?,
            CallScope::All | CallScope::Paths(_) => Vec::new(),
        };
        let mut doubts = Doubts::default();
        let (after, mut files) = match &before.what {
            CallScope::Paths(paths) => {
                let paths: Vec<PathBuf> = paths.iter().filter_map(|p| s.relative(p)).collect();
                let own: Vec<_> =
                    changed.into_iter().filter(|d| paths.iter().any(|p| d.path.starts_with(p))).collect();
                lock(&doings).wrote(before.watched.session, &own, seen.time);
                (seen, own)
            }
            // A file that another agent wrote meanwhile, and that is still as it left it, belongs to that agent.
            CallScope::All => {
                let mut doings = lock(&doings);
                let (session, began) = (before.watched.session, before.began);
                let own = changed.into_iter().filter(|d| !doings.others(session, d, began)).collect();
                let sorted = witnessed::sort(s, before.witness.as_ref(), own);
                let after = match sorted.others.is_empty() {
                    true => seen,
                    false => s.without(before.id, seen, &sorted.others)?,
                };
                // What others changed may be among the rest.
                if before.witness.as_ref().is_some_and(Witness::is_complete) {
                    doings.wrote(session, &sorted.own, after.time);
                }
                doubts = sorted.doubts;
                (after, sorted.own)
            }
        };
        before.watched.own(&after);
        doubts.put_first(&mut files);
        let mut files = back::named(&files);
        doubts.mark(&mut files);
        Ok(KeptState {
            others: before.others,
            before: Some(before.id),
            began: Some(before.began),
            after,
            files,
            unkept,
            open: before.open,
        })
    }))
}

/// Writes rows in the order of their states.
async fn put(
    store: &Store,
    session: SessionId,
    keeper: Option<&Keeper>,
    rows: Vec<StepRow>,
) -> Result<(), SnapshotError> {
    if rows.is_empty() {
        return Ok(());
    }
    // A row that survives a power failure must not name a state that does not.
    if let Some(keeper) = keeper
        && let Ok(new) = keeper.run(|s| Ok(s.unsettled())).await
        && let Ok(settled) = tokio::task::spawn_blocking(|| new.settle()).await
    {
        settled?;
    }
    for row in rows {
        if let Err(error) = store.steps().add(session, row).await {
            tracing::warn!(%error, "a step was not recorded");
        }
    }
    Ok(())
}

/// Entries that are checkpoints: messages of the user, tasks, and named states.
pub(crate) fn spoken(entries: &[Entry]) -> Vec<EntryId> {
    let spoke = |e: &&Entry| {
        matches!(
            &e.body,
            EntryBody::User { origin: Origin::Prompt | Origin::Steer | Origin::Task, .. }
                | EntryBody::Checkpoint { .. }
        )
    };
    entries.iter().filter(spoke).map(|e| e.id).collect()
}

/// Keeps the state of the files at a message of the user. Called while its entries are being written.
pub(crate) fn keep_points(core: &mut Core, entries: Vec<EntryId>) {
    let Some(keeper) = core.services.snapshots.workspace.clone() else { return };
    for entry in entries {
        if let Some(at) = core.files.named.iter().position(|n| n.entry == entry) {
            // The state was kept when the agent named it.
            core.files.named.remove(at);
            continue;
        }
        // Requested now, so that it precedes the turn's changes; carried out once the entries are on disk, so that the
        // two do not compete for it.
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let saved = core.saves.barrier();
        core.spawn(async move {
            saved.await;
            drop(open);
        });
        let watched = watched(core);
        let kept = keeper.submit(move |s| {
            // Closed, never sent to.
            let _ = gate.recv();
            let after = s.snapshot()?;
            let others = watched.others(s, &after, StepOf::OthersBefore(entry));
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
        record(core, StepOf::Point(entry), async { kept.await.ok() });
    }
}

/// A call has ended; its changes arrive later.
pub(crate) fn keep_step(core: &mut Core, call_id: &str, waiting: PendingStep) {
    record(core, StepOf::Call(call_id.to_owned()), waiting.kept());
}

/// The open session, for separating its own changes from others'.
pub(crate) fn watched(core: &Core) -> SessionFiles {
    SessionFiles {
        last: core.files.last_state.clone(),
        store: core.services.store.clone(),
        session: core.session.id,
        background: lock(&core.services.tools.state).shells.living(),
        words: core.services.snapshots.workspace.as_ref().map(Keeper::said).unwrap_or_default(),
    }
}

/// Records the row when it arrives, even while the engine ends: [`crate::core::quit`] waits for it. Rows are written
/// in the order of their requests: which changes came after a point depends on it.
pub(crate) fn record(
    core: &mut Core,
    of: StepOf,
    kept: impl Future<Output = Option<Result<KeptState, SnapshotError>>> + Send + 'static,
) {
    let (tx, session, store) = (core.tx.clone(), core.session.id, core.services.store.clone());
    let keeper = core.services.snapshots.workspace.clone();
    core.files.stepped |= matches!(of, StepOf::Call(_));
    let mut order = Recorded::next(&mut core.files.recorded);
    core.files.keeping.spawn(async move {
        let kept = kept.await;
        order.wait().await;
        let Some(kept) = kept else { return };
        match kept {
            Ok(KeptState { others, before, began, after, files, unkept, open }) => {
                let lost: Vec<UnkeptChange> = unkept.into_iter().filter(UnkeptChange::is_loss).collect();
                let lost = (!lost.is_empty()).then(|| Msg::Files(FilesMsg::Unkept(session, lost)));
                let lost = lost.and_then(|message| send_now(&tx, message));
                // A call that changed nothing is no step.
                let own = (before != Some(after.id)).then(|| StepRow {
                    id: 0,
                    of,
                    before: before.map(|b| b.to_string()),
                    after: after.id.to_string(),
                    files,
                    time: after.time,
                    began,
                });
                // What a command changed counts as the agent's work.
                let touched = own.as_ref().map(|own| {
                    Msg::Files(FilesMsg::Touched(own.files.iter().map(|f| f.path.clone()).collect()))
                });
                let waits = touched.and_then(|message| send_now(&tx, message));
                let rows: Vec<StepRow> = others.into_iter().chain(own).collect();
                let put = put(&store, session, keeper.as_ref(), rows).await;
                // A full inbox delays the message; rows do not wait for it, since the inbox is not read at the end.
                for message in waits.into_iter().chain(lost) {
                    let _ = tx.send(message).await;
                }
                match put {
                    Ok(()) => open.into_iter().for_each(OpenCall::end),
                    Err(error) => {
                        drop(tx.send(Msg::Files(FilesMsg::NotKept(Box::new(NotKept(error))))).await)
                    }
                }
            }
            Err(error) => drop(tx.send(Msg::Files(FilesMsg::NotKept(Box::new(NotKept(error))))).await),
        }
        if keeper.is_some_and(|k| k.has_words()) {
            let _ = tx.send(Msg::Files(FilesMsg::Notices)).await;
        }
    });
}

/// Names the files that a call changed and that no restore brings back, in a note that stays in the conversation.
pub(crate) fn unkept(core: &mut Core, session: SessionId, changes: &[UnkeptChange]) {
    let Some(files) = back::unkept_files(changes) else { return };
    let text = format!(
        "A command changed files that checkpoints do not cover, so undo cannot restore them: {files}"
    );
    let text = core.redact(&text);
    core.notice(Notice::new(NoticeKind::Info, text.clone()));
    if session == core.session.id && !core.session.read_only {
        let entry = core.session.grow(&core.services, EntryBody::Note { text });
        let append = core.append().entries(vec![entry]);
        core.save(append, Vec::new(), Then::Nothing);
    }
}

/// Shows once that the states of files cannot be kept, and why.
pub(crate) fn not_kept(core: &mut Core, n: &NotKept) {
    core.external_driver().state_not_stored();
    if !std::mem::replace(&mut core.files.failed, true) {
        let notice = n.0.notice();
        let text = format!(
            "No snapshot of the current files could be taken, so changes from now on cannot be undone: {}",
            notice.message
        );
        core.notice(Notice { message: text, ..notice });
    }
}

/// Waits for the last states to be recorded, at most a second.
pub(crate) async fn end_keeping(core: &mut Core) {
    if tokio::time::timeout(LAST, core.files.keeping.wait()).await.is_err() {
        tracing::warn!("the last states of the files were not recorded in time");
    }
}

/// Shows the notices of the snapshots.
pub(crate) fn files_words(core: &mut Core) {
    let words = core.services.snapshots.workspace.as_ref().map(Keeper::words).unwrap_or_default();
    for word in words {
        let (kind, text) = match word {
            SnapshotNotice::Recovered { text, step } => {
                if let Some(step) = step {
                    finished_restore(core, step);
                }
                (NoticeKind::Store, text)
            }
            SnapshotNotice::NotCovered(text) => (NoticeKind::Info, text),
            SnapshotNotice::InterruptedCall(credited) => {
                if credited.session == core.session.id {
                    core.child_driver().record_files(credited.files.iter().map(|f| f.path.clone()));
                }
                (NoticeKind::Store, credited.sentence())
            }
        };
        core.notice(Notice::new(kind, text));
    }
}

/// Records an interrupted restore that was completed now, so that it can be undone.
fn finished_restore(core: &mut Core, done: CompletedRestore) {
    if core.session.read_only {
        return;
    }
    let now = core.services.clock.now();
    let id = OpId::fresh(&*core.services.ids, now);
    let states = tiller_snapshot::Step { before: done.before, after: done.after };
    let (change, row) = back::traces(states, done.files, now, None, StepOf::Restore(id));
    let op = change::op(core, core.session.id, None, "restore files, completed at startup", change);
    let op = tiller_protocol::Op { id, ..op };
    let ticket = core.services.store.steps().add(core.session.id, row);
    core.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
    let mut append = core.append();
    append.op = Some(op);
    core.save(append, Vec::new(), Then::Nothing);
}

/// Opens the snapshots at once where a restore or a call was interrupted, and reports the result.
pub(crate) fn finish_restore(core: &mut Core) {
    let Some(keeper) = core.services.snapshots.workspace.clone().filter(Keeper::interrupted) else { return };
    let (tx, watched) = (core.tx.clone(), watched(core));
    let mut order = Recorded::next(&mut core.files.recorded);
    core.files.keeping.spawn(async move {
        order.wait().await;
        let credit = keeper.run(move |s| {
            if !s.cut_calls().is_empty() {
                let now = s.snapshot()?;
                watched.words.credited(super::cut::credit(s, &watched.store, &now));
            }
            Ok(())
        });
        // A failure is tried again with the next state.
        let _ = credit.await;
        let _ = tx.send(Msg::Files(FilesMsg::Notices)).await;
    });
}

/// Flushes the snapshots once no request waits.
pub(crate) fn settle_files(core: &Core) {
    let Some(keeper) = &core.services.snapshots.workspace else { return };
    let (store, quota, mine) = (core.services.store.clone(), keeper.quota(), keeper.clone());
    let project = tiller_protocol::names::written(&core.services.workspace.root);
    drop(keeper.submit(move |s| {
        s.settle()?;
        if mine.collect_now() {
            // When the sessions cannot be read, every snapshot counts as used.
            let Ok(used) = store.steps().snapshots_in_use(&project) else { return Ok(()) };
            let keep: Vec<Id> = used.iter().filter_map(|id| id.parse().ok()).collect();
            let done = s.collect(&keep, UNNEEDED, quota)?;
            tracing::info!(?done, "collected snapshots");
        }
        Ok(())
    }));
}

/// Sends without waiting; returns the message when the inbox is full, to be sent later. A closed inbox needs none.
fn send_now(tx: &mpsc::Sender<Msg>, message: Msg) -> Option<Msg> {
    match tx.try_send(message) {
        Err(mpsc::error::TrySendError::Full(message)) => Some(message),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A full inbox delays the word of what a call changed and loses nothing of it.
    #[tokio::test]
    async fn what_a_full_inbox_does_not_take_comes_back() {
        let (tx, mut rx) = mpsc::channel(1);
        assert!(send_now(&tx, Msg::Files(FilesMsg::Touched(vec!["a".into()]))).is_none());
        let waits = send_now(&tx, Msg::Files(FilesMsg::Touched(vec!["b".into()]))).unwrap();
        let sends = tokio::spawn(async move { tx.send(waits).await.is_ok() });
        for name in ["a", "b"] {
            let Some(Msg::Files(FilesMsg::Touched(files))) = rx.recv().await else {
                panic!("{name} is lost")
            };
            assert_eq!(files, [name]);
        }
        assert!(sends.await.unwrap());
        let (tx, rx) = mpsc::channel(1);
        drop(rx);
        assert!(send_now(&tx, Msg::Files(FilesMsg::Notices)).is_none());
    }
}
