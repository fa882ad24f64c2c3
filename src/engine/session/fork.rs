//! Going on from an earlier entry, on a branch of its own. The old path stays as it is.

use std::sync::Arc;

use tiller_protocol::event::StateEvent;
use tiller_protocol::op::OpChange;
use tiller_protocol::{
    CommandId, Entry, EntryBody, EntryId, Message, Notice, NoticeKind, SessionId, TodoItem, ToolOutcome,
};
use tiller_store::{Result, Store, StoreError, Tail};

use super::load::blocking;
use super::recover::dangling;
use super::{TAIL, path_of};
use crate::bus::ClientId;
use crate::busy::Doing;
use crate::core::Core;
use crate::msg::Msg;
use crate::saves::Then;
use crate::todo::Todo;
use crate::world::lock;

/// A branch, as the store gives it.
pub(crate) struct Forked {
    no: u64,
    client: ClientId,
    cause: CommandId,
    result: Result<Branch>,
}

#[derive(Default)]
struct Branch {
    head: Option<EntryId>,
    draft: Option<Message>,
    path: Vec<Arc<Entry>>,
    tail: Tail,
    todos: Vec<TodoItem>,
}

impl Core {
    /// The text of a message of the person's comes back as the draft; its branch begins before it.
    pub(crate) fn fork(&mut self, client: ClientId, cause: CommandId, entry: EntryId) {
        let why = if self.s.read_only {
            Some("this session is open for reading only")
        } else if self.occupied() {
            Some("a turn is running: stop it first")
        } else {
            None
        };
        if let Some(why) = why {
            return self.refuse(client, cause, Notice::new(NoticeKind::User, why));
        }
        let (no, store, session) = (self.next_job(), self.w.store.clone(), self.s.id);
        let tx = self.tx.clone();
        let task = tokio::spawn(async move {
            let result = blocking(move || read(&store, session, entry)).await;
            let _ = tx.send(Msg::Forked(Box::new(Forked { no, client, cause, result }))).await;
        });
        self.busy_with(no, Doing::Other { client, cause }, task);
    }

    pub(crate) fn forked(&mut self, f: Forked) {
        if !self.job_done(f.no) {
            return;
        }
        let branch = match f.result {
            Ok(branch) => branch,
            Err(error) => return self.refuse(f.client, f.cause, error.notice()),
        };
        // What waits goes along.
        let mut left = self.append();
        left.queue = Some(Vec::new());
        left.asks = Some(Vec::new());
        left.pending = Some(Vec::new());
        self.save(left, Vec::new(), Then::Nothing);
        let name = self.branch_name();
        let change = OpChange::Head { name: name.clone(), before: self.s.head, after: branch.head };
        let op = self.op(self.s.id, f.cause, "fork", change);
        self.s.path = branch.path;
        self.s.earlier = branch.tail.earlier;
        self.s.tail = branch.tail.entries.into_iter().map(Arc::new).collect();
        self.s.head = branch.head;
        *lock(&self.todo) = Todo::new(branch.todos.clone());
        let events = vec![
            StateEvent::HeadMoved { head: branch.head, draft: branch.draft },
            StateEvent::TodoChanged { todos: branch.todos, by_person: true },
        ];
        self.go_to_branch(name, Some(f.cause), Some(op), events);
        if !(self.queue.is_empty() && self.asks.is_empty() && self.pending.is_empty()) {
            let mut along = self.append();
            along.queue = Some(self.queue.clone());
            along.asks = Some(self.asks_to_keep());
            along.pending = Some(self.pending.clone());
            self.save(along, Vec::new(), Then::Nothing);
        }
        self.close_calls();
        self.next_queued(tiller_protocol::event::TurnStatus::Interrupted);
    }

    /// A branch that begins between a call and its result gets a result, so that it is valid for the API.
    fn close_calls(&mut self) {
        let open = dangling(&self.s.path.iter().map(AsRef::as_ref).collect::<Vec<_>>());
        if open.is_empty() {
            return;
        }
        let mut entries = Vec::new();
        for call in open {
            let text = "Not run on this branch.".to_owned();
            let body = EntryBody::ToolResult {
                call_id: call.id,
                name: call.name,
                outcome: ToolOutcome::Interrupted,
                content: vec![tiller_protocol::Part::Text { text }],
                display: None,
                seconds: 0.0,
            };
            entries.push(self.s.grow(&self.w, body));
        }
        let append = self.append().entries(entries);
        self.save(append, Vec::new(), Then::Nothing);
    }
}

/// What stands at `entry`, or before it when it is a message of the person's.
fn read(store: &Store, session: SessionId, entry: EntryId) -> Result<Branch> {
    let node = store.entry(entry)?;
    if node.session != session {
        return Err(StoreError::Conflict(format!("entry {entry} is of another session")));
    }
    let (head, draft) = match node.body {
        EntryBody::User { message, .. } => (node.parent, Some(message)),
        _ => (Some(node.id), None),
    };
    let Some(at) = head else { return Ok(Branch { draft, ..Branch::default() }) };
    Ok(Branch {
        head,
        draft,
        path: path_of(store.context_at(at)?),
        tail: store.tail_at(at, u32::try_from(TAIL).unwrap_or(u32::MAX))?,
        todos: store.todos_at(at)?,
    })
}
