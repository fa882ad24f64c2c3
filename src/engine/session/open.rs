//! Opens sessions, and branches beside those that another process has open.

use crate::bus::agent_view;
use crate::context::effort;
use crate::core::follow_up::FollowUp;
use crate::core::hooks;
use crate::questions::asking;
use crate::session::recover;
use crate::turn::begin;
use std::sync::{Arc, PoisonError};

use tiller_protocol::event::{StateEvent, TurnEvent};
use tiller_protocol::{
    AskBody, AskReply, CommandId, EventBody, ModelRef, Notice, NoticeKind, Profile, QueuedState, SessionId,
};
use tiller_store::{AcquireMode, CostSum, NewSession, StoreError};

use super::lease_guard::LeaseGuard;
use super::load::{SessionData, fresh, load};
use crate::bus::ClientId;
use crate::context::todo::Todo;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::{After, Then};
use crate::core::services::Human;
use crate::crew::EndedWork;
use crate::lock::lock;
use crate::prompts::doing::JobKind;
use crate::questions::about::About;
use crate::session::msg::SessionMsg;
use crate::undo::before::Reviews;

/// The answer that ends running work in the session that is left.
const END: &str = "end and leave";
const STAY: &str = "stay here";

/// `Open` and `New`: the turn in flight must have ended, and the user must know what else ends.
pub(crate) fn open(core: &mut Core, client: ClientId, cause: CommandId, id: Option<SessionId>) {
    if id == Some(core.session.id) && !core.session.read_only {
        // It is open already; acquiring it again would conflict with our own lease.
        return announce(core, Some(cause), true);
    }
    if core.occupied() {
        let notice = Notice::new(NoticeKind::User, "a turn is running in this session")
            .hint("stop it first, or wait until it is done");
        return core.refuse(client, cause, notice);
    }
    let mut running = lock(&core.services.tools.state).shells.living();
    let lines = core.prompts.lines.iter().filter(|(name, _)| !name.starts_with(crate::prompts::msg::LINE));
    running.extend(lines.map(|(_, l)| format!("! {}", l.line)));
    let waiting = core.prompts.typed.views().into_iter().filter(|l| l.waits);
    running.extend(waiting.map(|l| format!("! {} (waiting)", l.line)));
    let agents = core.crew.at_work().into_iter();
    running.extend(agents.map(|(id, label)| format!("agent {}: {label}", id.name())));
    if running.is_empty() || core.services.user.human == Human::Absent {
        return open_now(core, client, cause, id);
    }
    let question = format!(
        "Leaving this session ends everything that is running in it:\n{}",
        running.iter().take(10).map(|r| core.redact(r)).collect::<Vec<_>>().join("\n")
    );
    let body = AskBody::Clarify {
        question,
        choices: vec![STAY.into(), END.into()],
        allow_freetext: false,
        multiple: false,
        default: Some(0),
        decides: vec![1],
    };
    asking::ask_self(core, About::Leave { client, cause, id }, body);
}

/// The user answered the question about leaving.
pub(crate) fn leave_answered(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    id: Option<SessionId>,
    reply: &Result<AskReply, String>,
) {
    let yes = matches!(reply, Ok(AskReply::Choice { answers }) if answers.iter().any(|a| a == END));
    if yes && !core.occupied() {
        return open_now(core, client, cause, id);
    }
    let why = if yes { "a turn is running in this session" } else { "the session stays open" };
    core.refuse(client, cause, Notice::new(NoticeKind::User, why));
}

fn open_now(core: &mut Core, client: ClientId, cause: CommandId, id: Option<SessionId>) {
    hooks::left(core);
    crate::memory::save::at_end(core);
    let Some(id) = id else {
        leave(core);
        core.session =
            fresh(&core.services, core.session.model.clone(), core.session.profile, core.identity.look_only);
        enter_fresh(core);
        crate::memory::condense::with_model(core);
        return announce(core, Some(cause), false);
    };
    let no = core.next_job();
    let (services, tx, look_only) = (Arc::clone(&core.services), core.tx.clone(), core.identity.look_only);
    let task = tokio::spawn(async move {
        // When the job was stopped, the loaded session and its lease are dropped.
        let result = load(&services, id, look_only).await;
        let _ =
            tx.send(Msg::Session(SessionMsg::Opened { no, client, cause, result: Box::new(result) })).await;
    });
    core.busy_with(no, JobKind::Other { client, cause }, task);
}

pub(crate) fn opened(
    core: &mut Core,
    no: u64,
    client: ClientId,
    cause: CommandId,
    result: Result<SessionData, StoreError>,
) {
    if !core.job_done(no) {
        return;
    }
    match result {
        Ok(loaded) => {
            enter(core, loaded);
            announce(core, Some(cause), true);
        }
        Err(error) => {
            core.refuse(client, cause, error.notice());
            core.follow_up(FollowUp::SendBehindJob);
        }
    }
}

/// Opens the new session.
pub(crate) fn enter_fresh(core: &mut Core) {
    let session = std::mem::replace(
        &mut core.session,
        fresh(&core.services, ModelRef::default(), Profile::default(), true),
    );
    enter(
        core,
        SessionData {
            session,
            held: LeaseGuard::default(),
            todos: Vec::new(),
            queue: Vec::new(),
            asks: Vec::new(),
            pending: Vec::new(),
            foreign: false,
            rules: Vec::new(),
            running: None,
            budget: None,
            spent: CostSum::default(),
            holder: None,
            damaged: 0,
            refused: 0,
            replaced: None,
        },
    );
    create_row(core);
}

/// Creates the row and the lease of a new session in the background. It is listed from its first message on.
pub(crate) fn create_row(core: &mut Core) {
    if core.session.read_only {
        return;
    }
    let new = NewSession {
        id: core.session.id,
        project: core.session.info.project.clone(),
        title: core.session.info.title.clone(),
        model: core.session.model.clone(),
        profile: core.session.profile,
        spawned_by: core.identity.child().and_then(|c| c.assignment.spawned_by),
        made_by: core.services.made_by,
    };
    let made = core.services.store.sessions().create(new);
    core.saves.unmade = None;
    core.saves.push(made, After { events: Vec::new(), then: Then::SessionCreated });
    if core.session.effort != core.services.config().effort {
        drop(effort::keep_effort(core));
    }
    // No other process knows this session yet, so the lease is granted; later writes of the same queue need no proof
    // of it.
    let lease =
        core.services.store.leases().acquire(core.session.id, &core.session.head.name, AcquireMode::IfFree);
    core.saves.push_lease(lease);
}

/// Makes a loaded session the open one; releases the other.
pub(crate) fn enter(core: &mut Core, loaded: SessionData) {
    leave(core);
    let SessionData {
        session,
        held,
        todos,
        queue,
        asks,
        pending,
        rules,
        running,
        budget,
        spent,
        foreign,
        holder,
        damaged,
        refused,
        replaced,
    } = loaded;
    // A session without entries may have agents and workflows.
    let stored = session.head.id.is_some() || held.is_some();
    core.session = session;
    core.session.agent.clone_from(&core.identity.id);
    if core.identity.owns_session() {
        core.saves.ended = EndedWork::default();
    }
    core.with_crew(|crew, host| crew.session_opened(host, stored));
    core.files.last_state = crate::files::LastState::default();
    core.files.named.clear();
    core.session.lease = held.take();
    if core.session.model.0.is_empty() {
        core.session.model = core.services.models.default_model();
    }
    *lock(&core.context.todo) = Todo::new(todos);
    core.prompts.queue = queue;
    if let Some(goal) = &core.session.goal {
        // The goal and its next turn wait until the user resumes it.
        core.prompts.queue.retain(|q| !goal.owns(q));
    }
    core.prompts.queue.iter_mut().for_each(|q| q.state = QueuedState::Accepted);
    core.context.news = crate::context::news::News::default();
    drop(core.watching.writes.found());
    core.prompts.pending = pending;
    *lock(&core.files.reviews) = Reviews::default();
    if core.identity.owns_session() {
        core.services.permit.restore(&rules);
        core.services.permit.hear_anew(stored);
    }
    core.money.spent.session = spent.cost;
    core.money.limits.new_session(&core.services.config().budget);
    if let Some(limit) = budget {
        core.money.limits.set_session(limit);
    }
    if let Some(limit) = core.money.max_cost {
        core.money.limits.set_session(limit);
    }
    core.money.announced_left = core.money.limits.left(core.money.spent);
    // Side questions are answered all the same: they are paid for.
    let lines = core.prompts.lines.iter().filter(|(name, _)| !name.starts_with(crate::prompts::msg::LINE));
    lines.for_each(|(_, l)| l.cancel.cancel());
    if core.identity.owns_session() {
        let old = std::mem::take(&mut *lock(&core.services.tools.state));
        core.spawn(crate::watching::end_children(old));
    }
    lock(&core.services.workspace.seen).clear();
    core.turn.prefix = crate::prompts::compose::prefix(&core.services, begin::facts(core));
    if foreign {
        foreign_notice(core);
    }
    if let Some(replaced) = replaced {
        let model = &core.session.model;
        let why =
            format!("the model of this session, {replaced}, cannot be used here: {model} answers instead");
        let notice = Notice::new(NoticeKind::Config, why)
            .hint("/model chooses another one; a provider or its key is added in config.toml");
        core.notice(notice);
    }
    if damaged > 0 {
        let notice = Notice::new(
            NoticeKind::Store,
            format!("{damaged} entries of this session are damaged and shown as notes"),
        );
        core.notice(notice);
    }
    if refused > 0 {
        let notice = Notice::new(
            NoticeKind::Denied,
            format!("while no terminal was attached, {refused} calls that needed an approval were denied"),
        )
        .hint("/audit lists them");
        core.notice(notice);
    }
    if let Some(holder) = holder {
        let about = About::Busy { session: core.session.id, head: core.session.head.name.clone() };
        asking::ask_self(core, about, AskBody::SessionBusy { holder });
    } else if !core.session.read_only {
        // A call that waited for approval in another folder does not run in this one.
        recover::recover(core, running, if foreign { &[] } else { &asks });
    }
}

fn foreign_notice(core: &Core) {
    let (there, here) = (&core.session.info.project, core.services.workspace.root.display());
    let profile = core.session.profile.name();
    let notice = Notice::new(
        NoticeKind::User,
        format!("this session was created in {there}: its file names now refer to files in {here}"),
    )
    .hint(format!("the mode is {profile}, and earlier approvals do not apply here"))
    .hint("to continue there, quit and start Tiller in the other folder");
    core.notice(notice);
}

/// Announces the open session to the clients.
pub(crate) fn announce(core: &mut Core, cause: Option<CommandId>, resumed: bool) {
    let scope = core.scope_of(cause);
    let event = TurnEvent::SessionStarted {
        title: core.session.info.title.clone(),
        project: core.session.info.project.clone(),
        model: core.session.model.clone(),
        profile: core.session.profile,
        resumed,
    };
    core.bus.publish(&scope, EventBody::Turn(event));
    let moved =
        StateEvent::HeadMoved { head: core.session.head.id, draft: None, branch: core.session.branch() };
    core.bus.publish(&scope, EventBody::State(moved));
    hooks::opened(core, resumed);
    effort::announce(core);
    agent_view::agent_changed(core);
    unlisted_notice(core);
}

/// Reports a model whose name may be wrong, before the first message fails. Nothing is blocked: a model may be newer than the
/// list.
fn unlisted_notice(core: &Core) {
    let model = &core.session.model;
    let providers = core.services.models.providers.read().unwrap_or_else(PoisonError::into_inner);
    let unlisted = !core.identity.is_child() && providers.is_unlisted(model);
    drop(providers);
    if unlisted {
        let why = format!(
            "the list of models of {} has no {}: if the name is wrong, the first message fails",
            model.provider(),
            model.model()
        );
        core.notice(
            Notice::new(NoticeKind::Config, why).hint("/model shows the models and chooses another one"),
        );
    }
}

/// Releases the lease of the open head.
pub(crate) fn leave(core: &mut Core) {
    let lease = core.session.lease.take();
    give_back(core, lease);
}

/// Releases a lease, so that another process may acquire it.
pub(crate) fn give_back(core: &mut Core, lease: Option<tiller_store::Lease>) {
    if let Some(lease) = lease {
        let ticket = core.services.store.leases().release(lease);
        core.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
    }
}

/// The answer about a session that another process has open: make a branch beside it, or open it read-only.
pub(crate) fn busy_answered(
    core: &mut Core,
    session: SessionId,
    head: &str,
    reply: &Result<AskReply, String>,
) {
    let still =
        (session, head) == (core.session.id, core.session.head.name.as_str()) && core.session.read_only;
    if !still || !matches!(reply, Ok(AskReply::Branch)) {
        return;
    }
    core.session.read_only = false;
    // The other branch's queue stays there.
    core.prompts.queue.clear();
    core.prompts.pending.clear();
    core.state(None, StateEvent::QueueChanged { queue: Vec::new() });
    let name = branch_name(core);
    go_to_branch(core, name, None, None, Vec::new());
    let notice = Notice::new(
        NoticeKind::Info,
        format!("the branch {} of this session is open", core.session.head.name),
    );
    core.notice(notice);
}

/// Entries are added to the new head `name` from now on; no other process has it.
pub(crate) fn go_to_branch(
    core: &mut Core,
    name: String,
    cause: Option<CommandId>,
    op: Option<tiller_protocol::Op>,
    events: Vec<StateEvent>,
) {
    core.session.head.name = name;
    core.session.head.label = String::new();
    let (id, head) = (core.session.id, core.session.head.id);
    let ticket = core.services.store.heads().set(id, &core.session.head.name, head, op);
    // Clients request a new snapshot: the session can be written again.
    let moved = StateEvent::HeadMoved { head, draft: None, branch: core.session.branch() };
    let mut shown = vec![(core.scope_of(cause), EventBody::State(moved))];
    if !events.is_empty() {
        shown = events.into_iter().map(|e| (core.scope_of(cause), EventBody::State(e))).collect();
    }
    core.saves.push(ticket, After { events: shown, then: Then::Nothing });
    // Done afterwards, so that the user does not wait for two commits.
    leave(core);
    // As for a new session: no other process knows this head yet.
    let lease = core.services.store.leases().acquire(id, &core.session.head.name, AcquireMode::IfFree);
    core.saves.push_lease(lease);
}

pub(crate) fn branch_name(core: &Core) -> String {
    let id = core.services.ids.next(core.services.clock.now()).simple().to_string();
    // The last digits of the id are random.
    tiller_protocol::BranchName::generated(&id[id.len() - 8..])
}
