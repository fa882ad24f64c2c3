//! State of one agent: its session, conversation, plan, queue and turn.

use tiller_protocol::event::{StateEvent, TurnEvent};
use tiller_protocol::view::{GitState, Snapshot};
use tiller_protocol::{
    AgentId, BranchName, Cost, EffortView, Event, EventBody, GoalState, GoalView, ModelRef, Profile, Queued,
    QueuedState, SessionSummary, Time, TodoItem, ToolCatalog, Usage,
};

use super::conversation::{Change, Conversation};
use super::tracked::{Revision, Tracked};

/// State of one agent.
#[derive(Default)]
pub struct AgentModel {
    /// Title, project, model, profile, git, cost: what the header shows.
    pub session: Tracked<SessionModel>,
    pub conversation: Tracked<Conversation>,
    /// Number of the conversation's state apart from the words that are being written.
    pub(super) outline: Revision,
    pub todo: Tracked<Vec<TodoItem>>,
    /// Messages in the order in which they go out; also those that the agent has read.
    pub queue: Tracked<Vec<Queued>>,
    pub turn: Tracked<TurnModel>,
}

/// The header's facts.
#[derive(Default)]
pub struct SessionModel {
    pub summary: Option<SessionSummary>,
    pub model: ModelRef,
    pub profile: Profile,
    /// The engine has said which profile holds. Before that `profile` is only the default, and a key that goes on
    /// from it could raise the permissions that the command line chose.
    pub profile_known: bool,
    pub effort: EffortView,
    pub read_only: bool,
    /// The branch of the session that is open.
    pub branch: BranchName,
    pub git: Option<GitState>,
    pub usage: Usage,
    pub cost: Option<Cost>,
    /// Tokens that the last request took of the context window.
    pub context: u64,
    /// Tokens of the context window; `None`: not known.
    pub window: Option<u64>,
    /// The goal that the agent works towards.
    pub goal: Option<GoalView>,
}

/// The turn that runs, if one does, and what it waits for.
#[derive(Default)]
pub struct TurnModel {
    pub running: bool,
    /// The next try of a request that failed.
    pub retry: Option<Retry>,
    /// The first token of a reply.
    pub awaited: Option<AwaitedToken>,
}

/// The wait for the first token of a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct AwaitedToken {
    pub since: Time,
    /// Seconds after which it ends; `None`: it has no limit.
    pub limit: Option<u64>,
    /// The setting of the limit.
    pub setting: String,
    /// Percent of the prompt that the server has read.
    pub progress: Option<u8>,
}

impl AwaitedToken {
    /// Whole seconds until now.
    pub(crate) fn seconds(&self, now: Time) -> u64 {
        (now.millis() - self.since.millis()).max(0).unsigned_abs() / 1000
    }
}

/// A countdown to the next try.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// Number of the next try, from 1 on.
    pub attempt: u32,
    /// Tries in all.
    pub of: u32,
    pub until: Time,
    /// Why the last try failed.
    pub why: String,
}

impl AgentModel {
    /// An agent of which nothing is known yet. `tools`: those of this program.
    pub(super) fn new(tools: ToolCatalog) -> Self {
        Self { conversation: Tracked::new(Conversation::new(tools)), ..Self::default() }
    }

    /// Messages that have not gone out yet, next one first.
    pub(crate) fn waiting(&self) -> impl DoubleEndedIterator<Item = &Queued> {
        self.queue.iter().filter(|q| q.state != QueuedState::Delivered)
    }

    /// Something runs that Escape stops: a turn, or the check of a goal.
    pub fn stoppable(&self) -> bool {
        let checks = |g: &GoalView| g.state == GoalState::Checking;
        self.turn.running || self.session.goal.as_ref().is_some_and(checks)
    }

    /// Takes an event of this agent in.
    pub(super) fn apply(&mut self, event: &Event) {
        self.converse(event);
        match &event.body {
            EventBody::Turn(e) => self.turn(event.time, e),
            EventBody::State(e) => self.state(e),
            EventBody::Reply(_) | EventBody::Tool(_) | EventBody::Ask(_) => {}
        }
    }

    /// Takes an event into the conversation, and notes what it changed there.
    pub(super) fn converse(&mut self, event: &Event) {
        let cells = self.conversation.cells().len();
        self.conversation.untracked().apply(event);
        let grown = self.conversation.cells().len() != cells;
        let change = if grown { Change::Outline } else { Change::of(event) };
        if change != Change::Nothing {
            self.conversation.touch();
        }
        if change == Change::Outline {
            self.outline = Revision::fresh();
        }
    }

    /// Takes the whole state of the agent `id` in.
    pub(super) fn snapshot(&mut self, id: &AgentId, s: &Snapshot) {
        let session = &mut *self.session;
        session.model = s.model.clone();
        session.profile = s.profile;
        session.profile_known = true;
        session.effort = (*s.effort).clone();
        session.read_only = s.read_only;
        session.branch = s.branch.clone();
        // Snapshots of other agents carry no git state: the folder is the main agent's.
        session.git = if id.is_main() { s.git.clone() } else { s.git.clone().or(session.git.take()) };
        session.usage = s.usage;
        session.cost = s.cost;
        if let Some(a) = s.agents.iter().find(|a| a.id == *id) {
            session.context = a.context;
            session.window = a.window;
        }
        session.summary = Some(s.session.clone());
        session.goal = s.goal.as_deref().cloned();
        *self.todo = s.todo.clone();
        *self.queue = s.queue.clone();
        self.turn.running = s.running;
    }

    fn turn(&mut self, now: Time, e: &TurnEvent) {
        let goes_on =
            matches!(e, TurnEvent::Awaiting { .. } | TurnEvent::Usage { .. } | TurnEvent::EntryAdded { .. });
        if !goes_on && self.turn.awaited.is_some() {
            self.turn.awaited = None;
        }
        match e {
            TurnEvent::TurnStarted {} => {
                self.turn.running = true;
                // The interrupted turn goes on, or another one has begun.
                if let Some(s) = &mut self.session.summary {
                    s.interrupted = None;
                }
            }
            TurnEvent::Awaiting { seconds, limit, setting, progress } => {
                let since = Time(now.millis() - (seconds * 1000.0) as i64);
                self.turn.awaited = Some(AwaitedToken {
                    since: self.turn.awaited.as_ref().map_or(since, |a| a.since.min(since)),
                    limit: limit.map(|limit| limit as u64),
                    setting: setting.clone(),
                    progress: *progress,
                });
            }
            TurnEvent::Retrying { attempt, of, seconds, why, .. } => {
                let until = Time(now.millis() + (seconds * 1000.0) as i64);
                self.turn.retry = Some(Retry { attempt: *attempt, of: *of, until, why: why.clone() });
            }
            TurnEvent::RetryEnded {} => self.turn.retry = None,
            TurnEvent::Usage { usage, cost_usd, context, window } => {
                let session = &mut *self.session;
                session.usage = *usage;
                session.cost = cost_usd.map(Cost::from_usd);
                session.context = *context;
                session.window = *window;
            }
            TurnEvent::TurnFinished { .. } => *self.turn = TurnModel::default(),
            _ => {}
        }
    }

    fn state(&mut self, e: &StateEvent) {
        match e {
            StateEvent::TodoChanged { todos, .. } => self.todo.clone_from(todos),
            StateEvent::QueueChanged { queue } => self.queue.clone_from(queue),
            StateEvent::ModelChanged { model, window } => {
                self.session.model = model.clone();
                self.session.window = *window;
            }
            StateEvent::ProfileChanged { profile } => {
                self.session.profile = *profile;
                self.session.profile_known = true;
            }
            StateEvent::EffortChanged { effort } => self.session.effort.clone_from(effort),
            StateEvent::GoalChanged { goal } => self.session.goal.clone_from(goal),
            StateEvent::TitleChanged { title } => {
                if let Some(s) = &mut self.session.summary {
                    s.title.clone_from(title);
                }
            }
            StateEvent::HeadMoved { branch, .. } if !branch.is_empty() => {
                self.session.branch = branch.clone();
            }
            StateEvent::BranchNamed { branch } if branch.head == self.session.branch.head => {
                self.session.branch = branch.clone();
            }
            _ => {}
        }
    }
}
