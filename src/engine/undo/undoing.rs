//! Undo and redo of the last operation, whatever its kind.

use crate::core::follow_up::FollowUp;
use crate::files::restore;
use crate::files::written;
use crate::session::branch;
use crate::session::change;
use crate::undo::{Inverse, OpTitle};
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::op::OpChange;
use tiller_protocol::{BranchName, CommandId, EventBody, Notice, NoticeKind, Op, OpId};

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::{After, Then};
use crate::files::msg::{FilesMsg, NextUndo, UndoRest};
use crate::prompts::doing::JobKind;
use crate::session::load::blocking;
use crate::session::msg::BranchChange;
use crate::undo::{self, Next};

/// The refusal where files cannot be undone.
const NO_SNAPSHOTS: &str = "no snapshots are kept for this folder, so /undo restores no files: set snapshots.enabled to true in \
config.toml and restart";

pub(crate) fn undo_op(core: &mut Core, client: ClientId, cause: CommandId, redo: bool) {
    undo_one(core, client, cause, redo, None);
}

/// Undoes the remaining operations of the same action.
pub(crate) fn undo_rest(core: &mut Core, client: ClientId, cause: CommandId, rest: UndoRest) {
    undo_one(core, client, cause, rest.redo, Some(rest.root));
}

fn undo_one(core: &mut Core, client: ClientId, cause: CommandId, redo: bool, only: Option<OpId>) {
    if let Some(why) = restore::cannot_restore(core) {
        return core.refuse(client, cause, why);
    }
    let (no, store, session) = (core.next_job(), core.services.store.clone(), core.session.id);
    // The last turn is in the log once its last state is kept.
    let (tx, written, head) = (core.tx.clone(), written::written(core), core.session.head.name.clone());
    // Without snapshots a restore cannot be undone: operations before it are still reached.
    let files = core.services.snapshots.workspace.is_some();
    let task = tokio::spawn(async move {
        written.await;
        let look = move || {
            let ops = store.sessions().ops(session, undo::OPS)?;
            Ok(match only {
                Some(root) => undo::of(&ops, root, redo),
                None => undo::next(&ops, redo, |op| {
                    undo::fits(op, &head) && (files || !matches!(op.change, OpChange::Files { .. }))
                }),
            })
        };
        let result = blocking(look).await;
        let _ = tx
            .send(Msg::Files(FilesMsg::UndoFound(Box::new(NextUndo {
                no,
                client,
                cause,
                session,
                redo,
                result,
            }))))
            .await;
    });
    core.busy_with(no, JobKind::Other { client, cause }, task);
}

pub(crate) fn undo_found(core: &mut Core, found: NextUndo) {
    let NextUndo { no, client, cause, session, redo, result } = found;
    if !core.job_done(no) || session != core.session.id {
        return;
    }
    undo_next(core, client, cause, redo, result);
    core.follow_up(FollowUp::SendBehindJob);
}

fn undo_next(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    redo: bool,
    result: Result<Option<Next>, tiller_store::StoreError>,
) {
    let next = match result {
        Ok(Some(next)) => next,
        Ok(None) => {
            let (none, hint) = match redo {
                true => ("there is nothing to redo", "/ops lists operations"),
                false => ("there is nothing to undo", "/rewind restores files; /ops lists operations"),
            };
            let notice = Notice::new(NoticeKind::User, none);
            // What a turn changed is taken back from the snapshots.
            let off = core.services.snapshots.workspace.is_none() && !redo;
            return core.refuse(
                client,
                cause,
                if off { notice.hint(NO_SNAPSHOTS) } else { notice.hint(hint) },
            );
        }
        Err(error) => return core.refuse(client, cause, error.notice()),
    };
    let title = OpTitle::inverse(Inverse::of(redo), next.title.clone());
    let rest = next.with.map(|root| UndoRest { root, redo });
    let going = |head: Option<String>, at| BranchChange {
        head: head.unwrap_or_default(),
        title: title.clone(),
        of: Some(next.root),
        at: Some(at),
        rest,
    };
    match next.row.change.clone() {
        OpChange::Head { from, before, .. } => branch::go(core, client, cause, going(from, before)),
        OpChange::Compaction { before, .. } => branch::go(core, client, cause, going(None, before)),
        OpChange::Files { .. } => {
            crate::files::restore::undo::undo_files(core, client, cause, &next, title, rest)
        }
        change => undo_value(core, client, cause, &next, &change, title),
    }
}

fn undo_value(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    next: &Next,
    change: &OpChange,
    title: OpTitle,
) {
    let Some(back) = undo::inverse(change) else { return };
    if let OpChange::BranchArchived { name, after: true, .. } = &back
        && *name == core.session.head.name
    {
        let notice = Notice::new(NoticeKind::User, "the open branch cannot be archived")
            .hint("open another branch first");
        return core.refuse(client, cause, notice);
    }
    let mut op = change::op(core, core.session.id, cause, &title.to_string(), back.clone());
    op.of = Some(next.root);
    let closes = Box::new(Op { change: undo::still(back.clone()), ..op.clone() });
    let ticket = core.services.store.sessions().revert(&next.row, op);
    let mut label = None;
    let event = match back {
        OpChange::Title { after, .. } => {
            core.session.info.title.clone_from(&after);
            core.session.info.titled = !after.is_empty();
            Some(StateEvent::TitleChanged { title: after })
        }
        OpChange::Archived { after, .. } => {
            core.session.info.archived = after;
            None
        }
        OpChange::Label { name, after, .. } => {
            let branch = BranchName { head: name, label: after };
            label = Some(branch.clone());
            Some(StateEvent::BranchNamed { branch })
        }
        OpChange::BranchArchived { name, after, .. } => {
            Some(StateEvent::BranchArchived { head: name, archived: after })
        }
        OpChange::Tag { name, after, .. } => Some(StateEvent::TagChanged { name, entry: after }),
        _ => None,
    };
    let scope = core.scope_of(Some(cause));
    let events = event.into_iter().map(|e| (scope.clone(), EventBody::State(e))).collect();
    let then = Then::ValueUndone { client, cause, label, title, closes };
    core.saves.push(ticket, After { events, then });
}

/// An undo or redo of a value that can never be made: it is marked as handled, so that the next one is reached.
pub(crate) fn close_undo(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    title: &OpTitle,
    closes: &Op,
    why: &Notice,
) {
    let (done, next) = match title.inverse {
        Some(Inverse::Redo) => ("Not redone", "The next redo continues with the step after it"),
        Some(Inverse::Undo) | None => ("Not undone", "The next undo continues with the step before it"),
    };
    let said = format!("{done}: {}; {}. {next}", title.operation, why.message);
    let mut append = core.append();
    append.op = Some(closes.clone());
    let reply = Box::new(ReplyEvent::DoneReply { said });
    core.save(append, Vec::new(), Then::Reply { client, cause, reply });
}

/// Replies that an undo moved the conversation, and continues with what belongs to it.
pub(crate) fn undone_move(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    title: &OpTitle,
    rest: Option<UndoRest>,
) {
    let on = format!(": the branch {} is now open", core.session.branch().word());
    let then = Then::BranchNamed { client, cause, label: None, said: Some(said(title, &on)) };
    core.saves.push_after(After { events: Vec::new(), then });
    if let Some(rest) = rest {
        undo_rest(core, client, cause, rest);
    }
}

/// A sentence about what was done.
pub(crate) fn said(title: &OpTitle, more: &str) -> String {
    let word = match title.inverse {
        Some(Inverse::Undo) => "Undone",
        Some(Inverse::Redo) => "Redone",
        None => "Done",
    };
    format!("{word}: {}{more}", title.operation)
}
