//! The diff review of a turn, and rejecting parts of it by a reverse patch that applies as a whole or not at all.
//! Files are read and compared away from the engine's task.

use crate::files::restore;
use crate::files::restore::undo;
use crate::tool_call::calls;
use std::sync::Arc;
use tiller_protocol::review::RejectConflict;

use tiller_protocol::command::ReviewCommand;
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::review::{Reject, Review};
use tiller_protocol::{CommandId, EntryId, EventBody, Notice, NoticeKind, OpId};
use tiller_tool::files::{Masks, revert};

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::files::msg::{FilesMsg, ReviewReport};
use crate::files::turn::diffs::{TurnDiffs, TurnSource};
use crate::lock::lock;
use crate::undo::before;

pub(crate) fn review_command(core: &mut Core, client: ClientId, cause: CommandId, command: ReviewCommand) {
    match command {
        ReviewCommand::Open { turn } => review(core, client, cause, turn),
        ReviewCommand::Reject { turn, hunks } => {
            let (whole, hunks): (Vec<Reject>, Vec<Reject>) =
                hunks.into_iter().partition(|r| r.hunk.is_empty());
            match (whole.is_empty(), hunks.is_empty()) {
                (true, _) => reject(core, client, cause, turn, hunks),
                (false, true) => reject_whole(core, client, cause, turn, whole),
                (false, false) => {
                    let why = "hunks and whole files are rejected one at a time";
                    core.refuse(client, cause, Notice::new(NoticeKind::User, why));
                }
            }
        }
        ReviewCommand::UndoReject => undo_reject(core, client, cause),
    }
}

/// Replies with the changes from a turn's start to now.
fn review(core: &mut Core, client: ClientId, cause: CommandId, turn: Option<EntryId>) {
    let source = TurnSource::of(core);
    let (bus, scope) = (Arc::clone(&core.bus), core.scope_of(Some(cause)));
    core.spawn(async move {
        let made = tokio::task::spawn_blocking(move || source.diffs(turn)).await;
        let notice = match made {
            Ok(Some(TurnDiffs { turn, title, files, taken_back, notes })) => {
                for note in notes {
                    let notice = Notice::new(NoticeKind::Info, note);
                    bus.publish(&scope, EventBody::State(StateEvent::Notice { notice }));
                }
                let review = Review { turn, title, files, taken_back };
                return bus.reply(client, &scope, ReplyEvent::ReviewReply { review });
            }
            Ok(None) => Notice::new(NoticeKind::User, "no turn has changed any files"),
            Err(_) => Notice::new(NoticeKind::Internal, "the review could not be loaded"),
        };
        bus.reply(client, &scope, ReplyEvent::ErrorReply { notice });
    });
}

fn reject(core: &mut Core, client: ClientId, cause: CommandId, turn: EntryId, hunks: Vec<Reject>) {
    if core.session.read_only || core.turn.live.is_some() {
        let why = if core.session.read_only {
            "this session is open read-only"
        } else {
            "a turn is running: stop it first"
        };
        return core.refuse(client, cause, Notice::new(NoticeKind::User, why));
    }
    let root = core.services.workspace.root.clone();
    let kept = lock(&core.files.reviews).kept(turn);
    let backup = core.services.places.state.join("rejected").join(core.session.id.to_string());
    let (cx, live) = calls::tool_cx(core, "review", None);
    let tx = core.tx.clone();
    core.spawn(async move {
        let mut undo = Vec::new();
        let mut conflicts = Vec::new();
        let mut said = Vec::new();
        for r in hunks {
            let (backup, root, path) = (backup.clone(), root.clone(), r.path.clone());
            let saved = tokio::task::spawn_blocking(move || before::save_copy(&backup, &root, &path));
            if let Err(e) = saved.await.unwrap_or_else(|e| Err(std::io::Error::other(e))) {
                let why = format!("its current state could not be saved first: {e}");
                conflicts.push(RejectConflict { path: r.path, why });
                continue;
            }
            let masks = before::masks(kept.get(&r.path), &r.hunk);
            match revert(&r.path, &r.hunk, masks, &cx).await {
                Ok(done) => {
                    said.push(format!("the user reverted part of your change to {}", r.path));
                    undo.push((r.path, done.diff));
                }
                Err(e) => conflicts.push(RejectConflict { path: r.path, why: e.to_string() }),
            }
        }
        drop(live);
        let rejected = u32::try_from(undo.len()).unwrap_or(u32::MAX);
        let undo = (!undo.is_empty()).then_some(undo);
        let reply = ReplyEvent::RejectReply { rejected, conflicts };
        // The engine may have ended.
        let _ = tx
            .send(Msg::Files(FilesMsg::ReviewReport(Box::new(ReviewReport {
                client,
                cause,
                reply,
                undo,
                said,
            }))))
            .await;
    });
}

/// Rejects files that are not text by a restore from the snapshots: later changes by others stay, and it can be
/// undone.
fn reject_whole(core: &mut Core, client: ClientId, cause: CommandId, turn: EntryId, files: Vec<Reject>) {
    let op = OpId::fresh(&*core.services.ids, core.services.clock.now());
    {
        let mut reviews = lock(&core.files.reviews);
        (reviews.undo, reviews.whole) = (Vec::new(), Some(op));
    }
    restore::restore_only(core, client, cause, turn, files.into_iter().map(|r| r.path).collect(), op);
}

fn undo_reject(core: &mut Core, client: ClientId, cause: CommandId) {
    let (undo, whole) = {
        let mut reviews = lock(&core.files.reviews);
        (std::mem::take(&mut reviews.undo), reviews.whole.take())
    };
    if let Some(op) = whole {
        return undo::undo_restore_of(core, client, cause, op);
    }
    if undo.is_empty() {
        return core.refuse(client, cause, Notice::new(NoticeKind::User, "nothing was rejected"));
    }
    let (cx, live) = calls::tool_cx(core, "review", None);
    let tx = core.tx.clone();
    core.spawn(async move {
        let mut conflicts = Vec::new();
        let mut said = Vec::new();
        // The last one first, so that each applies to the file as it left it. Reversing a reverse patch restores the
        // change, and both were made from the file's bytes.
        for (path, diff) in undo.into_iter().rev() {
            match revert(&path, &diff, Masks::Text, &cx).await {
                Ok(_) => said.push(format!("the user restored your change to {path}")),
                Err(e) => conflicts.push(RejectConflict { path, why: e.to_string() }),
            }
        }
        drop(live);
        let rejected = u32::try_from(said.len()).unwrap_or(u32::MAX);
        let reply = ReplyEvent::RejectReply { rejected, conflicts };
        let _ = tx
            .send(Msg::Files(FilesMsg::ReviewReport(Box::new(ReviewReport {
                client,
                cause,
                reply,
                undo: None,
                said,
            }))))
            .await;
    });
}

pub(crate) fn reviewed(core: &mut Core, report: ReviewReport) {
    if let Some(undo) = report.undo {
        let mut reviews = lock(&core.files.reviews);
        (reviews.undo, reviews.whole) = (undo, None);
    }
    for line in report.said {
        core.context.news.add(line);
    }
    core.bus.reply(report.client, &core.scope_of(Some(report.cause)), report.reply);
}
