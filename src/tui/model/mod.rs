//! The state that the engine has reported so far, one slice per concern. Events change it in [`Model::apply`] only; the screen's
//! own facts (settings, window, tour) are set by `app`.

mod agent;
pub mod conversation;
pub mod kinds;
pub mod remarks;
mod revisions;
mod shown;
mod slices;
pub mod tour;
mod tracked;

use std::sync::Arc;
use std::time::Duration;

use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::view::Snapshot;
use tiller_protocol::{AgentId, Event, EventBody, Notice, Time, ToolCatalog};

pub use agent::{AgentModel, AwaitedToken, Retry, SessionModel, TurnModel};
pub use revisions::{Revisions, Slice};
pub(crate) use shown::EventTarget;
pub use slices::{CrewModel, EngineModel, Environment, Folders, Questions, WindowModel, WorkspaceModel};
pub use tracked::{Revision, Tracked};

/// The whole view-model. Each field is a slice: it belongs to one concern and has a revision of its own.
#[derive(Default)]
pub struct Model {
    /// The agent that is shown; `None`: the main one.
    pub(crate) shown: Tracked<Option<AgentId>>,
    /// State of the shown agent.
    pub agent: AgentModel,
    /// State of the main agent while another one is shown.
    pub(crate) home: Box<AgentModel>,
    pub crew: Tracked<CrewModel>,
    pub questions: Tracked<Questions>,
    pub workspace: Tracked<WorkspaceModel>,
    /// Newest last; also the error log.
    pub notices: Tracked<Vec<(Time, Notice)>>,
    pub engine: Tracked<EngineModel>,
    /// The person's settings of the screen.
    pub ui: Tracked<Arc<tiller_config::schema::Ui>>,
    pub environment: Tracked<Environment>,
    pub window: Tracked<WindowModel>,
    /// The guided tour, while it runs.
    pub tour: Tracked<tour::Tour>,
    /// Remarks of diff reviews that were not sent yet.
    pub remarks: remarks::RemarkBook,
    /// Wall time of the message that is being handled. Panels take times from here.
    pub now: Time,
    /// Monotonic time of the message that is being handled.
    pub mono: Duration,
}

impl Model {
    /// Sets the tools of this program, before the first event.
    pub fn set_tools(&mut self, tools: &ToolCatalog) {
        self.environment.tools = tools.clone();
        self.agent = AgentModel::new(tools.clone());
        *self.home = AgentModel::new(tools.clone());
    }

    /// Nothing was said yet in the conversation on the screen, nothing is under way, and no agent or workflow has to be
    /// shown beside it.
    pub(crate) fn is_start(&self) -> bool {
        let alone = self.crew.workflows.is_empty() && self.crew.agents.iter().all(|a| a.id.is_main());
        let quiet = !self.agent.turn.running && self.agent.conversation.cells().is_empty() && alone;
        quiet && self.shown.is_none() && self.tour.step().is_none()
    }

    /// Takes an event of the shown agent in.
    fn take_in(&mut self, event: &Event) {
        self.agent.apply(event);
        match &event.body {
            EventBody::Turn(tiller_protocol::event::TurnEvent::TurnFinished { error: Some(n), .. }) => {
                self.notices.push((event.time, n.clone()));
            }
            EventBody::State(e) => self.global_state(event.time, e),
            EventBody::Reply(r) => match r.as_ref() {
                ReplyEvent::SnapshotReply { snapshot } => self.snapshot(event, snapshot),
                ReplyEvent::ProcessesReply { rows } => {
                    self.workspace.take_processes(rows);
                }
                _ => {}
            },
            EventBody::Turn(_) | EventBody::Tool(_) | EventBody::Ask(_) => {}
        }
    }

    /// Takes the whole state of an agent in; the main agent's contains the crew, the questions and the feed.
    fn snapshot(&mut self, event: &Event, snapshot: &Snapshot) {
        self.agent.snapshot(&event.agent, snapshot);
        if event.agent.is_main() {
            self.crew.snapshot(snapshot);
            self.questions.open.clone_from(&snapshot.asks);
            self.workspace.feed.clone_from(&snapshot.feed);
            self.engine.sandbox.clone_from(&snapshot.sandbox);
            self.engine.ready = true;
        }
    }

    /// Takes in what is reported for any agent and shown whichever agent is on the screen.
    fn global_state(&mut self, now: Time, e: &StateEvent) {
        match e {
            StateEvent::AgentChanged { view } => self.crew.agent_changed(view),
            StateEvent::WorkflowChanged { view } => self.crew.workflow_changed(view),
            StateEvent::WorkspaceChanged { changes } => self.workspace.changed(changes),
            StateEvent::GitChanged { git } => self.agent.session.git = Some(git.clone()),
            StateEvent::Notice { notice } => self.notices.push((now, notice.clone())),
            StateEvent::SandboxTested { sandbox } => self.engine.sandbox = Some(sandbox.clone()),
            StateEvent::Saving { ok, why } => self.engine.not_saving = (!ok).then(|| why.clone()),
            _ => {}
        }
    }
}
