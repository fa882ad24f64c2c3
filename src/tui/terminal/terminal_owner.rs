//! The screen in a process that is not the shell's job. A client process owns the terminal for it: it receives the
//! shell's signals, stops, and runs programs in the foreground. The screen can be detached from one client and attached
//! to the next; meanwhile nothing is drawn and the work goes on.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tiller_config::schema::OnHangup;
use tiller_protocol::command::TurnCommand;
use tiller_protocol::event::{ToolEvent, TurnStatus};
use tiller_protocol::{AgentState, AgentView, Command, CommandBody, CommandId, Event, EventBody};

use crate::model::Model;

/// The attached terminal. Calls never block, except [`TerminalOwner::dump`].
pub trait TerminalOwner: Send + Sync {
    /// Number of the client, unique in this process.
    fn id(&self) -> u64;
    /// Stops it as Ctrl-Z does (`all`: with those that were started together with it). When it goes on, or
    /// could not be stopped, [`OwnerEvent::Continued`] comes.
    fn stop(&self, all: bool);
    /// Writes text into the terminal's own scrollback and waits for Enter.
    fn dump(&self, text: &str);
    /// Gives the terminal back; the client ends with these words.
    fn leave(&self, words: &str);
}

/// Functions for a screen that can be detached.
#[derive(Clone)]
pub struct DetachHooks {
    /// The terminal that is attached at the start.
    pub owner: Arc<dyn TerminalOwner>,
    /// The fate of the work when the terminal is lost.
    pub on_hangup: OnHangup,
    /// Tells why no other terminal could attach later, as a sentence.
    pub may_leave: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// Called when the screen was left, and at the end of the work without an attached terminal.
    pub left: Arc<dyn Fn(DetachReport<'_>) + Send + Sync>,
}

/// Why the screen has no terminal any more.
#[derive(Clone, Copy, Debug)]
pub enum DetachReport<'a> {
    /// This client was detached.
    By(u64),
    /// The work has ended.
    Ended(&'a WorkSummary),
}

/// A new client with its terminal.
pub struct Attachment {
    pub owner: Arc<dyn TerminalOwner>,
    pub input: OwnedFd,
    pub output: OwnedFd,
    /// The message for the terminal that was attached before.
    pub words: String,
    /// A line for the person.
    pub said: Option<String>,
}

/// A message of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerEvent {
    Resized,
    /// The process was continued; `false`: a requested stop did not happen.
    Continued(bool),
    /// Asked from outside to stop.
    Stop,
    Signal(i32),
    /// An observer moves its view by this many columns and rows.
    Look(i32, i32),
    /// The part in which the cursor is.
    Follow,
    /// The connection was closed without a message.
    Gone,
}

/// A message of the client process, or of a process that wants to attach.
pub enum OwnerMsg {
    From(u64, OwnerEvent),
    Arrive(Attachment),
    /// This terminal wants to observe the screen.
    Watch(Arc<dyn TerminalOwner>, OwnedFd),
    /// Asks for the work that runs here.
    WorkSummary(Box<dyn FnOnce(WorkSummary) + Send>),
    /// Detach the screen; the answer says why not.
    Leave(Box<dyn FnOnce(Result<WorkSummary, String>) + Send>),
}

/// The work that runs here, for `tiller ps`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkSummary {
    pub session: String,
    pub title: String,
    /// A turn of the main agent runs.
    pub turn: bool,
    /// Agents at work, besides the main one.
    pub agents: usize,
    /// Questions and agents that wait for the person.
    pub waiting: usize,
    /// Living background processes.
    pub processes: usize,
    /// A goal is pursued.
    pub goal: bool,
    /// Shell lines of the person's that run.
    pub lines: usize,
    /// How the last turn ended that ended without an attached terminal.
    pub ended: Option<TurnStatus>,
}

/// True when the person paused this agent and no call of it runs: it continues from what is on disk, now or after a restart.
pub(crate) fn rests(a: &AgentView) -> bool {
    a.state == AgentState::Paused && a.act.is_nothing()
}

impl WorkSummary {
    /// As the model has it.
    pub fn of(m: &Model) -> Self {
        let main = m.main_session_model();
        let summary = main.summary.as_ref();
        let works = |a: &AgentView| a.state.at_work() && !rests(a);
        Self {
            session: summary.map(|s| s.id.to_string()).unwrap_or_default(),
            title: summary.map(|s| s.title.clone()).unwrap_or_default(),
            turn: m.main_runs(),
            agents: m.crew.agents.iter().filter(|a| !a.id.is_main() && works(a)).count(),
            waiting: crate::view::words::needs_you(m),
            processes: m.workspace.processes.iter().filter(|p| p.state.runs()).count(),
            goal: main.goal.as_ref().is_some_and(|g| g.state.active()),
            lines: 0,
            ended: None,
        }
    }

    /// True when something works, or waits for the person. A paused agent does neither.
    pub fn at_work(&self) -> bool {
        self.turn || self.goal || self.agents + self.waiting + self.processes + self.lines > 0
    }

    /// In words: `a turn, 2 agents (1 waits for you)`.
    pub fn words(&self) -> String {
        let mut all = Vec::new();
        if self.turn {
            all.push("a turn".to_owned());
        }
        if self.goal {
            all.push("a goal".into());
        }
        let count = |n: usize, one: &str, more: &str| match n {
            0 => None,
            1 => Some(one.to_owned()),
            n => Some(format!("{n} {more}")),
        };
        all.extend(count(self.agents, "an agent", "agents"));
        all.extend(count(self.processes, "a background process", "background processes"));
        all.extend(count(self.lines, "a shell line", "shell lines"));
        let mut text = if all.is_empty() { "nothing".to_owned() } else { all.join(", ") };
        if let Some(waits) = count(self.waiting, "1 needs you", "need you") {
            text.push_str(&format!(" ({waits})"));
        }
        text
    }
}

/// How long nothing must work before a detached screen ends: between two turns, two steps of a
/// workflow or a result and its announcement a moment goes by.
pub(crate) const REST: Duration = Duration::from_secs(2);

/// How often background processes are checked while no client is connected: no event reports their end.
pub(crate) const LOOK: Duration = Duration::from_secs(5);

/// The presence of a terminal: the screen is drawn where there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Presence {
    #[default]
    Here,
    /// The client was asked to stop; it may be continued later.
    Stopped,
    /// No terminal is attached.
    Away,
}

/// The loop's side of the connection to the client.
#[derive(Default)]
pub(crate) struct AttachState {
    pub(crate) host: Option<DetachHooks>,
    pub(crate) owner: Option<Arc<dyn TerminalOwner>>,
    pub(crate) presence: Presence,
    /// Since when nothing works (monotonic), while no terminal is attached.
    pub(crate) idle: Option<Duration>,
    /// The engine received the command to quit.
    pub(crate) ending: bool,
    /// How the last turn ended without an attached terminal.
    pub(crate) ended: Option<TurnStatus>,
    /// Shell lines that were sent and have not ended: the engine tells of their end only.
    pub(crate) lines: Vec<CommandId>,
    pub(crate) observers: crate::terminal::observers::Observers,
}

impl AttachState {
    pub(crate) fn new(host: Option<DetachHooks>) -> Self {
        let owner = host.as_ref().map(|h| Arc::clone(&h.owner));
        Self { host, owner, ..Self::default() }
    }

    /// A command goes to the engine.
    pub(crate) fn sent(&mut self, command: &Command) {
        if self.host.is_some() && matches!(command.body, CommandBody::Turn(TurnCommand::Shell { .. })) {
            self.lines.push(command.id);
        }
    }

    /// Notes the answer to a command: its line has run, or was refused.
    pub(crate) fn heard(&mut self, event: &Event) {
        let over = matches!(event.body, EventBody::Tool(ToolEvent::ShellLine { .. }) | EventBody::Reply(_));
        if let Some(cause) = event.cause.filter(|_| over) {
            self.lines.retain(|id| *id != cause);
        }
    }

    /// True when frames are drawn.
    pub(crate) fn here(&self) -> bool {
        self.presence == Presence::Here
    }
}

#[cfg(test)]
mod tests {
    use tiller_protocol::event::{StateEvent, TurnEvent};
    use tiller_protocol::{AgentId, AgentView, EventBody};

    use super::*;
    use crate::testing::Robot;

    fn agent(id: &str, state: AgentState) -> EventBody {
        let view = AgentView { id: AgentId(id.into()), state, ..AgentView::default() };
        EventBody::State(StateEvent::AgentChanged { view })
    }

    #[test]
    fn what_works_is_told_and_what_was_paused_does_not_count() {
        let mut r = Robot::new(80, 24);
        assert!(!WorkSummary::of(&r.app.model).at_work());
        assert_eq!(WorkSummary::of(&r.app.model).words(), "nothing");
        r.event(agent("main/a1", AgentState::Paused));
        r.event(agent("main/a2", AgentState::Done));
        assert!(!WorkSummary::of(&r.app.model).at_work(), "the person paused it");
        r.event(agent("main/a3", AgentState::Running));
        r.event(agent("main/a4", AgentState::Waiting));
        let facts = WorkSummary::of(&r.app.model);
        assert!(facts.at_work());
        assert_eq!(facts.words(), "2 agents (1 needs you)");
        r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
        assert_eq!(WorkSummary::of(&r.app.model).words(), "a turn, 2 agents (1 needs you)");
    }
}
