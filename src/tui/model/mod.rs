//! What the engine has said so far, one file per concern. Changed in `apply` only.

pub mod conversation;
pub mod kinds;
pub mod remarks;
mod talk;
pub mod tour;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tiller_protocol::agent::{AgentView, Receipt};
use tiller_protocol::event::{ReplyEvent, StateEvent, TurnEvent};
use tiller_protocol::view::{GitState, Snapshot};
use tiller_protocol::{
    AgentId, Ask, AskId, BranchName, Cost, EffortView, Event, EventBody, FileChange, GoalView, ModelRef,
    Notice, Profile, Queued, QueuedState, SessionSummary, Time, TodoItem, Usage, WorkflowView,
};

pub use talk::Talk;
pub(crate) use talk::Whose;

/// The whole view-model. Each field belongs to one concern. Session, conversation, todo, queue, running and retry
/// are those of the agent that is shown.
#[derive(Default)]
pub struct Model {
    /// The agent that is shown; `None`: the main one.
    pub(crate) shown: Option<AgentId>,
    /// The main agent's, while another is shown.
    pub(crate) home: Box<Talk>,
    /// Title, project, model, profile, git, cost: what the header shows.
    pub session: SessionModel,
    pub conversation: conversation::Conversation,
    pub todo: Vec<TodoItem>,
    pub agents: Vec<AgentView>,
    /// Workflows of the session, in the order in which they were started.
    pub workflows: Vec<WorkflowView>,
    /// How far the last message to each agent has come.
    pub receipts: HashMap<AgentId, Receipt>,
    pub feed: Vec<FileChange>,
    pub queue: Vec<Queued>,
    /// Open questions, oldest first.
    pub asks: Vec<Ask>,
    /// When an approval that nobody answers becomes a no (monotonic), where that is set.
    pub deadlines: HashMap<AskId, Duration>,
    /// Newest last; also the error log.
    pub notices: Vec<(Time, Notice)>,
    /// A turn runs.
    pub running: bool,
    /// Waiting for the next try: attempt, of, when it starts (event time + seconds), why.
    pub retry: Option<Retry>,
    /// The store does not save: why.
    pub not_saving: Option<String>,
    /// Where files of the screen are kept.
    pub folders: Folders,
    /// Remarks of diff reviews that were not sent yet.
    pub remarks: remarks::RemarkBook,
    /// What the person's own status line says, cleaned; empty: nothing.
    pub status_line: String,
    /// The person's settings of the screen.
    pub ui: Arc<tiller_config::schema::Ui>,
    /// Wall and monotonic time of the message that is being dealt with. Panels take times from here.
    pub now: Time,
    pub mono: Duration,
    /// The terminal window has lost the focus (never true where terminals do not tell).
    pub away: bool,
    /// When the window got the focus back (monotonic).
    pub back: Duration,
    /// The guided tour, while it runs.
    pub tour: tour::Tour,
    /// Columns and rows of the screen.
    pub screen: (u16, u16),
    /// The terminal can move a part of its columns alone.
    pub sides: bool,
    /// The engine has answered: a snapshot is here.
    pub ready: bool,
    /// The folder brings settings or rules that are not trusted, and so not in use.
    pub restricted: bool,
    /// The screen can be left while the work goes on.
    pub detachable: bool,
    /// Background processes of this session, as the engine told last.
    pub processes: Vec<Process>,
    /// Kinds of agents that can be started by hand.
    pub kinds: Vec<crate::model::kinds::AgentKind>,
    /// The agent whose terminal is shown, or was last.
    pub pane: Option<AgentId>,
    /// How often programs in terminals had rung the bell when the person looked last.
    pub bells: HashMap<AgentId, u32>,
    /// Names of agent programs that are installed here.
    pub found_agents: Vec<String>,
    /// Keys of the environment that can be offered by name.
    pub found_keys: Vec<crate::model::kinds::FoundKey>,
}

/// The header's facts.
#[derive(Default)]
pub struct SessionModel {
    pub summary: Option<SessionSummary>,
    pub model: ModelRef,
    pub profile: Profile,
    pub effort: EffortView,
    pub read_only: bool,
    /// The branch of the session that is open.
    pub branch: BranchName,
    pub git: Option<GitState>,
    pub usage: Usage,
    pub cost: Option<Cost>,
    pub context: u64,
    pub window: Option<u64>,
    /// What the agent pursues by itself.
    pub goal: Option<GoalView>,
}

/// A background process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// `p1`.
    pub id: String,
    /// `running for 12 s`, `ended, exit 0`.
    pub state: String,
    pub command: String,
    /// What it said last; empty: nothing.
    pub last: String,
}

impl Process {
    /// From the engine's row: `p1: running for 12 s: COMMAND`, then perhaps a line with what it said last.
    pub fn read(row: &str) -> Option<Self> {
        let (head, last) = row.split_once('\n').unwrap_or((row, ""));
        let (id, rest) = head.split_once(": ")?;
        let (state, command) = rest.split_once(": ").unwrap_or((rest, ""));
        let text = |t: &str| crate::text::clean::plain(t.trim()).into_owned();
        Some(Self { id: text(id), state: text(state), command: text(command), last: text(last) })
    }

    /// It has not ended.
    pub fn lives(&self) -> bool {
        self.state.starts_with("running")
    }
}

/// Places of the screen's own files.
#[derive(Clone, Debug, Default)]
pub struct Folders {
    /// The person's configuration: `keys.toml`, `themes/`; `None`: nothing can be kept.
    pub config: Option<std::path::PathBuf>,
    /// The folder of this workspace's drafts; `None`: they are not kept.
    pub draft: Option<std::path::PathBuf>,
    /// Files for the external editor.
    pub scratch: std::path::PathBuf,
}

/// A countdown.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    pub attempt: u32,
    pub of: u32,
    pub until: Time,
    pub why: String,
}

impl Model {
    /// Messages that have not gone out yet, next one first.
    pub(crate) fn waiting(&self) -> impl DoubleEndedIterator<Item = &Queued> {
        self.queue.iter().filter(|q| q.state != QueuedState::Delivered)
    }

    /// Something runs that Escape stops: a turn, or the check of a goal.
    pub fn stoppable(&self) -> bool {
        let checks = |g: &GoalView| g.state == tiller_protocol::GoalState::Checking;
        self.running || self.session.goal.as_ref().is_some_and(checks)
    }

    /// Takes an event of the shown agent's in.
    fn take_in(&mut self, event: &Event) {
        self.conversation.apply(event);
        match &event.body {
            EventBody::Turn(e) => self.turn(event.time, e),
            EventBody::State(e) => self.state(event.time, e),
            EventBody::Reply(r) => match r.as_ref() {
                ReplyEvent::SnapshotReply { snapshot } => self.snapshot(event, snapshot),
                ReplyEvent::ProcessesReply { rows } => {
                    self.processes = rows.iter().filter_map(|row| Process::read(row)).collect();
                }
                _ => {}
            },
            EventBody::Tool(_) | EventBody::Ask(_) => {}
        }
    }

    /// The whole state of an agent; the main one's tells of everybody.
    fn snapshot(&mut self, event: &Event, snapshot: &Snapshot) {
        let s = snapshot.clone();
        self.session.model = s.model;
        self.session.profile = s.profile;
        self.session.effort = *s.effort;
        self.session.read_only = s.read_only;
        self.session.branch = s.branch;
        // An agent of the crew does not look at git: it is the main one's folder.
        self.session.git = if event.agent.is_main() { s.git } else { s.git.or(self.session.git.take()) };
        self.session.usage = s.usage;
        self.session.cost = s.cost;
        if let Some(a) = s.agents.iter().find(|a| a.id == event.agent) {
            self.session.context = a.context;
            self.session.window = a.window;
        }
        self.session.summary = Some(s.session);
        self.todo = s.todo;
        self.queue = s.queue;
        self.running = s.running;
        self.session.goal = s.goal.map(|g| *g);
        if event.agent.is_main() {
            self.agents = s.agents;
            self.workflows = s.workflows;
            let known: Vec<&AgentId> = self.agents.iter().map(|a| &a.id).collect();
            self.receipts.retain(|id, _| known.contains(&id));
            self.asks = s.asks;
            self.feed = s.feed;
            self.ready = true;
        }
    }

    fn turn(&mut self, now: Time, e: &TurnEvent) {
        match e {
            TurnEvent::TurnStarted {} => {
                self.running = true;
                // Whatever had been left unfinished: it goes on, or something else begins.
                if let Some(s) = &mut self.session.summary {
                    s.interrupted = None;
                }
            }
            TurnEvent::Retrying { attempt, of, seconds, why, .. } => {
                let until = Time(now.millis() + (seconds * 1000.0) as i64);
                self.retry = Some(Retry { attempt: *attempt, of: *of, until, why: why.clone() });
            }
            TurnEvent::RetryEnded {} => self.retry = None,
            TurnEvent::Usage { usage, cost_usd, context, window } => {
                self.session.usage = *usage;
                self.session.cost = cost_usd.map(Cost::from_usd);
                self.session.context = *context;
                self.session.window = *window;
            }
            TurnEvent::TurnFinished { error, .. } => {
                self.running = false;
                self.retry = None;
                if let Some(n) = error {
                    self.notices.push((now, n.clone()));
                }
            }
            _ => {}
        }
    }

    fn state(&mut self, now: Time, e: &StateEvent) {
        /// Lines of the feed that are kept.
        const FEED: usize = 1000;
        match e {
            StateEvent::TodoChanged { todos, .. } => self.todo.clone_from(todos),
            StateEvent::AgentChanged { view } => match self.agents.iter_mut().find(|a| a.id == view.id) {
                Some(a) => *a = view.clone(),
                None => self.agents.push(view.clone()),
            },
            StateEvent::WorkflowChanged { view } => {
                match self.workflows.iter_mut().find(|w| w.id == view.id) {
                    Some(w) => w.clone_from(view),
                    None => self.workflows.push(view.clone()),
                }
            }
            StateEvent::QueueChanged { queue } => self.queue.clone_from(queue),
            StateEvent::WorkspaceChanged { changes } => {
                self.feed.extend(changes.iter().cloned());
                let over = self.feed.len().saturating_sub(FEED);
                self.feed.drain(..over);
            }
            StateEvent::GitChanged { git } => self.session.git = Some(git.clone()),
            StateEvent::ModelChanged { model, window } => {
                self.session.model = model.clone();
                self.session.window = *window;
            }
            StateEvent::ProfileChanged { profile } => self.session.profile = *profile,
            StateEvent::EffortChanged { effort } => self.session.effort.clone_from(effort),
            StateEvent::GoalChanged { goal } => self.session.goal.clone_from(goal),
            StateEvent::TitleChanged { title } => {
                if let Some(s) = &mut self.session.summary {
                    s.title.clone_from(title);
                }
            }
            StateEvent::HeadMoved { branch, .. } if !branch.is_empty() => {
                self.session.branch = branch.clone()
            }
            StateEvent::BranchNamed { branch } if branch.head == self.session.branch.head => {
                self.session.branch = branch.clone();
            }
            StateEvent::Notice { notice } => self.notices.push((now, notice.clone())),
            StateEvent::Saving { ok, why } => self.not_saving = (!ok).then(|| why.clone()),
            _ => {}
        }
    }
}
