//! Opening sessions and branches beside them.

use std::sync::Arc;

use tiller_protocol::event::{StateEvent, TurnEvent};
use tiller_protocol::{
    AskBody, AskReply, CommandId, EntryBody, EventBody, ModelRef, Notice, NoticeKind, Profile, QueuedState,
    SessionId,
};
use tiller_store::{NewSession, Spent, StoreError, Take};

use super::lease_guard::LeaseGuard;
use super::load::{Loaded, fresh, load};
use crate::bus::ClientId;
use crate::context::todo::Todo;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::{After, Then};
use crate::core::services::{Human, Services};
use crate::lock::lock;
use crate::prompts::doing::Doing;
use crate::questions::about::About;
use crate::session::msg::SessionMsg;
use crate::undo::before::Reviews;

/// The answer that ends what runs in the session which is left.
const END: &str = "end and leave";
const STAY: &str = "stay here";

impl Core {
    /// `Open` and `New`: first the turn in flight must be over, and the person must know what else ends.
    pub(crate) fn open(&mut self, client: ClientId, cause: CommandId, id: Option<SessionId>) {
        if id == Some(self.session.id) && !self.session.read_only {
            // It is here already; to take it once more would meet our own lease (which may still be on its way).
            return self.announce(Some(cause), true);
        }
        if self.occupied() {
            let notice = Notice::new(NoticeKind::User, "a turn is running in this session")
                .hint("stop it first, or wait until it is done");
            return self.refuse(client, cause, notice);
        }
        let mut running = lock(&self.services.tool_state).shells.living();
        let lines =
            self.prompts.lines.iter().filter(|(name, _)| !name.starts_with(crate::prompts::msg::LINE));
        running.extend(lines.map(|(_, l)| format!("! {}", l.line)));
        let waiting = self.prompts.typed.views().into_iter().filter(|l| l.waits);
        running.extend(waiting.map(|l| format!("! {} (waiting)", l.line)));
        let agents = self.crew.members.values().filter(|m| m.state().at_work());
        running.extend(agents.map(|m| format!("agent {}: {}", m.id.name(), m.order.label)));
        if running.is_empty() || self.services.human == Human::Absent {
            return self.open_now(client, cause, id);
        }
        let question = format!(
            "Leaving this session ends everything that is running in it:\n{}",
            running.iter().take(10).map(|r| self.redact(r)).collect::<Vec<_>>().join("\n")
        );
        let body = AskBody::Clarify {
            question,
            choices: vec![STAY.into(), END.into()],
            allow_freetext: false,
            multiple: false,
            default: Some(0),
            decides: vec![1],
        };
        self.ask_self(About::Leave { client, cause, id }, body);
    }

    /// The person heard what ends.
    pub(crate) fn leave_answered(
        &mut self,
        client: ClientId,
        cause: CommandId,
        id: Option<SessionId>,
        reply: &Result<AskReply, String>,
    ) {
        let yes = matches!(reply, Ok(AskReply::Choice { answers }) if answers.iter().any(|a| a == END));
        if yes && !self.occupied() {
            return self.open_now(client, cause, id);
        }
        let why = if yes { "a turn is running in this session" } else { "the session stays open" };
        self.refuse(client, cause, Notice::new(NoticeKind::User, why));
    }

    fn open_now(&mut self, client: ClientId, cause: CommandId, id: Option<SessionId>) {
        let Some(id) = id else {
            self.leave();
            self.session = fresh(
                &self.services,
                self.session.model.clone(),
                self.session.profile,
                self.identity.look_only,
            );
            self.enter_fresh();
            return self.announce(Some(cause), false);
        };
        let no = self.next_job();
        let (w, tx, look_only) = (Arc::clone(&self.services), self.tx.clone(), self.identity.look_only);
        let task = tokio::spawn(async move {
            // Stopped meanwhile: what was loaded is dropped, and its lease with it.
            let result = load(&w, id, look_only).await;
            let _ = tx
                .send(Msg::Session(SessionMsg::Opened { no, client, cause, result: Box::new(result) }))
                .await;
        });
        self.busy_with(no, Doing::Other { client, cause }, task);
    }

    pub(crate) fn opened(
        &mut self,
        no: u64,
        client: ClientId,
        cause: CommandId,
        result: Result<Loaded, StoreError>,
    ) {
        if !self.job_done(no) {
            return;
        }
        match result {
            Ok(loaded) => {
                self.enter(loaded);
                self.announce(Some(cause), true);
            }
            Err(error) => {
                self.refuse(client, cause, error.notice());
                self.send_behind_job();
            }
        }
    }

    /// Makes the session, which is fresh, the one that is open.
    pub(crate) fn enter_fresh(&mut self) {
        let session = std::mem::replace(
            &mut self.session,
            fresh(&self.services, ModelRef::default(), Profile::default(), true),
        );
        self.enter(Loaded {
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
            spent: Spent::default(),
            holder: None,
            damaged: 0,
            refused: 0,
        });
        self.create_row();
    }

    /// The row and the lease of a fresh session, in the background. It is listed from its first message on.
    pub(crate) fn create_row(&mut self) {
        if self.session.read_only {
            return;
        }
        let new = NewSession {
            id: self.session.id,
            project: self.session.project.clone(),
            title: self.session.title.clone(),
            model: self.session.model.clone(),
            profile: self.session.profile,
            spawned_by: self.identity.child.as_ref().and_then(|c| c.spawned_by),
            made_by: self.services.made_by,
        };
        let made = self.services.store.create_session(new);
        self.saves.unmade = None;
        self.saves.push(made, After { events: Vec::new(), then: Then::Made });
        if self.session.effort != self.services.config().effort {
            drop(self.keep_effort());
        }
        // Nobody else can know this session yet, so the lease is ours before its ticket resolves; what is
        // written after it in the same order needs no proof of it.
        let lease = self.services.store.acquire(self.session.id, &self.session.head_name, Take::IfFree);
        self.saves.push_lease(lease);
    }

    /// Takes a session's place in the engine; gives the other one back.
    pub(crate) fn enter(&mut self, loaded: Loaded) {
        self.leave();
        let Loaded {
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
        } = loaded;
        // One without entries may have agents, and workflows.
        let stored = session.head.is_some() || held.is_some();
        self.session = session;
        self.session.agent.clone_from(&self.identity.id);
        self.change_crew(stored);
        self.files.last_state = crate::files::LastState::default();
        self.files.named.clear();
        self.session.lease = held.take();
        if self.session.model.0.is_empty() {
            self.session.model = self.services.default_model();
        }
        *lock(&self.context.todo) = Todo::new(todos);
        self.prompts.queue = queue;
        if let Some(goal) = &self.session.goal {
            // It waits for the person's word, and so does its next turn.
            self.prompts.queue.retain(|q| !goal.owns(q));
        }
        self.prompts.queue.iter_mut().for_each(|q| q.state = QueuedState::Accepted);
        self.context.news = crate::context::news::News::default();
        drop(self.watching.writes.found());
        self.prompts.pending = pending;
        *lock(&self.files.reviews) = Reviews::default();
        if self.identity.child.is_none() {
            self.services.permit.restore(&rules);
        }
        self.money.spent.session = spent.cost;
        self.money.limits.new_session(&self.services.config().budget);
        if let Some(limit) = budget {
            self.money.limits.set_session(limit);
        }
        if let Some(limit) = self.money.max_cost {
            self.money.limits.set_session(limit);
        }
        self.money.announced_left = self.money.limits.left(self.money.spent);
        // Questions on the side are answered all the same: they are paid for.
        let lines =
            self.prompts.lines.iter().filter(|(name, _)| !name.starts_with(crate::prompts::msg::LINE));
        lines.for_each(|(_, l)| l.cancel.cancel());
        if self.identity.child.is_none() {
            let old = std::mem::take(&mut *lock(&self.services.tool_state));
            self.spawn(crate::watching::end_children(old));
        }
        lock(&self.services.workspace.seen).clear();
        self.turn.prefix = crate::prompts::compose::prefix(&self.services, self.facts());
        if foreign {
            self.foreign_notice();
        }
        if damaged > 0 {
            let notice = Notice::new(
                NoticeKind::Store,
                format!("{damaged} entries of this session are damaged and shown as notes"),
            );
            self.notice(notice);
        }
        if refused > 0 {
            let notice = Notice::new(
                NoticeKind::Denied,
                format!(
                    "while no terminal was attached, {refused} calls that needed an approval were denied"
                ),
            )
            .hint("/audit lists them");
            self.notice(notice);
        }
        if let Some(holder) = holder {
            let about = About::Busy { session: self.session.id, head: self.session.head_name.clone() };
            self.ask_self(about, AskBody::SessionBusy { holder });
        } else if !self.session.read_only {
            // What waited for a yes in another folder is not run in this one.
            self.recover(running, if foreign { &[] } else { &asks });
        }
    }

    fn foreign_notice(&self) {
        let (there, here) = (&self.session.project, self.services.workspace.root.display());
        let profile = self.session.profile.name();
        let notice = Notice::new(
            NoticeKind::User,
            format!("this session was created in {there}: its file names now refer to files in {here}"),
        )
        .hint(format!("the profile is {profile}, and earlier approvals do not apply here"))
        .hint("to continue there, quit and start Tiller in the other folder");
        self.notice(notice);
    }

    /// Tells the clients which session is open now.
    pub(crate) fn announce(&mut self, cause: Option<CommandId>, resumed: bool) {
        let place = self.place_of(cause);
        let event = TurnEvent::SessionStarted {
            title: self.session.title.clone(),
            project: self.session.project.clone(),
            model: self.session.model.clone(),
            profile: self.session.profile,
            resumed,
        };
        self.bus.publish(&place, EventBody::Turn(event));
        let moved = StateEvent::HeadMoved { head: self.session.head, draft: None, branch: self.branch() };
        self.bus.publish(&place, EventBody::State(moved));
        let effort = self.effort_view();
        self.bus.publish(&place, EventBody::State(StateEvent::EffortChanged { effort }));
        self.agent_changed();
    }

    /// Gives the lease of the open head back.
    pub(crate) fn leave(&mut self) {
        let lease = self.session.lease.take();
        self.give_back(lease);
    }

    /// Another process may hold it.
    pub(crate) fn give_back(&mut self, lease: Option<tiller_store::Lease>) {
        if let Some(lease) = lease {
            let ticket = self.services.store.release(lease);
            self.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
        }
    }

    /// The session is open elsewhere: a branch beside it, or only looking.
    pub(crate) fn busy_answered(&mut self, session: SessionId, head: &str, reply: &Result<AskReply, String>) {
        let still =
            (session, head) == (self.session.id, self.session.head_name.as_str()) && self.session.read_only;
        if !still || !matches!(reply, Ok(AskReply::Branch)) {
            return;
        }
        self.session.read_only = false;
        // What waits there stays there.
        self.prompts.queue.clear();
        self.prompts.pending.clear();
        self.state(None, StateEvent::QueueChanged { queue: Vec::new() });
        let name = self.branch_name();
        self.go_to_branch(name, None, None, Vec::new());
        let notice = Notice::new(
            NoticeKind::Info,
            format!("the branch {} of this session is open", self.session.head_name),
        );
        self.notice(notice);
    }

    /// Entries are added to the new head `name` from now on; it is ours alone.
    pub(crate) fn go_to_branch(
        &mut self,
        name: String,
        cause: Option<CommandId>,
        op: Option<tiller_protocol::Op>,
        events: Vec<StateEvent>,
    ) {
        self.session.head_name = name;
        self.session.label = String::new();
        let (id, head) = (self.session.id, self.session.head);
        let ticket = self.services.store.set_head(id, &self.session.head_name, head, op);
        // Clients take a new snapshot: it can be written again.
        let moved = StateEvent::HeadMoved { head, draft: None, branch: self.branch() };
        let mut shown = vec![(self.place_of(cause), EventBody::State(moved))];
        if !events.is_empty() {
            shown = events.into_iter().map(|e| (self.place_of(cause), EventBody::State(e))).collect();
        }
        self.saves.push(ticket, After { events: shown, then: Then::Nothing });
        // After it, so that the person does not wait for two commits.
        self.leave();
        // As for a fresh session: nobody else can know this head yet.
        let lease = self.services.store.acquire(id, &self.session.head_name, Take::IfFree);
        self.saves.push_lease(lease);
    }

    pub(crate) fn branch_name(&self) -> String {
        let id = self.services.ids.next(self.services.clock.now()).simple().to_string();
        // The last digits are the random ones.
        format!("branch-{}", &id[id.len() - 8..])
    }

    /// Whether an entry is a call's result or anything else that a model sees.
    pub(crate) fn has_words(&self) -> bool {
        self.session.tail.iter().any(|e| matches!(e.body, EntryBody::User { .. }))
    }
}

impl Services {
    /// The model that a session without one begins with.
    pub(crate) fn default_model(&self) -> ModelRef {
        let providers = self.providers.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        providers.default_model().unwrap_or_default()
    }
}
