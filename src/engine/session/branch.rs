//! Going from one branch of the open session to another that is there. Each keeps what waits on it.

use std::sync::Arc;

use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::op::OpChange;
use tiller_protocol::{
    AskBody, BranchName, CommandId, EventBody, Notice, NoticeKind, QueuedState, SessionId,
};
use tiller_store::{Store, StoreError};

use super::lease_guard::LeaseGuard;
use super::load::blocking;
use crate::bus::ClientId;
use crate::context::todo::Todo;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::{After, Then};
use crate::lock::lock;
use crate::prompts::doing::Doing;
use crate::questions::about::About;
use crate::session::msg::{Going, SessionMsg, There, Went};
use crate::undo::before::Reviews;

/// Takes and reads it; `None`: it is not there.
async fn there(
    store: &Store,
    session: SessionId,
    head: &str,
    look_only: bool,
) -> Result<Option<There>, StoreError> {
    let (reads, name) = (store.clone(), head.to_owned());
    let row = blocking(move || Ok(reads.branches(session)?.into_iter().find(|b| b.name == name))).await?;
    let Some(row) = row else { return Ok(None) };
    let (held, holder) = if look_only {
        (LeaseGuard::default(), None)
    } else {
        match LeaseGuard::acquire(store, session, head).await {
            Ok(held) => (held, None),
            Err(StoreError::Held { holder }) => (LeaseGuard::default(), Some(holder)),
            Err(error) => return Err(error),
        }
    };
    let (store, head) = (store.clone(), head.to_owned());
    let read = move || {
        let running = store.interrupted(session, &head)?;
        Ok(Some(There {
            label: row.label,
            archived: row.archived,
            path: super::path_of(store.context_path(session, &head)?),
            tail: store.path_tail(session, &head, u32::try_from(super::TAIL).unwrap_or(u32::MAX))?,
            todos: store.todos(session, &head)?,
            queue: store.queue(session, &head)?,
            asks: store.asks(session, &head)?,
            pending: store.pending(session, &head)?,
            // Another process works on it: nothing is interrupted.
            running: running.filter(|_| holder.is_none()),
            held,
            holder,
        }))
    };
    blocking(read).await
}

impl Core {
    pub(crate) fn branch(&self) -> BranchName {
        BranchName { head: self.session.head_name.clone(), label: self.session.label.clone() }
    }

    pub(crate) fn open_branch(&mut self, client: ClientId, cause: CommandId, head: String) {
        if head == self.session.head_name && !self.session.read_only {
            let notice = Notice::new(NoticeKind::User, "this is the current branch");
            return self.refuse(client, cause, notice);
        }
        self.go(client, cause, Going { head, title: "open branch".into(), of: None, at: None, rest: None });
    }

    /// Goes there, when nothing is under way.
    pub(crate) fn go(&mut self, client: ClientId, cause: CommandId, going: Going) {
        if self.occupied() {
            let notice = Notice::new(NoticeKind::User, "a turn is running in this session")
                .hint("stop it first, or wait until it ends");
            return self.refuse(client, cause, notice);
        }
        let (no, session, look_only) = (self.next_job(), self.session.id, self.identity.look_only);
        let store = self.services.store.clone();
        let (tx, saves) = (self.tx.clone(), self.saves.barrier());
        let task = tokio::spawn(async move {
            // What is there may just be on its way to the disk.
            saves.await;
            let result = there(&store, session, &going.head, look_only).await;
            let _ = tx
                .send(Msg::Session(SessionMsg::Went(Box::new(Went { no, client, cause, going, result }))))
                .await;
        });
        self.busy_with(no, Doing::Other { client, cause }, task);
    }

    pub(crate) fn went(&mut self, went: Went) {
        if self.job_done(went.no) {
            self.go_on_with(went);
            // Sends nothing when the other branch is open: it has its own queue.
            self.send_behind_job();
        }
    }

    fn go_on_with(&mut self, went: Went) {
        let Went { client, cause, going, result, .. } = went;
        let there = match (result, going.at) {
            (Ok(Some(there)), _) => there,
            (Ok(None), Some(at)) => return self.begin_branch(client, cause, going, at),
            (Ok(None), None) => {
                let notice = Notice::new(NoticeKind::User, format!("there is no branch {}", going.head))
                    .hint("/branch lists them");
                return self.refuse(client, cause, notice);
            }
            (Err(error), _) => return self.refuse(client, cause, error.notice()),
        };
        match &there.holder {
            Some(holder) if going.of.is_some() => {
                let error = StoreError::Held { holder: holder.clone() };
                self.refuse(client, cause, error.notice());
            }
            _ => self.enter_branch(client, cause, going, there),
        }
    }

    /// Takes its place. What belongs to the session as a whole (its settings, what it cost, what runs) stays.
    fn enter_branch(&mut self, client: ClientId, cause: CommandId, going: Going, there: There) {
        let There { held, label, archived, path, tail, todos, queue, asks, pending, running, holder } = there;
        let (left, was, wrote) = (self.session.head_name.clone(), self.session.head, !self.session.read_only);
        let name = self.branch();
        let before = std::mem::replace(&mut self.session.lease, held.take());
        self.session.head_name.clone_from(&going.head);
        self.session.label = label;
        self.session.head = tail.entries.last().map(|e| e.id);
        self.session.path = path;
        self.session.earlier = tail.earlier;
        self.session.tail = tail.entries.into_iter().map(Arc::new).collect();
        self.session.interrupted = None;
        self.session.read_only = self.identity.look_only || holder.is_some();
        *lock(&self.context.todo) = Todo::new(todos.clone());
        self.prompts.queue = queue;
        self.prompts.queue.iter_mut().for_each(|q| q.state = QueuedState::Accepted);
        self.prompts.pending = pending;
        // Another conversation: it received nothing, and read nothing, that this one did.
        self.context.news = crate::context::news::News::default();
        drop(self.watching.writes.found());
        *lock(&self.files.reviews) = Reviews::default();
        lock(&self.services.workspace.seen).clear();
        let head = self.session.head;
        if archived && !self.session.read_only && going.of.is_none() {
            // Who goes on with it wants to see it in the list.
            self.archive_branch(client, cause, None, going.head.clone(), false);
        }
        if !self.session.read_only {
            let (name, from) =
                (self.session.head_name.clone(), Some(left.clone()).filter(|l| *l != self.session.head_name));
            let change = OpChange::Head { name: name.clone(), before: was, after: head, from };
            let mut op = self.op(self.session.id, cause, &going.title, change);
            op.of = going.of;
            let ticket = self.services.store.go_to_head(self.session.id, &name, Some(op));
            self.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
        }
        let place = self.place_of(Some(cause));
        let events = [
            StateEvent::HeadMoved { head, draft: None, branch: self.branch() },
            StateEvent::TodoChanged { todos, by_person: true },
            StateEvent::QueueChanged { queue: self.prompts.queue.clone() },
        ];
        self.saves.push_events(events.into_iter().map(|e| (place.clone(), EventBody::State(e))).collect());
        self.agent_changed();
        if going.of.is_none() {
            self.branch_left(cause, name, was);
        }
        if let Some(holder) = holder {
            let about = About::Busy { session: self.session.id, head: self.session.head_name.clone() };
            self.ask_self(about, AskBody::SessionBusy { holder });
        } else if !self.session.read_only {
            self.recover(running, &asks);
            if going.rest.is_none() {
                self.next_queued(tiller_protocol::event::TurnStatus::Interrupted);
            }
            if going.of.is_some() {
                self.undone_move(client, cause, &going.title, going.rest);
            }
        }
        // After all that the person waits for.
        self.give_back(before);
        if wrote {
            self.left_behind(&left);
        }
    }

    /// A head that was left and holds nothing of its own is only in the way.
    pub(crate) fn left_behind(&mut self, head: &str) {
        let dropped = self.services.store.drop_bare_head(self.session.id, head);
        self.saves.push(dropped, After { events: Vec::new(), then: Then::Nothing });
    }

    /// Answers `Query::Branches`.
    pub(crate) fn branches(&mut self, client: ClientId, cause: CommandId) {
        let (store, session, ours) =
            (self.services.store.clone(), self.session.id, self.session.head_name.clone());
        let lease = self.session.lease.is_some();
        // A branch that holds nothing may just be on its way out.
        let saves = self.saves.barrier();
        self.read_after(client, cause, saves, move || {
            let (branches, tags) = super::names::rows(&store, session, &ours, lease)?;
            Ok(ReplyEvent::BranchesReply { branches, tags })
        });
    }
}
