//! Whose conversation is shown. The main agent's model is kept, and goes on, while another agent's is on the
//! screen, so that going back costs nothing. Of agents that nobody looks at only rows, questions and notices
//! are taken in; the rest of their events costs a comparison.

use std::mem::swap;

use tiller_protocol::event::{AskEvent, StateEvent};
use tiller_protocol::{AgentId, AgentView, Cost, Event, EventBody, Queued, SessionId, TodoItem};

use super::{Model, Retry, SessionModel, conversation::Conversation};

/// What belongs to one agent.
#[derive(Default)]
pub struct Talk {
    session: SessionModel,
    conversation: Conversation,
    todo: Vec<TodoItem>,
    queue: Vec<Queued>,
    running: bool,
    retry: Option<Retry>,
}

/// Whom an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The agent on the screen.
    Shown,
    /// The main agent, while another is on the screen.
    Home,
    /// One that nobody looks at.
    Other,
}

impl Model {
    /// The agent on the screen.
    pub fn agent(&self) -> AgentId {
        self.shown.clone().unwrap_or_else(AgentId::main)
    }

    /// Who does this item of the plan on the screen: who is named in it, else the newest agent that was given it.
    pub(crate) fn doer<'m>(&'m self, item: &'m TodoItem) -> Option<&'m AgentId> {
        let given = |a: &&AgentView| {
            a.parent.as_ref() == Some(&self.agent())
                && a.child.as_ref().and_then(|c| c.todo.as_ref()) == Some(&item.id)
        };
        item.agent.as_ref().or_else(|| self.agents.iter().rfind(given).map(|a| &a.id))
    }

    /// Its row, once the engine has told of it.
    pub fn row(&self, id: &AgentId) -> Option<&AgentView> {
        self.agents.iter().find(|a| a.id == *id)
    }

    /// What the work on the screen has cost: of the main agent with all that work for it, of another one its own. With
    /// whether that is all: a program may not tell.
    pub(crate) fn spent(&self) -> Option<(Cost, bool)> {
        let own = self.session.cost.filter(|_| self.session.model.provider() != "demo");
        if self.shown.is_some() {
            return own.map(|cost| (cost, true));
        }
        let mut whole = true;
        let mut sum = own;
        for a in self.agents.iter().filter(|a| !a.id.is_main() && !a.model.starts_with("demo/")) {
            let used = a.usage.context().saturating_add(a.usage.output) > 0;
            whole &= a.cost.is_some() || !used;
            sum = a.cost.filter(|c| c.0 > 0).map(|c| sum.unwrap_or_default().plus(c)).or(sum);
        }
        sum.map(|cost| (cost, whole))
    }

    /// Rings of its terminal that the person has heard of.
    pub fn bells_seen(&self, id: Option<&AgentId>) -> u32 {
        id.and_then(|id| self.bells.get(id)).copied().unwrap_or_default()
    }

    /// The agent of this session, which is a child of the open one.
    pub(crate) fn of_session(&self, session: SessionId) -> Option<&AgentView> {
        self.agents.iter().find(|a| a.child.as_ref().is_some_and(|c| c.session == Some(session)))
    }

    /// The main agent's session, whichever agent is shown.
    pub(crate) fn main_session(&self) -> Option<SessionId> {
        self.main_talk().summary.as_ref().map(|s| s.id)
    }

    /// The session of the agent that is shown.
    pub(crate) fn shown_session(&self) -> Option<SessionId> {
        match &self.shown {
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

    /// Shows another agent's conversation; `None`: the main agent's, as it is by now. The other's is empty until
    /// a snapshot of it comes.
    pub(crate) fn show(&mut self, agent: Option<AgentId>) {
        let agent = agent.filter(|a| !a.is_main());
        if self.shown == agent {
            return;
        }
        if self.shown.is_none() {
            let mut fresh = Talk::default();
            fresh.session.summary.clone_from(&self.session.summary);
            fresh.session.git.clone_from(&self.session.git);
            fresh.session.profile = self.session.profile;
            *self.home = fresh;
            self.swap();
        } else if agent.is_none() {
            self.swap();
            *self.home = Talk::default();
        } else {
            let summary = self.session.summary.take();
            let (git, profile) = (self.session.git.take(), self.session.profile);
            self.session = SessionModel { summary, git, profile, ..SessionModel::default() };
            self.conversation = Conversation::default();
            (self.todo, self.queue, self.running, self.retry) = (Vec::new(), Vec::new(), false, None);
        }
        if let Some(view) = agent.as_ref().and_then(|a| self.row(a)).cloned() {
            self.session.model = tiller_protocol::ModelRef(view.model);
            (self.session.usage, self.session.cost) = (view.usage, view.cost);
            (self.session.context, self.session.window) = (view.context, view.window);
        }
        self.shown = agent;
    }

    /// Puts the model that is not shown in the place of the shown one.
    fn swap(&mut self) {
        let home = self.home.as_mut();
        swap(&mut self.session, &mut home.session);
        swap(&mut self.conversation, &mut home.conversation);
        swap(&mut self.todo, &mut home.todo);
        swap(&mut self.queue, &mut home.queue);
        swap(&mut self.running, &mut home.running);
        swap(&mut self.retry, &mut home.retry);
    }

    /// Whom it is about.
    pub(crate) fn whose(&self, event: &Event) -> Whose {
        match (&self.shown, &event.body) {
            (Some(shown), _) if event.agent == *shown => Whose::Shown,
            (shown, _) if event.agent.is_main() => {
                if shown.is_none() {
                    Whose::Shown
                } else {
                    Whose::Home
                }
            }
            _ => Whose::Other,
        }
    }

    /// Whether anything on the screen may change by it.
    pub(crate) fn concerns(&self, event: &Event) -> bool {
        self.whose(event) == Whose::Shown || everybodys(event)
    }

    /// Takes one event in.
    pub fn apply(&mut self, event: &Event) {
        if let EventBody::Ask(e) = &event.body {
            return self.asked(event, e);
        }
        if let EventBody::State(StateEvent::Receipt { receipt }) = &event.body {
            self.receipts.insert(event.agent.clone(), receipt.clone());
        }
        match self.whose(event) {
            Whose::Shown => self.take_in(event),
            Whose::Home => {
                self.swap();
                self.take_in(event);
                self.swap();
            }
            Whose::Other => {
                if let EventBody::State(e) = &event.body
                    && everybodys(event)
                {
                    self.state(event.time, e);
                }
            }
        }
    }

    /// Questions are everybody's; the call that waits stands in its own agent's conversation.
    fn asked(&mut self, event: &Event, e: &AskEvent) {
        let mut agent = None;
        match e {
            AskEvent::PermissionAsked { ask } | AskEvent::QuestionAsked { ask } => {
                agent = Some(&ask.agent);
                match self.asks.iter_mut().find(|a| a.id == ask.id) {
                    // It keeps its place in the queue.
                    Some(there) => there.clone_from(ask),
                    None => self.asks.push(ask.clone()),
                }
            }
            AskEvent::PermissionDecided { id, .. } => self.asks.retain(|a| Some(a.id) != *id),
            AskEvent::QuestionAnswered { id, .. } => self.asks.retain(|a| a.id != *id),
        }
        let shown = self.agent();
        if agent.is_none_or(|a| *a == shown) {
            self.conversation.apply(event);
        }
        if self.shown.is_some() && agent.is_none_or(AgentId::is_main) {
            self.home.conversation.apply(event);
        }
    }

    /// The main agent's session, whichever agent is shown.
    pub(crate) fn main_talk(&self) -> &super::SessionModel {
        if self.shown.is_some() { &self.home.session } else { &self.session }
    }

    /// Whether a line of the person's own runs in the main session, whichever agent is shown.
    pub(crate) fn main_line_runs(&self) -> bool {
        let talk = if self.shown.is_some() { &self.home.conversation } else { &self.conversation };
        talk.running_line().is_some()
    }

    /// Whether the main agent's turn runs, whichever agent is shown.
    pub fn main_runs(&self) -> bool {
        if self.shown.is_some() { self.home.running } else { self.running }
    }
}

/// Reported for any agent, and shown whichever agent is on the screen.
fn everybodys(event: &Event) -> bool {
    match &event.body {
        EventBody::Ask(_) => true,
        EventBody::State(e) => matches!(
            e,
            StateEvent::AgentChanged { .. }
                | StateEvent::WorkflowChanged { .. }
                | StateEvent::Receipt { .. }
                | StateEvent::Notice { .. }
                | StateEvent::WorkspaceChanged { .. }
                | StateEvent::GitChanged { .. }
                | StateEvent::Saving { .. }
        ),
        _ => false,
    }
}
