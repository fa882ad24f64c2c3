//! A look at another agent: the end of its conversation over what is on the screen, while it goes on. Focus and draft stay
//! where they are. The key that opened it, Esc and typing on close it.

use crossterm::event::{KeyEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::command::Query;
use tiller_protocol::event::{ReplyEvent, StateEvent, TurnEvent};
use tiller_protocol::{AgentId, AgentState, CommandBody, Event, EventBody};

use crate::app::App;
use crate::app::effect::{ComposerInput, Effect, Navigation, Token};
use crate::app::state::Owner;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::{DefaultKey, Scope};
use crate::model::Model;
use crate::model::conversation::Conversation;
use crate::panel::agents::{Agents, agent_lines, look};
use crate::panel::conversation::viewport::Viewport;
use crate::panel::conversation::{fit, spinners, window};
use crate::panel::{
    DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply, View,
};
use crate::registry::{Dialog, Opener};
use crate::text::paint;
use crate::text::sheet::Sheet;
use crate::theme::Role;
use crate::view::agent_view;
use crate::widget::draw;

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new(
        "crew.peek",
        "peek",
        "Look at another agent without leaving this one; the same key goes back",
        open,
    )
    .menu(Menu::Agents)
    .keys(&["alt-p", "leader P"])],
    scopes: &[Scope::new(agent_view::PEEK, None, "A look at an agent", true).keys(KEYS)],
    samples: &[("a look at an agent", || Box::new(Peek::new(AgentId("main/a1".into()), true)))],
    ..Dialog::NONE
};

/// Default keys of the section `peek`.
const KEYS: &[DefaultKey] = &[
    ("up", "list.up"),
    ("down", "list.down"),
    ("pageup", "list.page_up"),
    ("pagedown", "list.page_down"),
    ("ctrl-home", "list.first"),
    ("ctrl-end", "list.last"),
    ("enter", "list.open"),
];

/// Identifies the answer with the conversation.
const STATE: Token = Token(1);

/// Columns and rows at most.
const WIDEST: u16 = 110;
const TALLEST: u16 = 30;

/// The dialog.
pub(crate) struct Peek {
    agent: AgentId,
    /// The composer had the focus: typed text goes to the draft.
    composing: bool,
    conv: Conversation,
    view: Viewport,
    /// Events up to this number are in the conversation; `None`: it is not here yet.
    seq: Option<u64>,
    /// Why it cannot be read.
    failed: Option<String>,
}

/// Opens it for the agent that is selected in the list of agents, else for one that needs the person, else for one at work.
fn open(app: &App) -> Result<Box<dyn Panel>, String> {
    let model = &app.model;
    if app.peek().is_some() {
        return Err("A look at an agent is open below this dialog; Esc goes back to it".into());
    }
    let others: Vec<AgentId> = agent_view::circle(model).into_iter().skip(1).collect();
    let list: Option<&dyn std::any::Any> = app.panel(Owner::View(View::Agents)).map(|p| p as _);
    let selected = list.filter(|_| app.screen.focus == View::Agents);
    let selected = selected.and_then(|p| p.downcast_ref::<Agents>()).and_then(|p| p.selected(model));
    let selected = selected.filter(|id| *id != model.shown_agent() && agent_view::has_begun(model, id));
    let is = |state: AgentState| {
        let fits = |id: &&AgentId| model.row(id).is_some_and(|a| a.state == state);
        others.iter().find(fits).cloned()
    };
    let asks = model.questions.open.iter().map(|ask| &ask.agent).find(|id| others.contains(id)).cloned();
    let agent = selected.or(asks).or_else(|| is(AgentState::Waiting)).or_else(|| is(AgentState::Running));
    // Over another dialog, the draft is out of sight.
    let composing = app.screen.focus == View::Composer && app.layers.is_empty();
    let Some(agent) = agent.or_else(|| others.first().cloned()) else {
        return Err(agent_view::ALONE.into());
    };
    Ok(Box::new(Peek::new(agent, composing)))
}

impl Peek {
    fn new(agent: AgentId, composing: bool) -> Self {
        let view = Viewport::new(crate::zone::local());
        Self { agent, composing, conv: Conversation::default(), view, seq: None, failed: None }
    }

    /// Asks for the conversation.
    fn load(&mut self, model: &Model) -> Reply {
        self.conv = Conversation::new(model.environment.tools.clone());
        self.view = Viewport::new(crate::zone::local());
        self.ask()
    }

    /// Asks for it again: some of it was missed, or it is another one. The scroll position stays.
    fn ask(&mut self) -> Reply {
        (self.seq, self.failed) = (None, None);
        if self.agent.is_main() {
            // The model has it, and goes on with it.
            return Reply::done();
        }
        Reply::with(Effect::ask_of(self.agent.clone(), CommandBody::Query(Query::Snapshot), STATE))
    }

    /// The next agent, round and round.
    fn next(&mut self, model: &Model) -> Reply {
        let all: Vec<AgentId> = agent_view::circle(model).into_iter().skip(1).collect();
        let at = all.iter().position(|id| *id == self.agent).map_or(0, |at| at + 1);
        match all.get(at).or(all.first()) {
            Some(next) if *next != self.agent => {
                self.agent = next.clone();
                self.load(model)
            }
            _ => Reply::done(),
        }
    }

    fn on_answer(&mut self, event: &Event, model: &Model) -> Reply {
        // The answer of one that was looked at before.
        if event.agent != self.agent {
            return Reply::Ignored;
        }
        let EventBody::Reply(reply) = &event.body else { return Reply::Ignored };
        match reply.as_ref() {
            ReplyEvent::SnapshotReply { snapshot } => {
                self.conv.apply(event);
                self.seq = Some(snapshot.seq);
            }
            ReplyEvent::ErrorReply { notice } => {
                self.conv = Conversation::new(model.environment.tools.clone());
                self.failed = Some(notice.message.clone());
            }
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    fn on_event(&mut self, event: &Event) -> Reply {
        let starts = matches!(&event.body, EventBody::Turn(TurnEvent::SessionStarted { .. }));
        let again = match &event.body {
            EventBody::State(StateEvent::Lagged { .. }) => true,
            EventBody::State(StateEvent::HeadMoved { .. }) => event.agent == self.agent,
            _ => starts && (event.agent == self.agent || event.agent.is_main()),
        };
        if again {
            return self.ask();
        }
        if self.agent.is_main() {
            return if event.agent.is_main() { Reply::done() } else { Reply::Ignored };
        }
        if event.agent != self.agent || self.seq.is_none_or(|seq| event.seq <= seq) {
            return Reply::Ignored;
        }
        self.conv.apply(event);
        Reply::done()
    }

    fn scroll(&mut self, id: &str, model: &Model) -> bool {
        let page = isize::try_from(self.view.env.rows.saturating_sub(1).max(1)).unwrap_or(1);
        let by = match id {
            "list.up" => -1,
            "list.down" => 1,
            "list.page_up" => -page,
            "list.page_down" => page,
            "list.first" => isize::MIN / 2,
            "list.last" => isize::MAX / 2,
            _ => return false,
        };
        self.view.scroll_by(conversation(&self.agent, &self.conv, model), by);
        true
    }
}

impl Panel for Peek {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus { leave: "back", ..PanelStatus::new(agent_view::PEEK) }
    }

    fn title(&self, model: &Model) -> String {
        let state = model.row(&self.agent).map_or("", |a| look(a.state).1);
        let name = model.path_of(&self.agent);
        let state = if state.is_empty() { String::new() } else { format!(": {state}") };
        format!("Peek at {name}{state}")
    }

    fn actions(&self) -> &'static [ActionSpec] {
        &[]
    }

    fn placement(&self, _columns: u16, model: &Model) -> Placement {
        let (width, height) = model.window.screen;
        Placement::Center {
            width: WIDEST.min(width.saturating_sub(6)),
            height: TALLEST.min((height / 3 * 2).max(height.saturating_sub(12).min(12))),
        }
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        let go = |effect| Reply::Done(vec![Effect::Pop, effect]);
        match action.0 {
            "crew.peek" | "list.back" => Reply::with(Effect::Pop),
            "crew.next" => self.next(model),
            "crew.needs" | "crew.home" | "global.answer" => go(Effect::Act(action)),
            "list.open" => go(Effect::Navigate(Navigation::Agent(self.agent.clone()))),
            id if self.scroll(id, model) => Reply::done(),
            _ => Reply::Ignored,
        }
    }

    fn input(&mut self, input: PanelInput<'_>, model: &Model) -> Reply {
        let typed = |input| Reply::Done(vec![Effect::Pop, Effect::Compose(input)]);
        match input {
            PanelInput::Key(key) if self.composing && is_text(key) => typed(ComposerInput::Key(*key)),
            PanelInput::Paste(text) if self.composing => typed(ComposerInput::Paste(text.to_owned())),
            PanelInput::Mouse(event, _) => {
                let by = match event.kind {
                    MouseEventKind::ScrollUp => -3,
                    MouseEventKind::ScrollDown => 3,
                    _ => return Reply::Ignored,
                };
                self.view.scroll_by(conversation(&self.agent, &self.conv, model), by);
                Reply::done()
            }
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, model: &Model) -> Reply {
        match event {
            PanelEvent::Opened => self.load(model),
            PanelEvent::Answer(STATE, event) => self.on_answer(event, model),
            PanelEvent::Engine(event) => self.on_event(event),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, model: &Model) -> Vec<Hint> {
        let mut all = vec![Hint::as_("list.open", "open")];
        all.extend((agent_view::circle(model).len() > 2).then_some(Hint::of("crew.next")));
        all.push(Hint::as_("list.page_up", "scroll up"));
        all
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) -> Refresh {
        fit(&mut self.view, area, cx);
        let conv = conversation(&self.agent, &self.conv, cx.model);
        self.view.measure(conv);
        Refresh { spinners: spinners(&self.view, cx), ..Refresh::after(self.view.moving(conv)) }
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        if !conversation(&self.agent, &self.conv, cx.model).cells().is_empty() {
            return window(&self.view, cx, area, buf);
        }
        let dim = |text: &str, area: Rect, buf: &mut Buffer| {
            draw::text(buf, Rect { height: area.height.min(1), ..area }, text, cx.theme.style(Role::Dim))
        };
        if let Some(why) = &self.failed {
            dim(why, area, buf);
        } else if self.seq.is_none() && !self.agent.is_main() {
            dim("Loading...", area, buf);
        } else if let Some(a) = cx.model.row(&self.agent) {
            let sheet = Sheet::new(agent_lines(cx.model, a), usize::from(area.width).max(1));
            paint::sheet(buf, area, &sheet, cx.theme);
        }
    }
}

/// The conversation that is looked at: the main agent's is the model's, with all that was loaded of it.
fn conversation<'a>(agent: &AgentId, own: &'a Conversation, model: &'a Model) -> &'a Conversation {
    if agent.is_main() { model.main_conversation() } else { own }
}

/// It stands for text.
fn is_text(key: &KeyEvent) -> bool {
    crate::keymap::Chord::of(key).text().is_some()
}

#[cfg(test)]
#[path = "peek_tests.rs"]
mod tests;
