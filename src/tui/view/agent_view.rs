//! Which agent is on the screen. Its conversation, its composer and its part of the model take the main one's place;
//! the main agent's panels are kept as they are, so that going back shows them at once. Each agent keeps its draft.

use tiller_protocol::command::{Query, SessionCommand, TurnCommand};
use tiller_protocol::event::StateEvent;
use tiller_protocol::{
    AgentId, AgentState, AgentView, AskId, Command, CommandBody, CommandId, Event, EventBody, Notice,
    NoticeKind, Receipt,
};

use crate::app::App;
use crate::app::effect::{Effect, Navigation, Task};
use crate::app::state::{Layer, Owner};
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::model::{EventTarget, Model};
use crate::panel::composer::request::ComposerRequest;
use crate::panel::{self, Panel, PanelEvent, Reply, View};

/// Global actions of this file.
pub const ACTIONS: &[ActionSpec] = &[
    ActionSpec::new("crew.home", "back to main", "Return to the main agent; the other agent continues")
        .menu(Menu::Agents),
    ActionSpec::new("crew.next", "next agent", "Show the next agent's conversation").menu(Menu::Agents),
    ActionSpec::new("crew.needs", "next that needs you", "Go to the next question or agent that needs you")
        .menu(Menu::Agents),
];

/// Section of the key file of a look at an agent.
pub(crate) const PEEK: &str = "peek";

/// Why there is no next agent.
pub(crate) const ALONE: &str = "No other agent has a conversation yet";

/// Messages that are kept until their receipts come.
const SENT: usize = 64;

/// Performs an action of this file; `None`: it is none of them, or it cannot be performed now.
pub(crate) fn run(app: &mut App, action: Action) -> Option<Vec<Effect>> {
    if disabled(app, action).is_some() {
        return None;
    }
    let show = |agent| vec![Effect::Navigate(Navigation::Agent(agent))];
    match action.0 {
        "crew.home" => Some(show(AgentId::main())),
        "crew.next" => circle(&app.model).into_iter().nth(1).map(show),
        "crew.needs" => Some(next_need(app)),
        _ => None,
    }
}

/// Why it cannot be done now.
pub(crate) fn disabled(app: &App, action: Action) -> Option<&'static str> {
    match action.0 {
        "crew.home" => app.model.shown.is_none().then_some("The main agent is already on the screen"),
        "crew.next" | "crew.peek" => (circle(&app.model).len() < 2).then_some(ALONE),
        "crew.needs" => {
            needs(&app.model).is_empty().then_some("No question is waiting, and no agent needs you")
        }
        _ => None,
    }
}

/// True for an agent with a conversation that can be shown.
pub(crate) fn has_begun(model: &Model, id: &AgentId) -> bool {
    id.is_main() || model.row(id).is_some_and(has_session)
}

/// True for the row of an agent whose session has begun, if it has one of its own.
fn has_session(a: &AgentView) -> bool {
    a.child.as_ref().is_none_or(|c| c.session.is_some())
}

/// The agents that the key for the next one visits, from the one on the screen on: the main agent and those at work; all
/// others only where none is at work.
pub(crate) fn circle(model: &Model) -> Vec<AgentId> {
    let shown = model.shown_agent();
    let children = || model.crew.agents.iter().filter(|a| !a.id.is_main() && has_session(a));
    let works = children().any(|a| a.state.at_work());
    let visited = children().filter(|a| !works || a.state.at_work() || a.id == shown);
    let mut all: Vec<AgentId> =
        std::iter::once(AgentId::main()).chain(visited.map(|a| a.id.clone())).collect();
    let at = all.iter().position(|id| *id == shown).unwrap_or(0);
    all.rotate_left(at);
    all
}

/// All that needs the person: each question, then agents that wait without one.
fn needs(model: &Model) -> Vec<(AgentId, Option<AskId>)> {
    let open = &model.questions.open;
    let asks = open.iter().map(|ask| (ask.agent.clone(), Some(ask.id)));
    let waits = |a: &&AgentView| a.state == AgentState::Waiting && !open.iter().any(|k| k.agent == a.id);
    let agents = model.crew.agents.iter().filter(waits).map(|a| (a.id.clone(), None));
    asks.chain(agents).collect()
}

/// Goes to the next question or agent that needs the person, after the one on the screen.
fn next_need(app: &mut App) -> Vec<Effect> {
    let all = needs(&app.model);
    let on_top = app.layers.iter().rev().find_map(|l| l.question(&app.model));
    let shown = app.model.shown_agent();
    let is_here = |(agent, ask): &(AgentId, Option<AskId>)| match on_top {
        Some(id) => *ask == Some(id),
        None => ask.is_none() && *agent == shown,
    };
    let here = all.iter().position(is_here);
    let next = here.map_or(0, |at| (at + 1) % all.len().max(1));
    if here == Some(next) {
        app.say("Nothing else needs you");
        return Vec::new();
    }
    match all.into_iter().nth(next) {
        Some((_, Some(ask))) => {
            app.put_asks_aside();
            vec![Effect::Navigate(Navigation::Question(ask))]
        }
        Some((agent, None)) => {
            // The composer, which gets the keys, would bring back what was put aside before.
            app.show_agent(&agent);
            app.questions.aside.extend(app.model.questions.open.iter().map(|ask| ask.id));
            app.put_asks_aside();
            Vec::new()
        }
        None => Vec::new(),
    }
}

/// True for a command that is for the agent on the screen. Commands about the program, the crew or all sessions go to the
/// main agent.
fn is_its_own(body: &CommandBody) -> bool {
    match body {
        // Memory and skills are one for all agents.
        CommandBody::Memory(_) | CommandBody::Skill(_) => false,
        CommandBody::Turn(_)
        | CommandBody::Queue(_)
        | CommandBody::Context(_)
        | CommandBody::Todo(_)
        | CommandBody::Pane(_)
        | CommandBody::Review(_)
        | CommandBody::Compare(_)
        | CommandBody::Goal(_) => true,
        CommandBody::Session(s) => matches!(
            s,
            SessionCommand::SetModel { .. }
                | SessionCommand::SetProfile { .. }
                | SessionCommand::SetEffort { .. }
                | SessionCommand::Fork { .. }
                | SessionCommand::CarryOver { .. }
                | SessionCommand::OpenBranch { .. }
                | SessionCommand::LabelBranch { .. }
                | SessionCommand::ArchiveBranch { .. }
                | SessionCommand::Tag { .. }
                | SessionCommand::Checkpoint { .. }
                | SessionCommand::Restore { .. }
                | SessionCommand::UndoRestore { .. }
                | SessionCommand::UndoOp { .. }
        ),
        // They are the user's, whichever agent is on the screen.
        CommandBody::Learning(_) => false,
        CommandBody::Query(q) => matches!(
            q,
            Query::Snapshot
                | Query::Page { .. }
                | Query::PathPart { .. }
                | Query::ToolOutput { .. }
                | Query::Screen { .. }
                | Query::Scrollback { .. }
                | Query::RestorePreview { .. }
                | Query::Ops { .. }
                | Query::Branches
                | Query::Compare { .. }
        ),
        CommandBody::Ask(_) | CommandBody::Watch(_) | CommandBody::Agent(_) => false,
    }
}

impl App {
    /// Sends a command to the agent that it concerns; returns its id.
    pub(crate) fn send(&mut self, body: CommandBody) -> CommandId {
        let agent = self.model.shown.clone().filter(|_| is_its_own(&body));
        self.send_to(agent, body)
    }

    /// Sends a command to this agent; `None`: the main one.
    pub(crate) fn send_to(&mut self, agent: Option<AgentId>, body: CommandBody) -> CommandId {
        let id = CommandId(self.router.fresh());
        let agent = agent.filter(|a| !a.is_main());
        if let (Some(_), CommandBody::Turn(TurnCommand::Submit { message, .. })) = (&agent, &body) {
            self.agent_view.sent.push_back((id, message.clone()));
            if self.agent_view.sent.len() > SENT {
                self.agent_view.sent.pop_front();
            }
        }
        self.tasks.push(Task::Send(Command { id, agent, body }));
        id
    }

    /// Shows an agent's conversation.
    pub(crate) fn show_agent(&mut self, agent: &AgentId) {
        let now = self.model.shown_agent();
        if *agent != now {
            if !has_begun(&self.model, agent) {
                let name = self.model.name_of(agent);
                return self.say(format!("{name} has no conversation yet"));
            }
            self.model.show(Some(agent.clone()));
            for view in [View::Conversation, View::Composer] {
                let (mut next, fresh) = match self.agent_view.take(agent, view) {
                    Some(panel) => (panel, false),
                    None => (self.registry.panel(view), true),
                };
                if let Some(shown) = self.views.iter_mut().find(|v| v.view == view) {
                    next = shown.replace(next);
                }
                // Drafts are kept; the rest of a conversation is loaded again, except the main agent's.
                if view == View::Composer || now.is_main() {
                    self.agent_view.parked.push((now.clone(), view, next));
                }
                if fresh {
                    self.tell(Owner::View(view), PanelEvent::Opened);
                }
            }
            let another = Effect::Tell(
                View::Sessions,
                Box::new(panel::sessions::SessionSwitch { main: agent.is_main() }),
            );
            self.effects(Owner::Shell, vec![another]);
            if !agent.is_main() {
                self.ask_snapshot();
            }
        }
        self.focus(View::Composer);
    }

    /// Shows an agent's conversation, and does something there.
    pub(crate) fn show_for(&mut self, agent: &AgentId, action: Action) {
        let here = *agent == self.model.shown_agent();
        self.show_agent(agent);
        if here {
            self.effects(Owner::Shell, vec![Effect::Act(action)]);
        } else if *agent == self.model.shown_agent() {
            self.agent_view.then = Some((agent.clone(), action));
        }
    }

    /// The dialog that shows an agent beside the one on the screen; it gets the events of all agents.
    pub(crate) fn peek(&self) -> Option<Owner> {
        let peeks = |l: &&Layer| l.panel().status(&self.model).scope == PEEK;
        self.layers.iter().rfind(peeks).map(|l| Owner::Layer(l.id))
    }

    /// The conversation of the agent on the screen is here.
    pub(crate) fn agent_here(&mut self) {
        let now = self.model.shown_agent();
        if let Some((_, action)) = self.agent_view.then.take().filter(|(agent, _)| *agent == now) {
            self.effects(Owner::Shell, vec![Effect::Act(action)]);
        }
    }

    /// As [`App::with`], for a panel of an agent that may not be on the screen any more.
    pub(crate) fn with_of(
        &mut self,
        agent: &AgentId,
        owner: Owner,
        f: impl FnOnce(&mut dyn Panel, &Model) -> Reply,
    ) -> Option<Reply> {
        match owner {
            Owner::View(view @ (View::Composer | View::Conversation))
                if *agent != self.model.shown_agent() =>
            {
                let panel = self.agent_view.find(agent, view)?;
                Some(f(panel, &self.model))
            }
            owner => self.with(owner, f),
        }
    }

    /// An event of the main agent's while another is on the screen: what its composer must know.
    pub(crate) fn at_home(&mut self, event: &Event) {
        let composers = matches!(
            &event.body,
            EventBody::State(StateEvent::QueueChanged { .. } | StateEvent::HeadMoved { .. })
        );
        if composers
            && self.model.target(event) == EventTarget::Home
            && let Some(panel) = self.agent_view.find(&event.agent, View::Composer)
            && let Reply::Done(list) = panel.handle(PanelEvent::Engine(event), &self.model)
        {
            self.effects(Owner::Shell, list);
        }
    }

    /// The notice for a background agent that fails: its panel may not be on the screen.
    pub(crate) fn fails(&self, event: &Event) -> Option<Notice> {
        let EventBody::State(StateEvent::AgentChanged { view }) = &event.body else { return None };
        let child = view.child.as_deref().filter(|c| c.background && view.state == AgentState::Failed)?;
        let was = self.model.row(&view.id)?.state;
        let name = self.model.name_of(&view.id);
        (was != AgentState::Failed).then(|| {
            let why = if child.result.is_empty() { "no reason given" } else { &child.result };
            Notice::new(NoticeKind::Network, format!("Agent {name} failed: {why}")).hint("See /agents")
        })
    }

    /// A message to an agent was delivered, or was not: then its text returns to the composer, with a notice.
    pub(crate) fn receipt(&mut self, event: &Event, receipt: &Receipt) {
        let at = self.agent_view.sent.iter().position(|(id, _)| Some(*id) == event.cause);
        let message = match receipt {
            Receipt::Queued => return,
            _ => at.and_then(|at| self.agent_view.sent.remove(at)).map(|(_, message)| message),
        };
        let Receipt::Missed { why } = receipt else { return };
        let name = self.model.name_of(&event.agent);
        let mut notice = Notice::new(NoticeKind::User, format!("{name} did not read your message: {why}"));
        if let Some(message) = message {
            notice = notice.hint("Your text is the newest entry of the composer's history");
            let keep = Effect::Tell(View::Composer, Box::new(ComposerRequest::Keep(message)));
            self.effects(Owner::Shell, vec![keep]);
        }
        self.notice(notice);
    }

    /// Another session is open now: its agents are others.
    pub(crate) fn agents_changed(&mut self) {
        let gone = self.model.shown.as_ref().is_some_and(|a| self.model.row(a).is_none());
        if gone {
            self.show_agent(&AgentId::main());
        }
        self.agent_view.parked.retain(|(agent, _, _)| agent.is_main() || self.model.row(agent).is_some());
    }
}

#[cfg(test)]
#[path = "agent_view_tests.rs"]
mod tests;
