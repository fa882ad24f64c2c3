//! The commands: undo and redo of the last operation, whatever its kind.

use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::op::OpChange;
use tiller_protocol::{BranchName, CommandId, EventBody, Notice, NoticeKind, Op, OpId};

use crate::bus::ClientId;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::{After, Then};
use crate::files::msg::{FilesMsg, Found, Rest};
use crate::prompts::doing::Doing;
use crate::session::load::blocking;
use crate::session::msg::Going;
use crate::undo::{self, Next};

impl Core {
    pub(crate) fn undo_op(&mut self, client: ClientId, cause: CommandId, redo: bool) {
        self.undo_one(client, cause, redo, None);
    }

    /// The rest of what was done in one.
    pub(crate) fn undo_rest(&mut self, client: ClientId, cause: CommandId, rest: Rest) {
        self.undo_one(client, cause, rest.redo, Some(rest.root));
    }

    fn undo_one(&mut self, client: ClientId, cause: CommandId, redo: bool, only: Option<OpId>) {
        if let Some(why) = self.cannot_restore() {
            return self.refuse(client, cause, why);
        }
        let (no, store, session) = (self.next_job(), self.services.store.clone(), self.session.id);
        let (tx, saves, head) = (self.tx.clone(), self.saves.barrier(), self.session.head_name.clone());
        // Where no states are kept any more, what stands before a restore is still reached.
        let files = self.services.files.is_some();
        let task = tokio::spawn(async move {
            saves.await;
            let look = move || {
                let ops = store.ops(session, undo::OPS)?;
                Ok(match only {
                    Some(root) => undo::of(&ops, root, redo),
                    None => undo::next(&ops, redo, |op| {
                        undo::fits(op, &head) && (files || !matches!(op.change, OpChange::Files { .. }))
                    }),
                })
            };
            let result = blocking(look).await;
            let _ = tx
                .send(Msg::Files(FilesMsg::UndoFound(Box::new(Found {
                    no,
                    client,
                    cause,
                    session,
                    redo,
                    result,
                }))))
                .await;
        });
        self.busy_with(no, Doing::Other { client, cause }, task);
    }

    pub(crate) fn undo_found(&mut self, found: Found) {
        let Found { no, client, cause, session, redo, result } = found;
        if !self.job_done(no) || session != self.session.id {
            return;
        }
        self.undo_next(client, cause, redo, result);
        self.send_behind_job();
    }

    fn undo_next(
        &mut self,
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
                let notice = Notice::new(NoticeKind::User, none).hint(hint);
                return self.refuse(client, cause, notice);
            }
            Err(error) => return self.refuse(client, cause, error.notice()),
        };
        let title = format!("{} {}", if redo { "redo" } else { "undo" }, next.title);
        let rest = next.with.map(|root| Rest { root, redo });
        let going = |head: Option<String>, at| Going {
            head: head.unwrap_or_default(),
            title: title.clone(),
            of: Some(next.root),
            at: Some(at),
            rest,
        };
        match next.row.change.clone() {
            OpChange::Head { from, before, .. } => self.go(client, cause, going(from, before)),
            OpChange::Compaction { before, .. } => self.go(client, cause, going(None, before)),
            OpChange::Files { .. } => self.undo_files(client, cause, &next, title, rest),
            change => self.undo_value(client, cause, &next, &change, title),
        }
    }

    fn undo_value(
        &mut self,
        client: ClientId,
        cause: CommandId,
        next: &Next,
        change: &OpChange,
        title: String,
    ) {
        let Some(back) = undo::inverse(change) else { return };
        if let OpChange::BranchArchived { name, after: true, .. } = &back
            && *name == self.session.head_name
        {
            let notice = Notice::new(NoticeKind::User, "the open branch cannot be archived")
                .hint("open another branch first");
            return self.refuse(client, cause, notice);
        }
        let mut op = self.op(self.session.id, cause, &title, back.clone());
        op.of = Some(next.root);
        let closes = Box::new(Op { change: undo::still(back.clone()), ..op.clone() });
        let ticket = self.services.store.revert(&next.row, op);
        let mut label = None;
        let event = match back {
            OpChange::Title { after, .. } => {
                self.session.title.clone_from(&after);
                self.session.titled = !after.is_empty();
                Some(StateEvent::TitleChanged { title: after })
            }
            OpChange::Archived { after, .. } => {
                self.session.archived = after;
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
        let place = self.place_of(Some(cause));
        let events = event.into_iter().map(|e| (place.clone(), EventBody::State(e))).collect();
        let then = Then::Inverted { client, cause, label, said: said(&title, ""), closes };
        self.saves.push(ticket, After { events, then });
    }

    /// An undo or a redo of a value cannot be made, now or later: it is behind us, and the next one is reached.
    pub(crate) fn close_undo(&mut self, client: ClientId, cause: CommandId, closes: &Op, why: &Notice) {
        let (word, what) = match closes.title.split_once(' ') {
            Some(("redo", what)) => ("redo", what),
            Some((_, what)) => ("undo", what),
            None => ("undo", closes.title.as_str()),
        };
        let (done, next) = match word {
            "redo" => ("Not redone", "The next redo continues with the step after it"),
            _ => ("Not undone", "The next undo continues with the step before it"),
        };
        let said = format!("{done}: {what}; {}. {next}", why.message);
        let mut append = self.append();
        append.op = Some(closes.clone());
        let reply = Box::new(ReplyEvent::DoneReply { said });
        self.save(append, Vec::new(), Then::Tell { client, cause, reply });
    }

    /// Tells that an undo moved the conversation, and goes on with what belongs to it.
    pub(crate) fn undone_move(
        &mut self,
        client: ClientId,
        cause: CommandId,
        title: &str,
        rest: Option<Rest>,
    ) {
        let on = format!(": the branch {} is now open", self.branch().word());
        let then = Then::Named { client, cause, label: None, said: Some(said(title, &on)) };
        self.saves.push_after(After { events: Vec::new(), then });
        if let Some(rest) = rest {
            self.undo_rest(client, cause, rest);
        }
    }
}

/// What was done, in a sentence. `title` is that of the row.
pub(crate) fn said(title: &str, more: &str) -> String {
    let (word, what) = match title.split_once(' ') {
        Some(("undo", what)) => ("Undone", what),
        Some(("redo", what)) => ("Redone", what),
        _ => ("Done", title),
    };
    format!("{word}: {what}{more}")
}
