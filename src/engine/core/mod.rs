//! The engine's loop: one task that owns all state. A model, a tool or a disk is awaited in a task of its own that
//! reports back, so the loop only ever waits for the next report.

pub(crate) mod busy;
pub mod engine;
pub(crate) mod follow_up;
mod handle;
pub(crate) mod hooks;
pub(crate) mod lifecycle;
pub(crate) mod msg;
pub(crate) mod ports;
pub(crate) mod quit;
mod run;
mod sandbox;
pub(crate) mod saves;
pub(crate) mod saving;
pub(crate) mod services;
pub(crate) mod turn_over;

use std::sync::Arc;

use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::{CommandId, EntryId, EventBody, Notice, Part};
use tiller_store::Running;
use tokio::sync::mpsc;

use crate::bus::{Bus, ClientId, EventScope};
use crate::context::part::ContextPart;
use crate::core::lifecycle::Lifecycle;
use crate::core::msg::Msg;
use crate::core::saves::Saves;
use crate::core::services::Services;
use crate::crew::{Crew, CrewHost, NoCrew};
use crate::files::part::FilesPart;
use crate::money::part::MoneyPart;
use crate::prompts::part::PromptPart;
use crate::questions::asks::Asks;
use crate::session::Session;
use crate::turn::Input;
use crate::turn::part::{RunningTurn, TurnPart};

/// The engine's state: one part per concern.
pub(crate) struct Core {
    /// Which agent this engine is.
    pub(crate) identity: crate::crew::AgentIdentity,
    /// The agents that work for this session.
    pub(crate) crew: Box<dyn Crew>,
    pub(crate) services: Arc<Services>,
    pub(crate) bus: Arc<Bus>,
    /// Tasks hold clones; the loop holds the receiver, which closes when the engine ends.
    pub(crate) tx: mpsc::Sender<Msg>,
    pub(crate) session: Session,
    pub(crate) turn: TurnPart,
    pub(crate) prompts: PromptPart,
    pub(crate) asks: Asks,
    pub(crate) context: ContextPart,
    pub(crate) money: MoneyPart,
    pub(crate) files: FilesPart,
    pub(crate) watching: crate::watching::Watching,
    pub(crate) saves: Saves,
    pub(crate) lifecycle: Lifecycle,
}

impl Core {
    pub(crate) fn is_live(&self, turn: u64) -> bool {
        self.turn.live.as_ref().is_some_and(|l| l.no == turn)
    }

    /// Whether a new message would have to wait.
    pub(crate) fn occupied(&self) -> bool {
        self.turn.live.is_some() || self.prompts.busy.is_some()
    }

    /// Events of the turn in flight name the command that began it.
    pub(crate) fn scope(&self) -> EventScope {
        match &self.turn.live {
            Some(live) => live.scope.clone(),
            None => self.scope_of(None),
        }
    }

    pub(crate) fn scope_of(&self, cause: Option<CommandId>) -> EventScope {
        EventScope { session: self.session.id, agent: self.identity.id.clone(), cause }
    }

    pub(crate) fn state(&self, cause: Option<CommandId>, event: StateEvent) {
        self.bus.publish(&self.scope_of(cause), EventBody::State(event));
    }

    pub(crate) fn notice(&self, notice: Notice) {
        self.bus.publish(&self.scope(), EventBody::State(StateEvent::Notice { notice }));
    }

    /// Publishes a notice after the writes that are under way.
    pub(crate) fn notice_after(&mut self, notice: Notice) {
        self.show(self.scope(), EventBody::State(StateEvent::Notice { notice }));
    }

    /// Gives the turn in flight an input. The turn takes it once the present report has been handled.
    pub(crate) fn feed(&mut self, input: Input) {
        self.turn.inputs.push_back(input);
    }

    /// Changes the turn in flight, if there is one.
    pub(crate) fn with_live(&mut self, f: impl FnOnce(&mut RunningTurn)) {
        if let Some(live) = &mut self.turn.live {
            f(live);
        }
    }

    /// Replies to a client that its command is done.
    pub(crate) fn done(&self, client: ClientId, cause: CommandId, said: String) {
        self.bus.reply(client, &self.scope_of(Some(cause)), ReplyEvent::DoneReply { said });
    }

    /// Replies to a client that its command cannot be done.
    pub(crate) fn refuse(&self, client: ClientId, cause: CommandId, notice: Notice) {
        self.bus.reply(client, &self.scope_of(Some(cause)), ReplyEvent::ErrorReply { notice });
    }

    /// Publishes an event of the turn after everything that is still being written, so that readers see one order.
    pub(crate) fn show(&mut self, scope: EventScope, body: EventBody) {
        if self.saves.is_empty() {
            self.bus.publish(&scope, body);
        } else {
            self.saves.push_events(vec![(scope, body)]);
        }
    }

    /// Starts a task that ends with the engine and reports by itself.
    pub(crate) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.lifecycle.tasks.spawn(task);
    }

    /// Describes what the session is doing, for the next start after a crash.
    pub(crate) fn running(&self, what: String) -> Running {
        Running { agent: self.identity.id.0.clone(), what, since: self.services.clock.now() }
    }

    pub(crate) fn news_part(&mut self) -> Option<Part> {
        for outside in self.watching.writes.found() {
            self.context.news.outside(outside);
        }
        let part = self.context.news.take();
        if part.is_some() {
            self.take_ended();
        }
        part
    }

    /// Takes the ends of agents that the next entry reports; they are marked as announced in the same commit.
    fn take_ended(&mut self) {
        let mut ended = self.crew.take_ended();
        if let Some(child) = self.identity.child_mut() {
            ended.agents.extend(child.unannounced.drain(..).map(|(id, _)| id));
        }
        self.saves.ended.agents.extend(ended.agents);
        self.saves.ended.workflows.extend(ended.workflows);
    }

    /// Calls the crew with this loop as its host. The crew is not called again meanwhile.
    pub(crate) fn with_crew<T>(&mut self, call: impl FnOnce(&mut dyn Crew, CrewHost<'_>) -> T) -> T {
        let mut crew = std::mem::replace(&mut self.crew, Box::new(NoCrew));
        let result = call(&mut *crew, CrewHost::new(self));
        self.crew = crew;
        result
    }

    pub(crate) fn entry_event(entry: &tiller_protocol::Entry) -> EventBody {
        EventBody::Turn(tiller_protocol::event::TurnEvent::EntryAdded { node: Box::new(entry.clone()) })
    }

    pub(crate) fn head_id(&self) -> Option<EntryId> {
        self.session.head.id
    }

    /// The text without secrets.
    pub(crate) fn redact(&self, text: &str) -> String {
        (self.services.redaction.redact)(text)
    }
}
