//! Starts a new branch at an earlier entry. The old path stays as it is.

use crate::core::follow_up::FollowUp;
use crate::questions::asking;
use crate::session::branch;
use crate::session::branch::leaving;
use crate::session::change;
use crate::session::open;
use crate::undo::undoing;

use tiller_protocol::event::StateEvent;
use tiller_protocol::op::OpChange;
use tiller_protocol::{
    BranchName, CommandId, EntryBody, EntryId, Message, Notice, NoticeKind, Op, OpId, Origin, SessionId,
    ToolOutcome,
};
use tiller_store::{Result, Store, StoreError};

use crate::bus::ClientId;
use crate::context::todo::Todo;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::Then;
use crate::lock::lock;
use crate::prompts::doing::JobKind;
use crate::prompts::message_commands::stored;
use crate::session::load::blocking;
use crate::session::msg::BranchChange;
use crate::session::msg::{ForkOptions, ForkReport, ForkedBranch, SessionMsg};
use crate::session::recover::dangling;
use crate::session::{TAIL, path_of};

/// A fork at a message of the user's begins before it, and its text is returned as the draft. `with`: the operation
/// that the fork belongs to.
pub(crate) fn fork(core: &mut Core, client: ClientId, cause: CommandId, entry: EntryId, with: Option<OpId>) {
    let why = if core.session.read_only {
        Some("this session is open read-only")
    } else if core.occupied() {
        Some("a turn is running: stop it first")
    } else {
        None
    };
    if let Some(why) = why {
        return core.refuse(client, cause, Notice::new(NoticeKind::User, why));
    }
    let how = ForkOptions { title: Op::FORK.into(), of: None, with, head: None, rest: None };
    let (store, session) = (core.services.store.clone(), core.session.id);
    branch_off(core, client, cause, how, move || read(&store, session, entry));
}

/// Makes a deleted branch again where it began.
pub(crate) fn begin_branch(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    going: BranchChange,
    at: Option<EntryId>,
) {
    let head = Some(going.head).filter(|h| !h.is_empty());
    let store = core.services.store.clone();
    let work = move || at.map_or(Ok(ForkedBranch::default()), |at| read_at(&store, at, None));
    let how = ForkOptions { title: going.title, of: going.of, with: None, head, rest: going.rest };
    branch_off(core, client, cause, how, work);
}

fn branch_off(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    how: ForkOptions,
    work: impl FnOnce() -> Result<ForkedBranch> + Send + 'static,
) {
    let (no, tx) = (core.next_job(), core.tx.clone());
    let task = tokio::spawn(async move {
        let result = blocking(work).await;
        let _ = tx
            .send(Msg::Session(SessionMsg::ForkReport(Box::new(ForkReport {
                no,
                client,
                cause,
                how,
                result,
            }))))
            .await;
    });
    core.busy_with(no, JobKind::Other { client, cause }, task);
}

pub(crate) fn forked(core: &mut Core, f: ForkReport) {
    if !core.job_done(f.no) {
        return;
    }
    let branch = match f.result {
        Ok(branch) => branch,
        Err(error) => {
            core.refuse(f.client, f.cause, error.notice());
            return core.follow_up(FollowUp::SendBehindJob);
        }
    };
    // Waiting messages and questions move along.
    let waits = !(core.prompts.queue.is_empty() && core.asks.is_empty() && core.prompts.pending.is_empty());
    if waits {
        let mut left = core.append();
        left.queue = Some(Vec::new());
        left.asks = Some(Vec::new());
        left.pending = Some(Vec::new());
        core.save(left, Vec::new(), Then::Nothing);
    }
    let name = f.how.head.unwrap_or_else(|| open::branch_name(core));
    let (from, before) = (Some(core.session.head.name.clone()), core.session.head.id);
    let left = core.session.branch();
    let change = OpChange::Head { name: name.clone(), before, after: branch.head, from: from.clone() };
    let mut op = change::op(core, core.session.id, f.cause, &f.how.title.to_string(), change);
    (op.of, op.with) = (f.how.of, f.how.with);
    let turns = std::mem::take(&mut core.session.history.turns);
    core.session.history = crate::session::History::new(branch.path, branch.tail, turns);
    core.session.head.id = branch.head;
    *lock(&core.context.todo) = Todo::new(branch.todos.clone());
    let on = BranchName { head: name.clone(), label: String::new() };
    let events = vec![
        StateEvent::HeadMoved { head: branch.head, draft: branch.draft, branch: on },
        StateEvent::TodoChanged { todos: branch.todos, by_person: true },
    ];
    open::go_to_branch(core, name, Some(f.cause), Some(op), events);
    crate::memory::branches::follow(core);
    from.into_iter().for_each(|left| branch::left_behind(core, &left));
    if waits {
        let mut along = core.append();
        along.queue = Some(core.prompts.queue.clone());
        along.asks = Some(asking::asks_to_keep(core));
        along.pending = Some(core.prompts.pending.clone());
        core.save(along, Vec::new(), Then::Nothing);
    }
    close_calls(core);
    if f.how.of.is_none() {
        leaving::branch_left(core, f.cause, left, before);
    }
    if f.how.rest.is_none() {
        core.follow_up(FollowUp::NextQueued(tiller_protocol::event::TurnStatus::Interrupted));
    }
    if f.how.of.is_some() {
        undoing::undone_move(core, f.client, f.cause, &f.how.title, f.how.rest);
    }
}

/// Adds results to calls that have none at the start of the branch, so that it is valid for the API.
fn close_calls(core: &mut Core) {
    let open = dangling(&core.session.history.path.iter().map(AsRef::as_ref).collect::<Vec<_>>());
    if open.is_empty() {
        return;
    }
    let mut entries = Vec::new();
    for call in open {
        let text = "Not run on this branch.".to_owned();
        let content = vec![tiller_protocol::Part::Text { text }];
        let body = EntryBody::plain_result(call.id, call.name, ToolOutcome::Interrupted, content);
        entries.push(core.session.grow(&core.services, body));
    }
    let append = core.append().entries(entries);
    core.save(append, Vec::new(), Then::Nothing);
}

/// The branch at `entry`, or before it when it is a message. One of the user's is the draft of the branch.
fn read(store: &Store, session: SessionId, entry: EntryId) -> Result<ForkedBranch> {
    let node = store.entries().get(entry)?;
    if node.session != session {
        return Err(StoreError::Conflict(format!("entry {entry} belongs to another session")));
    }
    let head = match &node.body {
        // The commands of the message run again when it is sent again.
        EntryBody::User { .. } => {
            stored::results_before(store, &node)?.last().map_or(node.parent, |first| first.parent)
        }
        _ => Some(node.id),
    };
    let draft = match node.body {
        EntryBody::User { message, origin, .. } if origin != Origin::Task => Some(message),
        _ => None,
    };
    match head {
        Some(at) => read_at(store, at, draft),
        None => Ok(ForkedBranch { draft, ..ForkedBranch::default() }),
    }
}

fn read_at(store: &Store, at: EntryId, draft: Option<Message>) -> Result<ForkedBranch> {
    Ok(ForkedBranch {
        head: Some(at),
        draft,
        path: path_of(store.paths().context_at(at)?),
        tail: store.paths().tail_at(at, u32::try_from(TAIL).unwrap_or(u32::MAX))?,
        todos: store.todos().at(at)?,
    })
}
