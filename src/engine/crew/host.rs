//! The loop of the main agent's engine, as its crew uses it.

use std::path::Path;
use std::sync::{Arc, RwLock};

use tiller_config::Config;
use tiller_config::agents::Definitions;
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::{
    AgentId, AgentView, CommandId, EntryBody, EntryId, EventBody, ModelRef, Notice, ProcessRow, Profile,
    SessionId, Time, ToolCatalog,
};
use tiller_provider::{ProviderError, Providers};
use tiller_store::{Store, Ticket};
use tiller_tool::Workspace;
use tiller_tool::shell::Elsewhere;
use tokio_util::task::AbortOnDropHandle;

use crate::bus::{ClientId, EventScope};
use crate::core::Core;
use crate::core::saves::{After, Then};
use crate::core::services::CrewConfig;
use crate::crew::mailbox::CrewMailbox;
use crate::crew::rights::Grant;
use crate::crew::spawn::{ChildEngine, ChildServices, ChildSpec};
use crate::files::session_diff;
use crate::lock::lock;
use crate::money;
use crate::money::reservations::Reservations;
use crate::session::model;

/// The loop, for the length of one call. It has no state of its own.
pub struct CrewHost<'a> {
    core: &'a mut Core,
}

impl<'a> CrewHost<'a> {
    pub(crate) fn new(core: &'a mut Core) -> Self {
        Self { core }
    }

    /// The same loop, for a shorter time.
    pub fn reborrow(&mut self) -> CrewHost<'_> {
        CrewHost { core: self.core }
    }
}

/// What the engine was given.
impl CrewHost<'_> {
    /// The settings as they are now.
    pub fn config(&self) -> Arc<Config> {
        self.core.services.config()
    }

    /// Kinds of agents, as they are now.
    pub fn roles(&self) -> Definitions {
        self.core.services.roles()
    }

    /// Where sessions are stored.
    pub fn store(&self) -> &Store {
        &self.core.services.store
    }

    /// What agents are made with.
    pub fn crew_config(&self) -> &CrewConfig {
        &self.core.services.crew
    }

    /// Providers of models, as they are now and later.
    pub fn providers(&self) -> Arc<RwLock<Providers>> {
        Arc::clone(&self.core.services.models.providers)
    }

    /// Whether requests can be sent to a model.
    ///
    /// # Errors
    /// When its provider does not exist or cannot be used.
    pub fn check_model(&self, model: &ModelRef) -> Result<(), ProviderError> {
        model::provider(self.core, model).map(drop)
    }

    /// All tools.
    pub fn all_tools(&self) -> ToolCatalog {
        self.core.services.tools.all.catalog()
    }

    /// Whether the last of `chain`, or the main agent if it is empty, has the tool `name`.
    pub fn has_tool(&self, chain: &[Grant<'_>], name: &str) -> bool {
        self.core.services.tools_of(chain).iter().any(|t| t.name() == name)
    }

    /// The row of a background process; a colon after its name is ignored.
    pub fn process_row(&self, name: &str) -> Option<ProcessRow> {
        let rows = lock(&self.core.services.tools.state).shells.rows();
        rows.into_iter().find(|r| r.id == name.trim_end_matches(':'))
    }

    /// The time of day.
    pub fn now(&self) -> Time {
        self.core.services.clock.now()
    }

    /// An id for a new session.
    pub fn new_session_id(&self) -> SessionId {
        SessionId::fresh(&*self.core.services.ids, self.now())
    }

    /// Without secrets.
    pub fn redact(&self, text: &str) -> String {
        self.core.redact(text)
    }
}

/// The session of the main agent.
impl CrewHost<'_> {
    /// Its id.
    pub fn session_id(&self) -> SessionId {
        self.core.session.id
    }

    /// Nothing may be written to it.
    pub fn read_only(&self) -> bool {
        self.core.session.read_only
    }

    /// Its profile.
    pub fn profile(&self) -> Profile {
        self.core.session.profile
    }

    /// Its model.
    pub fn model(&self) -> ModelRef {
        self.core.session.model.clone()
    }

    /// Its last entry.
    pub fn head(&self) -> Option<EntryId> {
        self.core.session.head.id
    }

    /// Adds a note to the conversation. It is not part of requests.
    pub fn add_note(&mut self, text: String) {
        let entry = self.core.session.grow(&self.core.services, EntryBody::Note { text });
        let shown = (self.core.scope(), Core::entry_event(&entry));
        let append = self.core.append().entries(vec![entry]);
        self.core.save(append, vec![shown], Then::Nothing);
    }

    /// Tells the main agent something with its next entry.
    pub fn tell_model(&mut self, text: String) {
        self.core.context.news.must(text);
    }
}

/// Events and replies.
impl CrewHost<'_> {
    /// The main agent's place, with the command that began its turn.
    pub fn scope(&self) -> EventScope {
        self.core.scope()
    }

    /// Publishes an event at once.
    pub fn publish(&self, scope: &EventScope, body: EventBody) {
        self.core.bus.publish(scope, body);
    }

    /// Publishes an event after everything that is on its way to the disk.
    pub fn show(&mut self, scope: EventScope, body: EventBody) {
        self.core.show(scope, body);
    }

    /// Publishes a notice at once.
    pub fn notice(&self, notice: Notice) {
        self.core.notice(notice);
    }

    /// Publishes a notice after everything that is on its way to the disk.
    pub fn notice_after(&mut self, notice: Notice) {
        self.core.notice_after(notice);
    }

    /// Replies that a command is done, after everything that is on its way to the disk.
    pub fn done(&mut self, client: ClientId, cause: CommandId, said: String) {
        let reply = Box::new(ReplyEvent::DoneReply { said });
        self.core.saves.push_after(After { events: Vec::new(), then: Then::Reply { client, cause, reply } });
    }

    /// Replies that a command cannot be carried out.
    pub fn refuse(&self, client: ClientId, cause: CommandId, notice: Notice) {
        self.core.refuse(client, cause, notice);
    }

    /// Replies with what the calls of a session changed in files, as a diff.
    pub fn reply_diff(&mut self, client: ClientId, cause: CommandId, path: String, session: SessionId) {
        session_diff::reply_diff(self.core, client, cause, path, session);
    }
}

/// Writes.
impl CrewHost<'_> {
    /// Publishes these events when a write is on disk.
    pub fn save<T: Send + 'static>(&mut self, ticket: Ticket<T>, events: Vec<(EventScope, EventBody)>) {
        self.core.saves.push(ticket, After { events, then: Then::Nothing });
    }

    /// Publishes the row of an agent when its write is on disk; [`Crew::stored`](crate::crew::Crew::stored) is called in any
    /// case.
    pub fn save_row<T: Send + 'static>(&mut self, ticket: Ticket<T>, session: SessionId, view: AgentView) {
        let scope = EventScope { session, agent: view.id.clone(), cause: None };
        let event = EventBody::State(StateEvent::AgentChanged { view: view.clone() });
        let then = Then::AgentCreated { session, view: Box::new(view) };
        self.core.saves.push(ticket, After { events: vec![(scope, event)], then });
    }
}

/// Money.
impl CrewHost<'_> {
    /// Starts the reservations of the tree anew, for the session that is open now. What was spent today is kept.
    pub fn reset_reservations(&mut self) -> Arc<Reservations> {
        money::spending::reset_reservations(self.core);
        Arc::clone(&self.core.money.reservations)
    }

    /// Limits all agents to what the budgets of session and day leave.
    pub fn limit_money(&mut self) {
        money::spending::set_money_limit(self.core);
    }
}

/// Tasks and agents.
impl CrewHost<'_> {
    /// Runs a task that ends with the engine.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.core.spawn(task);
    }

    /// For tasks that report to the crew.
    pub fn mailbox(&self) -> CrewMailbox {
        CrewMailbox::new(self.core.tx.clone())
    }

    /// The engine ends: no agent may be started.
    pub fn ending(&self) -> bool {
        self.core.lifecycle.stop || self.core.lifecycle.quitting.is_some()
    }

    /// Hands over the task of an agent that ends. The engine waits for it before it ends itself.
    pub fn await_end(&mut self, task: AbortOnDropHandle<()>) {
        self.core.lifecycle.agents.push(task);
    }

    /// Whether commands of an agent can run at a terminal of this name.
    ///
    /// # Errors
    /// A sentence, when they cannot.
    pub fn check_terminal(&self, name: &str) -> Result<(), String> {
        self.terminal(name, &self.core.services.workspace.root).map(drop)
    }

    /// The terminal of this name for a folder; `None`: this machine's own.
    fn terminal(&self, name: &str, root: &Path) -> Result<Option<Arc<dyn Elsewhere>>, String> {
        match &self.core.services.crew.terminals {
            Some(terminals) => terminals.find(name, root),
            None if name == "local" => Ok(None),
            None => Err("there are no other terminals here".into()),
        }
    }

    /// The services of the last of `chain`: never more than those of the agent above it. `folder`: its folder, if that is not
    /// the workspace; else empty. Its task says at which terminal its commands run; without that it is the main agent's.
    ///
    /// # Errors
    /// A sentence, when the folder cannot be opened or the terminal cannot be used.
    pub fn child_services(&self, chain: &[Grant<'_>], folder: &str) -> Result<ChildServices, String> {
        let folder = match folder {
            "" => None,
            folder => {
                let opened = Workspace::new(&tiller_protocol::names::path(folder));
                let opened = opened.map_err(|e| format!("its folder {folder} cannot be opened: {e}"))?;
                let inside = self.core.services.permit.protection(&opened.root);
                Some(opened.protect(inside).like(&self.core.services.workspace))
            }
        };
        let main = &self.core.services.workspace;
        let named = chain.last().and_then(|member| member.brief.terminal.as_deref());
        let named = named.or_else(|| main.terminal().map(|t| t.name()));
        let root = folder.as_ref().map_or(&main.root, |f| &f.root);
        let terminal = named.map_or(Ok(None), |name| self.terminal(name, root))?;
        let services = self.core.services.child(chain, folder, terminal);
        let services = services.map_err(|e| format!("the folder cannot be opened: {e}"))?;
        Ok(ChildServices(Arc::new(services)))
    }

    /// Makes a git worktree of the workspace for an agent. The result is the path of its folder.
    ///
    /// # Errors
    /// A sentence, when agents cannot have their own folders here.
    pub fn make_folder(
        &self,
        agent: &AgentId,
    ) -> Result<impl Future<Output = Result<String, String>> + Send + use<>, String> {
        let Some(make) = self.core.services.crew.folders.clone() else {
            return Err("agents cannot have their own folders here".into());
        };
        let name = format!("{}-{}", &self.core.session.id.0.simple().to_string()[20..], agent.name());
        let place = self.core.services.places.worktrees().join(name);
        let own = Arc::clone(&self.core.services.workspace);
        Ok(async move {
            let work = move || {
                let folder = Workspace::new(&make(&own.root, &place)?).map_err(|e| e.to_string())?;
                Ok(tiller_protocol::names::written(&folder.root))
            };
            let made = tokio::task::spawn_blocking(work).await;
            made.unwrap_or_else(|_| Err("internal error while creating it".into()))
        })
    }

    /// An engine for a child. It does nothing until [`ChildEngine::run`].
    pub fn new_child(&self, spec: ChildSpec, services: ChildServices) -> ChildEngine {
        ChildEngine::new(self.core, spec, services)
    }
}
