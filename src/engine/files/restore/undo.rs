//! Undo and redo of a restore, and of what a turn changed.

use crate::files::record;
use crate::files::restore;
use crate::undo::{Inverse, OpTitle};
use tiller_protocol::op::TurnOp;
use tiller_protocol::{CommandId, Notice, NoticeKind, OpId};
use tiller_snapshot::{Goal, SnapshotError};

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::files::msg::FilesMsg;
use crate::files::msg::UndoRest;
use crate::files::msg::{RestoreKind, RestoreOutcome, RestoreReport};
use crate::files::restore::back::{self, RestoreChoices};
use crate::files::restore::{attempt, off, off_thread, unknown};
use crate::undo::Next;

pub(crate) fn undo_restore(core: &mut Core, client: ClientId, cause: CommandId, redo: bool) {
    if let Some(why) = restore::cannot_restore(core) {
        return core.refuse(client, cause, why);
    }
    undo_last_restore(core, client, cause, redo, None);
}

/// Like [`undo_restore`], if the last restore is this one.
pub(crate) fn undo_restore_of(core: &mut Core, client: ClientId, cause: CommandId, op: OpId) {
    if let Some(why) = restore::cannot_restore(core) {
        return core.refuse(client, cause, why);
    }
    undo_last_restore(core, client, cause, false, Some(op));
}

fn undo_last_restore(core: &mut Core, client: ClientId, cause: CommandId, redo: bool, only: Option<OpId>) {
    let store = core.services.store.clone();
    let session = core.session.id;
    let found = move || {
        let ops = store.sessions().ops(session, crate::undo::OPS).map_err(|e| e.notice())?;
        let none = if redo { "no restore has been undone" } else { "there is no restore of files to undo" };
        let found = back::undoable(&ops, redo).ok_or_else(|| Notice::new(NoticeKind::User, none))?;
        if only.is_some_and(|op| op != found.root) {
            return Err(Notice::new(
                NoticeKind::User,
                "files were restored since then, so this is not the last operation",
            )
            .hint("/undo reverts one operation at a time; /ops lists them"));
        }
        let title = OpTitle::inverse(Inverse::of(redo), found.title);
        Ok(FoundUndo { goal: found.goal, root: found.root, title, turn: None })
    };
    undoing_files(core, client, cause, found, None);
}

/// A row of the log that is to be undone or redone.
struct FoundUndo {
    goal: Goal,
    root: OpId,
    title: OpTitle,
    /// The turn whose changes it is.
    turn: Option<Box<TurnOp>>,
}

/// Undoes or redoes a restore, or the changes of a turn, that the log names as next.
pub(crate) fn undo_files(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    next: &Next,
    title: OpTitle,
    rest: Option<UndoRest>,
) {
    let turn = back::turn_of(&next.row);
    let Some(goal) = back::reverse(&next.row) else {
        // Its state is lost for good: the next undo continues with the operation before it.
        let result = Err(unknown());
        let closes = Some(back::nothing(String::new(), next.root, turn));
        let op = OpId::fresh(&*core.services.ids, core.services.clock.now());
        let (no, session, of) = (core.next_job(), core.session.id, Some(next.root));
        let tx = core.tx.clone();
        let (talk, entry) = (None, None);
        let restored =
            RestoreReport { no, client, cause, session, op, title, of, talk, entry, rest, closes, result };
        return restore::restoring(core, no, client, cause, async move {
            let _ = tx.send(Msg::Files(FilesMsg::RestoreReport(Box::new(restored)))).await;
        });
    };
    let root = next.root;
    undoing_files(core, client, cause, move || Ok(FoundUndo { goal, root, title, turn }), rest);
}

fn undoing_files(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    found: impl FnOnce() -> Result<FoundUndo, Notice> + Send + 'static,
    rest: Option<UndoRest>,
) {
    let Some(keeper) = core.services.snapshots.workspace.clone() else {
        return core.refuse(client, cause, off());
    };
    let (no, session) = (core.next_job(), core.session.id);
    let (tx, watched) = (core.tx.clone(), record::watched(core));
    let op = OpId::fresh(&*core.services.ids, core.services.clock.now());
    let done = async move {
        let (mut title, mut of, mut closes) = (OpTitle::default(), None, None);
        let result = async {
            let FoundUndo { goal, root, title: name, turn } = off_thread(found).await?;
            (title, of) = (name, Some(root));
            let state = goal.to.to_string();
            let gone = attempt(&keeper, goal, RestoreChoices::default(), watched, op).await;
            if let Err(SnapshotError::Missing(_)) = &gone {
                closes = Some(back::nothing(state, root, turn.clone()));
            }
            let way = turn.map_or(RestoreKind::Back, RestoreKind::Turn);
            gone.map(|gone| RestoreOutcome { way, ..gone }).map_err(|e| e.notice())
        };
        let result = result.await;
        let (talk, entry) = (None, None);
        let restored =
            RestoreReport { no, client, cause, session, op, title, of, talk, entry, rest, closes, result };
        let _ = tx.send(Msg::Files(FilesMsg::RestoreReport(Box::new(restored)))).await;
    };
    restore::restoring(core, no, client, cause, done);
}
