//! Going from one branch of the open session to another that is there. Each keeps what waits on it.

use std::sync::Arc;

use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::op::OpChange;
use tiller_protocol::{
    AskBody, BranchName, CommandId, EntryId, EventBody, Notice, NoticeKind, OpId, QueuedState,
};
use tiller_store::StoreError;

use super::load::{Loaded, blocking, load};
use crate::before::Reviews;
use crate::bus::ClientId;
use crate::busy::Doing;
use crate::core::Core;
use crate::msg::{About, Msg};
use crate::saves::{After, Then};
use crate::todo::Todo;
use crate::undoing::Rest;
use crate::world::lock;

/// Where to go, and what the log says of it.
#[derive(Clone, Debug)]
pub(crate) struct Going {
    pub(crate) head: String,
    /// In the log.
    pub(crate) title: String,
    /// The operation that is undone or done again by it. Such a way never ends in only looking.
    pub(crate) of: Option<OpId>,
    /// Where the branch begins when it is not there any more.
    pub(crate) at: Option<Option<EntryId>>,
    /// What is undone after it.
    pub(crate) rest: Option<Rest>,
}

/// A branch, as the store gives it.
pub(crate) struct Went {
    no: u64,
    client: ClientId,
    cause: CommandId,
    going: Going,
    /// `Ok(None)`: there is no such branch any more.
    result: Result<Option<Loaded>, StoreError>,
}

impl Core {
    pub(crate) fn branch(&self) -> BranchName {
        BranchName { head: self.s.head_name.clone(), label: self.s.label.clone() }
    }

    pub(crate) fn open_branch(&mut self, client: ClientId, cause: CommandId, head: String) {
        if head == self.s.head_name && !self.s.read_only {
            let notice = Notice::new(NoticeKind::User, "you are on that branch");
            return self.refuse(client, cause, notice);
        }
        self.go(client, cause, Going { head, title: "open branch".into(), of: None, at: None, rest: None });
    }

    /// Goes there, when nothing is under way.
    pub(crate) fn go(&mut self, client: ClientId, cause: CommandId, going: Going) {
        if self.occupied() {
            let notice = Notice::new(NoticeKind::User, "a turn is running in this session")
                .hint("stop it first, or wait until it is done");
            return self.refuse(client, cause, notice);
        }
        let (no, w, session, look_only) = (self.next_job(), Arc::clone(&self.w), self.s.id, self.look_only);
        let (tx, saves) = (self.tx.clone(), self.saves.barrier());
        let task = tokio::spawn(async move {
            // What is there may just be on its way to the disk.
            saves.await;
            let (store, head) = (w.store.clone(), going.head.clone());
            let there = blocking(move || Ok(store.heads(session)?.iter().any(|(name, _)| *name == head)));
            let result = match there.await {
                Ok(true) => load(&w, session, Some(going.head.clone()), look_only).await.map(Some),
                Ok(false) => Ok(None),
                Err(error) => Err(error),
            };
            let _ = tx.send(Msg::Went(Box::new(Went { no, client, cause, going, result }))).await;
        });
        self.busy_with(no, Doing::Other { client, cause }, task);
    }

    pub(crate) fn went(&mut self, went: Went) {
        if !self.job_done(went.no) {
            return;
        }
        let Went { client, cause, going, result, .. } = went;
        let loaded = match (result, going.at) {
            (Ok(Some(loaded)), _) => loaded,
            (Ok(None), Some(at)) => return self.begin_branch(client, cause, going, at),
            (Ok(None), None) => {
                let notice = Notice::new(NoticeKind::User, format!("there is no branch {}", going.head))
                    .hint("/branches lists them");
                return self.refuse(client, cause, notice);
            }
            (Err(error), _) => return self.refuse(client, cause, error.notice()),
        };
        match &loaded.holder {
            Some(holder) if going.of.is_some() => {
                let error = StoreError::Held { holder: holder.clone() };
                self.refuse(client, cause, error.notice());
            }
            _ => self.enter_branch(client, cause, going, loaded),
        }
    }

    /// Takes its place. What belongs to the session as a whole (its settings, what it cost, what runs) stays.
    fn enter_branch(&mut self, client: ClientId, cause: CommandId, going: Going, loaded: Loaded) {
        let Loaded { session: there, held, todos, queue, asks, pending, running, holder, .. } = loaded;
        let (left, was, wrote) = (self.s.head_name.clone(), self.s.head, !self.s.read_only);
        self.leave();
        self.s.lease = held.take();
        self.s.head_name = there.head_name;
        self.s.label = there.label;
        self.s.head = there.head;
        self.s.path = there.path;
        self.s.tail = there.tail;
        self.s.earlier = there.earlier;
        self.s.interrupted = None;
        self.s.read_only = there.read_only;
        *lock(&self.todo) = Todo::new(todos.clone());
        self.queue = queue;
        self.queue.iter_mut().for_each(|q| q.state = QueuedState::Accepted);
        self.pending = pending;
        // Another conversation: it was told of nothing, and read nothing, that this one was.
        self.news = crate::news::News::default();
        drop(self.watching.writes.found());
        *lock(&self.reviews) = Reviews::default();
        lock(&self.w.workspace.seen).clear();
        let head = self.s.head;
        if !self.s.read_only {
            let (name, from) =
                (self.s.head_name.clone(), Some(left.clone()).filter(|l| *l != self.s.head_name));
            let change = OpChange::Head { name: name.clone(), before: was, after: head, from };
            let mut op = self.op(self.s.id, cause, &going.title, change);
            op.of = going.of;
            let ticket = self.w.store.go_to_head(self.s.id, &name, Some(op));
            self.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
        }
        if wrote {
            self.left_behind(&left);
        }
        let place = self.place_of(Some(cause));
        let events = [
            StateEvent::HeadMoved { head, draft: None, branch: self.branch() },
            StateEvent::TodoChanged { todos, by_person: true },
            StateEvent::QueueChanged { queue: self.queue.clone() },
        ];
        self.saves.push_events(events.into_iter().map(|e| (place.clone(), EventBody::State(e))).collect());
        self.agent_changed();
        if let Some(holder) = holder {
            let about = About::Busy { session: self.s.id, head: self.s.head_name.clone() };
            self.ask_self(about, AskBody::SessionBusy { holder });
        } else if !self.s.read_only {
            self.recover(running, &asks);
            if going.rest.is_none() {
                self.next_queued(tiller_protocol::event::TurnStatus::Interrupted);
            }
            if going.of.is_some() {
                self.undone_move(client, cause, &going.title, going.rest);
            }
        }
    }

    /// A head that was left and holds nothing of its own is only in the way.
    pub(crate) fn left_behind(&mut self, head: &str) {
        let dropped = self.w.store.drop_bare_head(self.s.id, head);
        self.saves.push(dropped, After { events: Vec::new(), then: Then::Nothing });
    }

    /// Answers `Query::Branches`.
    pub(crate) fn branches(&mut self, client: ClientId, cause: CommandId) {
        let (store, session, ours) = (self.w.store.clone(), self.s.id, self.s.head_name.clone());
        let lease = self.s.lease.is_some();
        self.read(client, cause, move || {
            let (branches, tags) = super::names::rows(&store, session, &ours, lease)?;
            Ok(ReplyEvent::BranchesReply { branches, tags })
        });
    }
}
