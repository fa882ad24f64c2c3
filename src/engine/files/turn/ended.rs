//! The end of a turn: what it changed becomes a row of the log, which undo takes back, and an event.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tiller_protocol::event::StateEvent;
use tiller_protocol::op::{OpChange, TurnOp};
use tiller_protocol::restore::{StepFile, TurnChanges};
use tiller_protocol::{Op, OpId, SessionId, Time};
use tiller_snapshot::{Entry, FileDiff, Kind, Shadow, SnapshotError, Step};
use tiller_store::{Store, StoreError, Ticket};

use super::{SHOWN, Turn, TurnSteps, counted, is_call, is_folder, reported, stored, turns};
use crate::core::Core;
use crate::core::msg::Msg;
use crate::files::keeper::Keeper;
use crate::files::msg::{FilesMsg, TurnReport};
use crate::files::restore::back;
use crate::files::written::Recorded;
use crate::session::load::blocking;
use crate::undo;

/// Turns whose changes are kept for snapshots of the conversation.
const KEPT: usize = 400;
/// Bytes of all files of one turn whose lines are counted.
const COUNTED_IN_ALL: u64 = 64 << 20;
/// Time after which no further lines are counted: the snapshots and the next undo wait for it.
const COUNTING: Duration = Duration::from_millis(500);
/// Characters of a turn's title in the log.
const TITLE: usize = 60;

/// The parts of a turn that has ended which its row of the log names.
struct EndedTurn {
    store: Store,
    keeper: Keeper,
    session: SessionId,
    head: String,
    op: OpId,
    time: Time,
    /// The operation before the end of the turn.
    after: Ticket<Option<OpId>>,
    /// The end of the process cut it off; its row may be there already.
    cut: bool,
}

/// A turn has ended: sums up what it changed once its last state is kept. Nothing waits for it but the next undo, and it costs
/// nothing without a call.
pub(crate) fn turn_ended(core: &mut Core) {
    sum_up(core, false);
}

/// The last turn was cut off by the end of its process: adds its row of the log, so that undo takes it back.
pub(crate) fn turn_cut(core: &mut Core) {
    core.files.stepped = true;
    sum_up(core, true);
}

fn sum_up(core: &mut Core, cut: bool) {
    let (Some(keeper), false) = (core.services.snapshots.workspace.clone(), core.session.read_only) else {
        return;
    };
    let turn = turns(core.session.history.tail.iter()).into_iter().next();
    let Some(head) = core.session.head.id else { return };
    // Agents that a call started record their own steps.
    let stepped = std::mem::take(&mut core.files.stepped);
    if !stepped && turn.as_ref().is_some_and(|turn| !turn.entries.iter().any(|e| is_call(e))) {
        return;
    }
    let time = core.services.clock.now();
    let ended = EndedTurn {
        store: core.services.store.clone(),
        keeper,
        session: core.session.id,
        head: core.session.head.name.clone(),
        op: OpId::fresh(&*core.services.ids, time),
        time,
        after: core.services.store.sessions().last_op(core.session.id),
        cut,
    };
    let tx = core.tx.clone();
    let mut order = Recorded::next(&mut core.files.recorded);
    core.files.keeping.spawn(async move {
        order.wait().await;
        let store = ended.store.clone();
        let turn = match turn {
            Some(turn) => Some(turn),
            None => blocking(move || stored(&store, head)).await.ok().flatten(),
        };
        let Some(turn) = turn else { return };
        let session = ended.session;
        if let Some(changes) = ended.sum(turn).await {
            let report = Box::new(TurnReport { session, changes });
            // The engine may have ended.
            let _ = tx.send(Msg::Files(FilesMsg::TurnChanged(report))).await;
        }
    });
}

impl EndedTurn {
    /// Adds the turn to the log, and returns what it changed. `None`: no call changed a file.
    async fn sum(mut self, turn: Turn) -> Option<TurnChanges> {
        let (store, session) = (self.store.clone(), self.session);
        let read = move || {
            let steps = TurnSteps::read(&store, session, &turn)?;
            Ok((turn, steps))
        };
        let read = blocking(read).await;
        let failed = |error: &StoreError| tracing::warn!(%error, "the changes of a turn were not read");
        let (turn, steps) = read.inspect_err(failed).ok()?;
        let began = turn.entries.first()?.time;
        let mut files = Vec::new();
        let mut covered = None;
        if let Some(steps) = steps {
            let all = Arc::new(steps);
            let read = Arc::clone(&all);
            let compared = self.keeper.run(move |s| compared(s, &read)).await;
            match compared {
                Ok((own, folders)) => {
                    self.log(&turn, began, &all.steps, own.clone(), folders).await;
                    files = own;
                    covered = Some(all);
                }
                Err(error) => tracing::warn!(%error, "the changes of a turn were not compared"),
            }
        }
        let told = reported(&turn.entries, covered.as_ref().map(|c| &c.paths));
        if covered.is_none() && told.is_empty() {
            return None;
        }
        files.extend(told);
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Some(TurnChanges::new(turn.id, began, files))
    }

    /// Adds the row of the log, where something differs.
    async fn log(
        &mut self,
        turn: &Turn,
        began: Time,
        steps: &[Step],
        files: Vec<StepFile>,
        folders: Vec<String>,
    ) {
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return };
        if files.is_empty() && folders.is_empty() {
            return;
        }
        let text = |step: &Step| (step.before.to_string(), step.after.to_string());
        let steps = steps.iter().map(text).collect();
        let of = TurnOp { entry: turn.id, began, head: self.head.clone(), steps, folders };
        if self.cut && self.has_row(&of).await {
            return;
        }
        let change = OpChange::Files {
            before: first.before.to_string(),
            after: last.after.to_string(),
            files,
            of: None,
            turn: Some(Box::new(of)),
        };
        let title: String = turn.title.chars().take(TITLE).collect();
        let op = Op {
            id: self.op,
            session: self.session,
            time: self.time,
            parent: (&mut self.after).await.unwrap_or_default(),
            cause: None,
            title: format!("turn: {title}"),
            of: None,
            with: None,
            change,
        };
        if let Err(error) = self.store.sessions().log(op).await {
            tracing::warn!(%error, "a turn was not added to the log");
        }
    }

    /// Returns true if the log has the turn with these steps.
    async fn has_row(&self, of: &TurnOp) -> bool {
        let (store, session, of) = (self.store.clone(), self.session, of.clone());
        let same = move |op: &Op| match &op.change {
            OpChange::Files { of: None, turn: Some(turn), .. } => {
                (turn.entry, &turn.steps) == (of.entry, &of.steps)
            }
            _ => false,
        };
        let read = move || Ok(store.sessions().ops(session, undo::OPS)?.iter().any(same));
        blocking(read).await.unwrap_or_default()
    }
}

/// The files that a turn changed, the first ones with their lines, and the empty folders.
fn compared(shadow: &Shadow, steps: &TurnSteps) -> Result<(Vec<StepFile>, Vec<String>), SnapshotError> {
    let (folders, mut files): (Vec<FileDiff>, Vec<FileDiff>) =
        steps.changes(shadow)?.into_iter().partition(is_folder);
    steps.doubts.put_first(&mut files);
    let mut named = back::named(&files);
    let mut room = COUNTED_IN_ALL;
    let start = Instant::now();
    for (file, diff) in named.iter_mut().zip(&files).take(SHOWN) {
        let file_of = |e: Option<Entry>| e.filter(|e| e.kind == Kind::File);
        let size = |e: Option<Entry>| file_of(e).map_or(Ok(0), |e| shadow.size(e.id));
        let bytes = size(diff.before)?.saturating_add(size(diff.after)?);
        if bytes <= room && start.elapsed() < COUNTING {
            room -= bytes;
            *file = counted(shadow, diff);
        }
    }
    steps.doubts.mark(&mut named);
    Ok((named, folders.iter().map(|d| back::shown(&d.path)).collect()))
}

/// Shows what a turn changed.
pub(crate) fn turn_changed(core: &mut Core, report: TurnReport) {
    let TurnReport { session, changes } = report;
    if session != core.session.id {
        return;
    }
    changes.settle(&core.identity.id, core.watching.feed.iter_mut());
    let turns = &mut core.session.history.turns;
    turns.retain(|t| t.turn != changes.turn);
    turns.push(changes.clone());
    let over = turns.len().saturating_sub(KEPT);
    turns.drain(..over);
    core.state(None, StateEvent::TurnChanged { changes: Box::new(changes) });
}
