//! Which agent is shown. The main agent's state is kept, and goes on, while another agent is shown, so that going back
//! costs nothing. Of agents that are not shown only rows, questions and notices are taken in; their other events are
//! skipped.

use std::mem::swap;

use tiller_protocol::event::{AskEvent, StateEvent};
use tiller_protocol::{AgentId, AgentView, Cost, Event, EventBody, SessionId, TerminalPlace, TodoItem};

use super::agent::{AgentModel, SessionModel};
use super::conversation::Conversation;
use super::{Model, Tracked};

/// The agent that an event is about, as the screen sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventTarget {
    /// The shown agent.
    Shown,
    /// The main agent, while another one is shown.
    Home,
    /// An agent that is not shown.
    Other,
}

impl Model {
    /// The shown agent.
    pub fn shown_agent(&self) -> AgentId {
        self.shown.clone().unwrap_or_else(AgentId::main)
    }

    /// The folders that paths in the rows of the shown agent are named without: those of the workspace, unless it works elsewhere.
    pub(crate) fn row_folders(&self) -> &[String] {
        let child = self.row(&self.shown_agent()).and_then(|a| a.child.as_deref());
        match child {
            Some(child) if !child.folder.is_empty() || !child.terminal.is_empty() => &[],
            _ => &self.environment.folders.workspace,
        }
    }

    /// The agent that works on this item of the shown plan: the agent that the item names, else the newest agent that
    /// was started for it.
    pub(crate) fn assignee<'m>(&'m self, item: &'m TodoItem) -> Option<&'m AgentId> {
        let given = |a: &&AgentView| {
            a.parent.as_ref() == Some(&self.shown_agent())
                && a.child.as_ref().and_then(|c| c.todo.as_ref()) == Some(&item.id)
        };
        item.agent.as_ref().or_else(|| self.crew.agents.iter().rfind(given).map(|a| &a.id))
    }

    /// The row of an agent; `None`: the engine has not reported it.
    pub fn row(&self, id: &AgentId) -> Option<&AgentView> {
        self.crew.agents.iter().find(|a| a.id == *id)
    }

    /// Cost of the shown agent's work; for the main agent including all others. The flag is false when a program did
    /// not report its cost, so that the sum is incomplete.
    pub(crate) fn spent(&self) -> Option<(Cost, bool)> {
        let own = self.agent.session.cost.filter(|_| !self.agent.session.model.is_demo());
        if self.shown.is_some() {
            return own.map(|cost| (cost, true));
        }
        let mut whole = true;
        let mut sum = own;
        for a in self.crew.agents.iter().filter(|a| !a.id.is_main() && !a.model.is_demo()) {
            let used = a.usage.context().saturating_add(a.usage.output) > 0;
            whole &= a.cost.is_some() || !used;
            sum = a.cost.filter(|c| c.0 > 0).map(|c| sum.unwrap_or_default().plus(c)).or(sum);
        }
        sum.map(|cost| (cost, whole))
    }

    /// How often the bell of this agent's terminal had rung when the person looked at it last.
    pub fn bells_seen(&self, id: Option<&AgentId>) -> u32 {
        id.and_then(|id| self.crew.bells.get(id)).copied().unwrap_or_default()
    }

    /// The terminal elsewhere where the commands of this agent run; `None`: this machine's own.
    pub(crate) fn terminal_of(&self, id: &AgentId) -> Option<&TerminalPlace> {
        let sandbox = self.engine.sandbox.as_deref()?;
        let name = match id.is_main() {
            true => sandbox.main.as_deref(),
            false => self.row(id)?.child.as_ref().map(|child| child.terminal.as_str()),
        };
        sandbox.elsewhere.iter().find(|place| Some(place.name.as_str()) == name)
    }

    /// The agent that works in this session, a child of the open one.
    pub(crate) fn of_session(&self, session: SessionId) -> Option<&AgentView> {
        self.crew.agents.iter().find(|a| a.child.as_ref().is_some_and(|c| c.session == Some(session)))
    }

    /// The main agent's session, whichever agent is shown.
    pub(crate) fn main_session(&self) -> Option<SessionId> {
        self.main_session_model().summary.as_ref().map(|s| s.id)
    }

    /// The main agent's conversation, whichever agent is shown.
    pub(crate) fn main_conversation(&self) -> &Conversation {
        if self.shown.is_some() { &self.home.conversation } else { &self.agent.conversation }
    }

    /// The session of the agent that is shown.
    pub(crate) fn shown_session(&self) -> Option<SessionId> {
        match &*self.shown {
            Some(agent) => self.row(agent)?.child.as_ref()?.session,
            None => self.main_session(),
        }
    }

    /// A name for people: `a2 docs`; `main` for the main agent.
    pub fn name_of(&self, id: &AgentId) -> String {
        let label = self.row(id).map_or("", |a| a.label.as_str());
        let label = crate::text::clean::plain(label);
        match (id.is_main(), label.is_empty() || label == id.name()) {
            (true, _) => "main".into(),
            (_, true) => id.name().to_owned(),
            _ => format!("{} {label}", id.name()),
        }
    }

    /// The way to it from the main agent, which is left out: `a2 docs > a3`.
    pub fn path_of(&self, id: &AgentId) -> String {
        let mut names = Vec::new();
        let mut at = Some(id.clone());
        while let Some(id) = at.filter(|id| !id.is_main()) {
            names.push(self.name_of(&id));
            at = id.parent();
        }
        names.reverse();
        if names.is_empty() { "main".into() } else { names.join(" > ") }
    }

    /// Shows another agent; `None`: the main agent, in its present state. The state of any other agent is empty until
    /// its snapshot arrives.
    pub(crate) fn show(&mut self, agent: Option<AgentId>) {
        let agent = agent.filter(|a| !a.is_main());
        if *self.shown == agent {
            return;
        }
        if agent.is_none() {
            self.swap();
            *self.home = AgentModel::new(self.environment.tools.clone());
        } else {
            let old = &mut self.agent.session;
            let (git, profile) = (old.git.clone(), old.profile);
            let summary = old.summary.clone();
            if self.shown.is_none() {
                self.swap();
            }
            let session = SessionModel { summary, git, profile, ..SessionModel::default() };
            let empty = AgentModel::new(self.environment.tools.clone());
            self.agent = AgentModel { session: Tracked::new(session), ..empty };
        }
        if let Some(view) = agent.as_ref().and_then(|a| self.row(a)).cloned() {
            let session = &mut *self.agent.session;
            session.model = view.model;
            (session.usage, session.cost) = (view.usage, view.cost);
            (session.context, session.window) = (view.context, view.window);
        }
        *self.shown = agent;
    }

    /// Swaps the shown state with the main agent's kept state.
    fn swap(&mut self) {
        swap(&mut self.agent, &mut *self.home);
    }

    /// The agent that an event is about.
    pub(crate) fn target(&self, event: &Event) -> EventTarget {
        match &*self.shown {
            Some(shown) if event.agent == *shown => EventTarget::Shown,
            Some(_) if event.agent.is_main() => EventTarget::Home,
            None if event.agent.is_main() => EventTarget::Shown,
            _ => EventTarget::Other,
        }
    }

    /// True when anything on the screen may change by this event.
    pub(crate) fn affects_screen(&self, event: &Event) -> bool {
        self.target(event) == EventTarget::Shown || is_global(event)
    }

    /// Takes one event in.
    pub fn apply(&mut self, event: &Event) {
        if let EventBody::Ask(e) = &event.body {
            return self.asked(event, e);
        }
        if let EventBody::State(StateEvent::Receipt { receipt }) = &event.body {
            self.crew.receipts.insert(event.agent.clone(), receipt.clone());
        }
        if let EventBody::State(StateEvent::TurnChanged { changes }) = &event.body {
            changes.settle(&event.agent, self.workspace.feed.iter_mut());
        }
        match self.target(event) {
            EventTarget::Shown => self.take_in(event),
            EventTarget::Home => {
                self.swap();
                self.take_in(event);
                self.swap();
            }
            EventTarget::Other => {
                if let EventBody::State(e) = &event.body
                    && is_global(event)
                {
                    self.global_state(event.time, e);
                }
            }
        }
    }

    /// Takes a question or its answer in. All agents' questions are shown; the call that waits stands in the
    /// conversation of its own agent.
    fn asked(&mut self, event: &Event, e: &AskEvent) {
        let mut agent = None;
        match e {
            AskEvent::PermissionAsked { ask } | AskEvent::QuestionAsked { ask } => {
                agent = Some(&ask.agent);
                match self.questions.open.iter_mut().find(|a| a.id == ask.id) {
                    // It keeps its place in the queue.
                    Some(there) => there.clone_from(ask),
                    None => self.questions.open.push(ask.clone()),
                }
            }
            AskEvent::PermissionDecided { id, .. } => self.questions.open.retain(|a| Some(a.id) != *id),
            AskEvent::QuestionAnswered { id, .. } => self.questions.open.retain(|a| a.id != *id),
        }
        let shown = self.shown_agent();
        if agent.is_none_or(|a| *a == shown) {
            self.agent.converse(event);
        }
        if self.shown.is_some() && agent.is_none_or(AgentId::is_main) {
            self.home.converse(event);
        }
    }

    /// Session facts of the main agent, whichever agent is shown.
    pub(crate) fn main_session_model(&self) -> &SessionModel {
        if self.shown.is_some() { &self.home.session } else { &self.agent.session }
    }

    /// True when a shell line runs in the main session, whichever agent is shown.
    pub(crate) fn main_line_runs(&self) -> bool {
        let conversation =
            if self.shown.is_some() { &self.home.conversation } else { &self.agent.conversation };
        conversation.running_line().is_some()
    }

    /// True when the main agent's turn runs, whichever agent is shown.
    pub fn main_runs(&self) -> bool {
        if self.shown.is_some() { self.home.turn.running } else { self.agent.turn.running }
    }

    /// Returns true if the main agent's turn waits for agents that it started.
    pub fn main_waits_for_agents(&self) -> bool {
        let waited = |a: &AgentView| {
            let foreground = a.child.as_ref().is_some_and(|c| !c.background);
            foreground && a.state.at_work() && a.parent.as_ref().is_some_and(AgentId::is_main)
        };
        self.crew.agents.iter().any(waited)
    }
}

/// Reported for any agent, and shown whichever agent is on the screen.
fn is_global(event: &Event) -> bool {
    match &event.body {
        EventBody::Ask(_) => true,
        EventBody::State(e) => matches!(
            e,
            // Its agent is that of the last event, but the gap may concern every agent.
            StateEvent::Lagged { .. }
                | StateEvent::AgentChanged { .. }
                | StateEvent::WorkflowChanged { .. }
                | StateEvent::Receipt { .. }
                | StateEvent::Notice { .. }
                | StateEvent::WorkspaceChanged { .. }
                | StateEvent::TurnChanged { .. }
                | StateEvent::GitChanged { .. }
                | StateEvent::SandboxTested { .. }
                | StateEvent::Saving { .. }
                | StateEvent::MemoryChanged { .. }
        ),
        _ => false,
    }
}
