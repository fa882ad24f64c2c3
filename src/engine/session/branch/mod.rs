//! Changes to another existing branch of the open session. Each branch keeps its own queue and questions.

pub(crate) mod carry;
pub(crate) mod fork;
pub(crate) mod leaving;
pub(crate) mod names;

use crate::bus::agent_view;
use crate::bus::read;
use crate::core::follow_up::FollowUp;
use crate::questions::asking;
use crate::session::change;
use crate::session::open;
use crate::session::recover;
use crate::undo::undoing;

use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::op::OpChange;
use tiller_protocol::{AskBody, CommandId, EventBody, Notice, NoticeKind, QueuedState, SessionId};
use tiller_store::{Store, StoreError};

use crate::bus::ClientId;
use crate::context::todo::Todo;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::{After, Then};
use crate::lock::lock;
use crate::prompts::doing::JobKind;
use crate::questions::about::About;
use crate::session::lease_guard::LeaseGuard;
use crate::session::load::{blocking, turn_changes};
use crate::session::msg::{BranchChange, BranchLoaded, BranchState, SessionMsg};
use crate::undo::before::Reviews;

/// Acquires and reads a branch; `None`: it does not exist.
async fn there(
    store: &Store,
    session: SessionId,
    head: &str,
    look_only: bool,
) -> Result<Option<BranchState>, StoreError> {
    let (reads, name) = (store.clone(), head.to_owned());
    let row =
        blocking(move || Ok(reads.branches().list(session)?.into_iter().find(|b| b.name == name))).await?;
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
        let running = store.unfinished().interrupted(session, &head)?;
        let tail = store.paths().tail(session, &head, u32::try_from(super::TAIL).unwrap_or(u32::MAX))?;
        Ok(Some(BranchState {
            label: row.label,
            archived: row.archived,
            path: super::path_of(store.paths().context(session, &head)?),
            turns: turn_changes(&store, session, &tail.entries),
            tail,
            todos: store.todos().list(session, &head)?,
            queue: store.unfinished().queue(session, &head)?,
            asks: store.unfinished().asks(session, &head)?,
            pending: store.unfinished().pending(session, &head)?,
            // Another process works on it: nothing is interrupted.
            running: running.filter(|_| holder.is_none()),
            held,
            holder,
        }))
    };
    blocking(read).await
}

pub(crate) fn open_branch(core: &mut Core, client: ClientId, cause: CommandId, head: String) {
    if head == core.session.head.name && !core.session.read_only {
        let notice = Notice::new(NoticeKind::User, "this is the current branch");
        return core.refuse(client, cause, notice);
    }
    go(
        core,
        client,
        cause,
        BranchChange { head, title: "open branch".into(), of: None, at: None, rest: None },
    );
}

/// Changes to the branch when no turn and no job runs.
pub(crate) fn go(core: &mut Core, client: ClientId, cause: CommandId, going: BranchChange) {
    if core.occupied() {
        let notice = Notice::new(NoticeKind::User, "a turn is running in this session")
            .hint("stop it first, or wait until it ends");
        return core.refuse(client, cause, notice);
    }
    let (no, session, look_only) = (core.next_job(), core.session.id, core.identity.look_only);
    let store = core.services.store.clone();
    let (tx, saves) = (core.tx.clone(), core.saves.barrier());
    let task = tokio::spawn(async move {
        // Its entries may still be being written.
        saves.await;
        let result = there(&store, session, &going.head, look_only).await;
        let _ = tx
            .send(Msg::Session(SessionMsg::BranchLoaded(Box::new(BranchLoaded {
                no,
                client,
                cause,
                going,
                result,
            }))))
            .await;
    });
    core.busy_with(no, JobKind::Other { client, cause }, task);
}

pub(crate) fn went(core: &mut Core, went: BranchLoaded) {
    if core.job_done(went.no) {
        go_on_with(core, went);
        // Sends nothing when the other branch is open: it has its own queue.
        core.follow_up(FollowUp::SendBehindJob);
    }
}

fn go_on_with(core: &mut Core, went: BranchLoaded) {
    let BranchLoaded { client, cause, going, result, .. } = went;
    let there = match (result, going.at) {
        (Ok(Some(there)), _) => there,
        (Ok(None), Some(at)) => return fork::begin_branch(core, client, cause, going, at),
        (Ok(None), None) => {
            let notice = Notice::new(NoticeKind::User, format!("there is no branch {}", going.head))
                .hint("/branch lists them");
            return core.refuse(client, cause, notice);
        }
        (Err(error), _) => return core.refuse(client, cause, error.notice()),
    };
    match &there.holder {
        Some(holder) if going.of.is_some() => {
            let error = StoreError::Held { holder: holder.clone() };
            core.refuse(client, cause, error.notice());
        }
        _ => enter_branch(core, client, cause, going, there),
    }
}

/// Makes it the open branch. What belongs to the whole session (settings, costs, running processes) stays.
fn enter_branch(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    going: BranchChange,
    there: BranchState,
) {
    let BranchState {
        held,
        label,
        archived,
        path,
        tail,
        turns,
        todos,
        queue,
        asks,
        pending,
        running,
        holder,
    } = there;
    let (left, was, wrote) = (core.session.head.name.clone(), core.session.head.id, !core.session.read_only);
    let name = core.session.branch();
    let before = std::mem::replace(&mut core.session.lease, held.take());
    core.session.head.name.clone_from(&going.head);
    core.session.head.label = label;
    core.session.head.id = tail.entries.last().map(|e| e.id);
    core.session.history = super::History::new(path, tail, turns);
    core.session.interrupted = None;
    core.session.read_only = core.identity.look_only || holder.is_some();
    *lock(&core.context.todo) = Todo::new(todos.clone());
    core.prompts.queue = queue;
    core.prompts.queue.iter_mut().for_each(|q| q.state = QueuedState::Accepted);
    core.prompts.pending = pending;
    // The other branch's conversation has no news and no read files of this one.
    core.context.news = crate::context::news::News::default();
    drop(core.watching.writes.found());
    *lock(&core.files.reviews) = Reviews::default();
    lock(&core.services.workspace.seen).clear();
    let head = core.session.head.id;
    if archived && !core.session.read_only && going.of.is_none() {
        // An archived branch that is opened is listed again.
        names::archive_branch(core, client, cause, None, going.head.clone(), false);
    }
    if !core.session.read_only {
        let (name, from) =
            (core.session.head.name.clone(), Some(left.clone()).filter(|l| *l != core.session.head.name));
        let change = OpChange::Head { name: name.clone(), before: was, after: head, from };
        let mut op = change::op(core, core.session.id, cause, &going.title.to_string(), change);
        op.of = going.of;
        let ticket = core.services.store.heads().go_to(core.session.id, &name, Some(op));
        core.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
    }
    let scope = core.scope_of(Some(cause));
    let events = [
        StateEvent::HeadMoved { head, draft: None, branch: core.session.branch() },
        StateEvent::TodoChanged { todos, by_person: true },
        StateEvent::QueueChanged { queue: core.prompts.queue.clone() },
    ];
    core.saves.push_events(events.into_iter().map(|e| (scope.clone(), EventBody::State(e))).collect());
    agent_view::agent_changed(core);
    if !core.session.read_only {
        crate::memory::branches::follow(core);
    }
    if going.of.is_none() {
        leaving::branch_left(core, cause, name, was);
    }
    if let Some(holder) = holder {
        let about = About::Busy { session: core.session.id, head: core.session.head.name.clone() };
        asking::ask_self(core, about, AskBody::SessionBusy { holder });
    } else if !core.session.read_only {
        recover::recover(core, running, &asks);
        if going.rest.is_none() {
            core.follow_up(FollowUp::NextQueued(tiller_protocol::event::TurnStatus::Interrupted));
        }
        if going.of.is_some() {
            undoing::undone_move(core, client, cause, &going.title, going.rest);
        }
    }
    // Done last, since the user does not wait for it.
    open::give_back(core, before);
    if wrote {
        left_behind(core, &left);
    }
}

/// Deletes a head that was left and has no entries of its own.
pub(crate) fn left_behind(core: &mut Core, head: &str) {
    let dropped = core.services.store.heads().drop_bare(core.session.id, head);
    core.saves.push(dropped, After { events: Vec::new(), then: Then::Nothing });
}

/// Answers `Query::Branches`.
pub(crate) fn branches(core: &mut Core, client: ClientId, cause: CommandId) {
    let (store, session, ours) =
        (core.services.store.clone(), core.session.id, core.session.head.name.clone());
    let lease = core.session.lease.is_some();
    // An empty branch may just be being deleted.
    let saves = core.saves.barrier();
    read::read_after(core, client, cause, saves, move || {
        let (branches, tags) = crate::session::branch::names::rows(&store, session, &ours, lease)?;
        Ok(ReplyEvent::BranchesReply { branches, tags })
    });
}
