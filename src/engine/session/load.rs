//! Reads a stored session away from the engine's task.

use std::sync::{Arc, PoisonError};

use tiller_protocol::PermissionOutcome;
use tiller_protocol::restore::TurnChanges;
use tiller_protocol::{AgentId, Ask, Cost, Entry, EntryBody, ModelRef, Profile, Queued, SessionId, TodoItem};
use tiller_store::{CostSum, MadeBy, Running, SessionRow, Store, StoreError};

use super::lease_guard::LeaseGuard;
use super::{Approvals, Head, History, Session, SessionInfo, TAIL, Totals};
use crate::core::services::{Human, Services};

/// Everything of a session that is needed to continue it.
pub(crate) struct SessionData {
    /// Its lease is in `held`.
    pub(crate) session: Session,
    pub(crate) held: LeaseGuard,
    pub(crate) todos: Vec<TodoItem>,
    pub(crate) queue: Vec<Queued>,
    pub(crate) asks: Vec<Ask>,
    /// Bodies of entries that wait for their place.
    pub(crate) pending: Vec<EntryBody>,
    pub(crate) rules: Vec<String>,
    pub(crate) running: Option<Running>,
    pub(crate) budget: Option<Cost>,
    pub(crate) spent: CostSum,
    /// It was made in another folder: its permissions do not apply here.
    pub(crate) foreign: bool,
    /// The other process that has it open.
    pub(crate) holder: Option<String>,
    pub(crate) damaged: u32,
    /// Calls that were refused because no user was present, since the user's last action in it.
    pub(crate) refused: usize,
    /// The session's own model, where another one takes its place.
    pub(crate) replaced: Option<ModelRef>,
}

impl SessionData {
    /// The session with its own model, also where that cannot be used: it was chosen for the agent, or names a program of
    /// another vendor, which is no provider.
    pub(crate) fn with_own_model(mut self) -> Self {
        if let Some(model) = self.replaced.take() {
            self.session.model = model;
        }
        self
    }
}

/// The model that answers in a session with this model, and the latter where it cannot be used here: it is of another machine or
/// program, and another one is configured.
fn usable(services: &Services, model: ModelRef) -> (ModelRef, Option<ModelRef>) {
    let providers = services.models.providers.read().unwrap_or_else(PoisonError::into_inner);
    let known = |model: &ModelRef| providers.get(model.provider()).is_ok();
    // One without a model gets the default where it is opened. Where no user sees the notice, it is an error: nothing is paid to
    // another provider unseen.
    if model.0.is_empty() || known(&model) || services.user.human == Human::Absent {
        return (model, None);
    }
    match providers.default_model().filter(known) {
        Some(other) => (other, Some(model)),
        None => (model, None),
    }
}

/// A new, empty session. Its row is made in the background.
pub(crate) fn fresh(services: &Services, model: ModelRef, profile: Profile, read_only: bool) -> Session {
    let now = services.clock.now();
    Session {
        id: SessionId::fresh(&*services.ids, now),
        agent: AgentId::main(),
        info: SessionInfo {
            title: String::new(),
            titled: false,
            project: tiller_protocol::names::written(&services.workspace.root),
            created: now,
            archived: false,
            exec: services.made_by != MadeBy::Person,
            git_branch: String::new(),
        },
        model,
        profile,
        effort: services.config().effort,
        before_plan: None,
        goal: None,
        read_only,
        lease: None,
        head: Head { name: tiller_protocol::BranchName::MAIN.into(), label: String::new(), id: None },
        history: History::default(),
        totals: Totals::default(),
        approvals: Approvals::default(),
        interrupted: None,
    }
}

/// Acquires and reads a stored session, at the branch where the user spoke last.
pub(crate) async fn load(
    services: &Arc<Services>,
    id: SessionId,
    look_only: bool,
) -> Result<SessionData, StoreError> {
    let store = services.store.clone();
    let row = blocking(move || store.sessions().get(id)).await?;
    let (held, holder) = if look_only {
        (LeaseGuard::default(), None)
    } else {
        match LeaseGuard::acquire(&services.store, id, &row.head).await {
            Ok(held) => (held, None),
            Err(StoreError::Held { holder }) => (LeaseGuard::default(), Some(holder)),
            Err(error) => return Err(error),
        }
    };
    let services = Arc::clone(services);
    blocking(move || read(&services, row, held, holder, look_only)).await
}

/// Runs work that may wait for the disk on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| Err(StoreError::Internal(e.to_string())))
}

fn read(
    services: &Services,
    row: SessionRow,
    held: LeaseGuard,
    holder: Option<String>,
    look_only: bool,
) -> Result<SessionData, StoreError> {
    let (store, id) = (&services.store, row.summary.id);
    let context = store.paths().context(id, &row.head)?;
    let tail = store.paths().tail(id, &row.head, u32::try_from(TAIL).unwrap_or(u32::MAX))?;
    let turns = turn_changes(store, id, &tail.entries);
    let running = store.unfinished().interrupted(id, &row.head)?;
    let nobody = |id| -> Result<usize, StoreError> {
        let rows = store.audit().list(Some(id), PermissionOutcome::Nobody.audit_word(), 100)?;
        Ok(rows
            .iter()
            .filter(|r| r.decision == PermissionOutcome::Nobody && r.time >= row.summary.used)
            .count())
    };
    let mut refused = nobody(id)?;
    for agent in store.agents().list(id)? {
        refused += nobody(agent.session)?;
    }
    let damaged = context.damaged;
    let (model, replaced) = usable(services, row.summary.model.clone());
    let spent = store.costs().spent_in(id)?;
    let label = store.branches().list(id)?.into_iter().find(|b| b.name == row.head).map(|b| b.label);
    let foreign = row.summary.project != tiller_protocol::names::written(&services.workspace.root);
    let session = Session {
        id,
        agent: AgentId::main(),
        info: SessionInfo {
            title: row.summary.title.clone(),
            titled: !row.summary.title.is_empty(),
            project: row.summary.project.clone(),
            created: row.summary.created,
            archived: row.summary.archived,
            exec: row.summary.exec,
            git_branch: row.summary.git_branch.clone(),
        },
        model,
        profile: if foreign { row.profile.min(Profile::Ask) } else { row.profile },
        effort: crate::session::kept::effort(store, id)?.unwrap_or(services.config().effort),
        before_plan: crate::session::kept::before_plan(store, id, foreign)?,
        goal: crate::goal::pursuit::kept(store, id)?,
        read_only: look_only || holder.is_some(),
        lease: None,
        head: Head {
            name: row.head.clone(),
            label: label.unwrap_or_default(),
            id: tail.entries.last().map(|e| e.id),
        },
        history: History::new(super::path_of(context), tail, turns),
        totals: Totals {
            usage: usage(store, id)?,
            cost: (spent.calls > spent.unpriced).then_some(spent.cost),
        },
        approvals: Approvals::default(),
        interrupted: None,
    };
    Ok(SessionData {
        todos: store.todos().list(id, &row.head)?,
        queue: store.unfinished().queue(id, &row.head)?,
        asks: store.unfinished().asks(id, &row.head)?,
        pending: store.unfinished().pending(id, &row.head)?,
        rules: if foreign { Vec::new() } else { store.rules().list(id)? },
        // Another process works on it: nothing is interrupted.
        running: running.filter(|_| holder.is_none()),
        budget: row.budget,
        spent,
        foreign,
        holder,
        damaged,
        refused,
        replaced,
        session,
        held,
    })
}

/// What the turns that begin in these entries changed. Only figures are lost when it cannot be read.
pub(crate) fn turn_changes(store: &Store, session: SessionId, entries: &[Entry]) -> Vec<TurnChanges> {
    let read = store.sessions().turn_changes(session, entries.iter());
    read.inspect_err(|error| tracing::warn!(%error, "the changes of turns were not read")).unwrap_or_default()
}

fn usage(store: &Store, id: SessionId) -> Result<tiller_protocol::Usage, StoreError> {
    let mut sum = tiller_protocol::Usage::default();
    for row in store.costs().by(Some(id), tiller_protocol::command::CostBy::Model)? {
        sum.add(&row.usage);
    }
    Ok(sum)
}
