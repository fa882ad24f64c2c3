//! The tree of this session in small: one line per message, that of the present turn marked `now`, with lanes for the branches that
//! were left, and what each turn cost and changed. Until the tree is here, the turns of the conversation stand in its place.
//! Each row can be viewed or branched.

#[path = "session_graph.rs"]
mod session_graph;

use std::time::Duration;

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::command::SessionCommand;
use tiller_protocol::event::{StateEvent, TurnEvent};
use tiller_protocol::{CommandBody, EntryId, Event, EventBody, Notice, NoticeKind, Origin, Time};

use self::session_graph::{NOW, SessionGraph};
use super::conversation::GoTo;
use super::empty_view::explain;
use super::times::clock;
use super::{DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply, View};
use crate::app::effect::Effect;
use crate::dialog::session::restore::Restore;
use crate::dialog::session::tree;
use crate::keymap::action::{Action, ActionSpec};
use crate::keymap::scope::Scope;
use crate::model::conversation::Body;
use crate::model::{Model, Slice};
use crate::registry::PanelEntry;
use crate::text::line::{Line, Look, Wrap};
use crate::text::{clean, shorten_end, width};
use crate::theme::Role;
use crate::view::layout::SizeClass;
use crate::widget::line_list::LineList;
use crate::widget::{draw, sign};

/// Registers the panel.
pub(crate) const PANEL: PanelEntry = PanelEntry {
    view: View::Sessions,
    make: |_| Box::new(SessionsPanel::default()),
    reads: &[Slice::Session, Slice::Outline, Slice::Turn, Slice::Crew],
    groups: &[("Session tree", ACTIONS)],
    scopes: &[Scope::new("sessions", Some("list"), "Session tree", false).keys(&[
        ("f", "tree.fork"),
        ("R", "tree.restore"),
        ("+", "tree.open"),
    ])],
};

/// Its actions, besides those of a list.
pub const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only(
        "tree.fork",
        "fork here",
        "Branch before this message, or go on at the end of a branch that was left; nothing is lost",
    ),
    ActionSpec::key_only(
        "tree.restore",
        "restore",
        "Restore files, conversation or both to this point; previews the change first",
    ),
];

/// One turn of the path.
struct Turn<'m> {
    entry: Option<EntryId>,
    text: &'m str,
    time: Time,
    /// A checkpoint was made in it.
    checkpoint: bool,
}

/// Message that another agent's session is shown from now on; `main`: the main agent's.
pub(crate) struct SessionSwitch {
    pub(crate) main: bool,
}

/// The content of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionRow {
    Nothing,
    Turn(EntryId),
    /// An entry of a branch that was left. `end`: the last entry of the branch, where it ends at this row.
    Left {
        entry: EntryId,
        end: Option<EntryId>,
    },
}

/// The panel.
#[derive(Default)]
pub struct SessionsPanel {
    rows: LineList,
    what: Vec<SessionRow>,
    graph: SessionGraph,
    /// The main agent's tree, while another agent is on the screen.
    home: Option<SessionGraph>,
    /// It is on the screen, as drawn last.
    seen: bool,
    /// The person has moved: the choice does not follow the end any more.
    moved: bool,
}

/// Turns of the loaded path, oldest first.
fn turns(model: &Model) -> Vec<Turn<'_>> {
    let mut all: Vec<Turn<'_>> = Vec::new();
    for cell in model.agent.conversation.cells() {
        if let Body::User { text, origin: Origin::Prompt | Origin::Task, .. } = &cell.body {
            all.push(Turn {
                entry: cell.entry,
                text: text.lines().next().unwrap_or(""),
                time: cell.time,
                checkpoint: false,
            });
        }
        if let Some(last) = all.last_mut() {
            last.checkpoint |= matches!(cell.body, Body::Checkpoint { .. });
        }
    }
    all
}

/// Columns of the time.
const TIME: usize = 5;

/// A row: lines of the graph, the words, and at the right the time with the sign of a checkpoint before it.
fn row(lead: &[(&str, Role)], text: &str, look: Look, (time, saved): (&str, bool), columns: usize) -> Line {
    // What the time and the sign leave free belongs to the words.
    let tail =
        if saved { format!("  {} {time:>TIME$}", draw::sign(sign::SAVED)) } else { format!("  {time}") };
    let mut line = Line::new(Wrap::Cut);
    lead.iter().for_each(|(part, role)| line.push_strict(part, Look::of(*role)));
    let room = columns.saturating_sub(width(line.text()) + width(&tail));
    line.push_strict(&shorten_end(&clean::plain(text), room, draw::ascii()), look);
    line.pad_to(columns.saturating_sub(width(&tail)), Look::of(Role::Text));
    line.push_strict(&tail, if time == NOW { look } else { Look::of(Role::Dim) });
    line
}

fn line(turn: &Turn<'_>, now: bool, columns: usize) -> Line {
    let lead = [(draw::sign(sign::FULL), Role::User), (" ", Role::Text)];
    let look = if now { Look::of(Role::Strong).bold() } else { Look::of(Role::Text) };
    let time = if now { NOW.to_owned() } else { clock(turn.time) };
    row(&lead, turn.text, look, (&time, turn.checkpoint), columns)
}

impl SessionsPanel {
    fn lines(&self, model: &Model, columns: u16) -> (Vec<Line>, Vec<SessionRow>) {
        let columns = usize::from(columns);
        let all = turns(model);
        let (mut lines, mut what) = (Vec::new(), Vec::new());
        let tree = !self.graph.rows().is_empty();
        let note = match (tree, model.agent.conversation.above(), self.graph.earlier) {
            (false, earlier @ 1.., _) => {
                format!("{earlier} earlier entries; scroll up in the conversation to load them")
            }
            (true, _, earlier @ 1..) => format!("{earlier} earlier rows in the tree of all sessions"),
            _ => String::new(),
        };
        if !note.is_empty() {
            lines.push(Line::strict(&note, Look::of(Role::Dim), Wrap::Word));
            what.push(SessionRow::Nothing);
        }
        // Turns that have begun since the tree was read: those behind the last one that has a row.
        let mut spoken: Vec<Option<&str>> = vec![None; self.graph.rows().len()];
        let mut read = 0;
        for (n, turn) in all.iter().enumerate() {
            if let Some(place) = turn.entry.and_then(|entry| self.graph.place(entry)) {
                spoken[place] = Some(turn.text);
                read = n + 1;
            }
        }
        let newer = &all[read..];
        lines.extend(self.graph.lines(&spoken, !newer.is_empty(), columns));
        what.extend(self.graph.rows().iter().map(|row| match row.path {
            true => SessionRow::Turn(row.entry),
            false => SessionRow::Left { entry: row.entry, end: row.end },
        }));
        for (n, turn) in newer.iter().enumerate() {
            lines.push(line(turn, n + 1 == newer.len(), columns));
            what.push(turn.entry.map_or(SessionRow::Nothing, SessionRow::Turn));
        }
        (lines, what)
    }

    fn chosen(&self) -> SessionRow {
        self.what.get(self.rows.chosen).copied().unwrap_or(SessionRow::Nothing)
    }

    /// The row of the last turn.
    fn now(&self) -> usize {
        self.what.iter().rposition(|w| matches!(w, SessionRow::Turn(_))).unwrap_or(0)
    }

    fn open(&self, model: &Model) -> Reply {
        match self.chosen() {
            SessionRow::Nothing => Reply::done(),
            SessionRow::Turn(entry) => {
                let go = Effect::Tell(View::Conversation, Box::new(GoTo::Entry(entry)));
                Reply::Done(vec![Effect::Focus(View::Conversation), go])
            }
            // Its words, its files and what can be done with it.
            SessionRow::Left { entry, .. } => Reply::with(Effect::Push(Box::new(tree::at(model, entry)))),
        }
    }

    fn restore(&self) -> Reply {
        match self.chosen() {
            SessionRow::Turn(entry) | SessionRow::Left { entry, .. } => {
                Reply::with(Effect::Push(Box::new(Restore::to(entry))))
            }
            SessionRow::Nothing => Reply::done(),
        }
    }

    fn fork(&self, model: &Model) -> Reply {
        let say = |text: &str| Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, text)));
        match self.chosen() {
            _ if model.agent.turn.running => say("A turn is running; stop it first"),
            _ if model.agent.session.read_only => say("This session is open read-only"),
            SessionRow::Nothing => Reply::done(),
            // A branch that was left goes on where it ended.
            SessionRow::Turn(entry)
            | SessionRow::Left { end: Some(entry), .. }
            | SessionRow::Left { entry, end: None } => Reply::Done(vec![
                Effect::send(CommandBody::Session(SessionCommand::Fork { entry })),
                Effect::Focus(View::Composer),
            ]),
        }
    }
}

impl Panel for SessionsPanel {
    fn status(&self, model: &Model) -> PanelStatus {
        PanelStatus::new(if self.rows.typing() { "input" } else { "sessions" })
            .escape(self.rows.escape_step())
            .empty(self.empty(model))
    }

    fn title(&self, _model: &Model) -> String {
        "Session tree".into()
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, width: u16, model: &Model) -> Placement {
        Placement::Rows(LineList::height(self.lines(model, width).0, width))
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        match action.0 {
            "list.open" => return self.open(model),
            "tree.fork" => return self.fork(model),
            "tree.restore" => return self.restore(),
            "list.back" => return Reply::with(Effect::Focus(View::Composer)),
            id if self.rows.act(id) => self.moved = self.rows.chosen != self.now(),
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    fn input(&mut self, input: PanelInput<'_>, model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => self.on_key(key),
            PanelInput::Mouse(event, area) => self.on_mouse(event, area, model),
            PanelInput::Escape(_) => self.on_escape(),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, model: &Model) -> Reply {
        match event {
            PanelEvent::Engine(event) => self.on_event(event, model),
            PanelEvent::Answer(_, event) => self.on_answer(event, model),
            PanelEvent::Message(what) => self.on_message(what, model),
            PanelEvent::Focused => {
                self.graph.looked_at();
                self.want(model)
            }
            PanelEvent::Hidden => {
                self.seen = false;
                Reply::Ignored
            }
            PanelEvent::Tick => self.want(model),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        if let Some(hints) = self.rows.find_hints() {
            return hints;
        }
        let all = Hint::as_("tree.open", "all sessions");
        if self.chosen() == SessionRow::Nothing {
            return vec![all];
        }
        let fork = match self.chosen() {
            SessionRow::Left { end: Some(_), .. } => Hint::as_("tree.fork", "go on here"),
            _ => Hint::of("tree.fork"),
        };
        vec![Hint::as_("list.open", "look"), Hint::of("tree.restore"), fork, all]
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) -> Refresh {
        let (lines, what) = self.lines(cx.model, area.width);
        let before = self.chosen();
        self.what = what;
        // The end is followed until the person moves; then the choice stays with its row.
        match self.what.iter().position(|w| *w == before).filter(|_| before != SessionRow::Nothing) {
            Some(at) if self.moved => self.rows.chosen = at,
            _ if !self.moved => self.rows.chosen = self.now(),
            _ => {}
        }
        self.rows.set(lines, area);
        self.seen = area.area() > 0;
        // A tree that changed while it was not on the screen is read by the next tick.
        Refresh::after((self.seen && self.graph.is_due()).then_some(Duration::ZERO))
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        if self.what.is_empty() {
            explain(cx, area, "Your messages and branches appear here", buf);
        }
        self.rows.draw(cx, area, buf);
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        self.rows.cursor(area)
    }
}

impl SessionsPanel {
    fn empty(&self, model: &Model) -> bool {
        // Branches that were left at the very beginning are shown, too.
        self.graph.rows().is_empty()
            && !model
                .agent
                .conversation
                .cells()
                .iter()
                .any(|c| matches!(c.body, Body::User { origin: Origin::Prompt | Origin::Task, .. }))
    }

    fn on_key(&mut self, key: &KeyEvent) -> Reply {
        if !self.rows.key(key) {
            return Reply::Ignored;
        }
        self.moved = self.rows.chosen != self.now();
        Reply::done()
    }

    fn on_mouse(&mut self, event: &MouseEvent, area: Rect, model: &Model) -> Reply {
        let again = self.rows.mouse(event, area);
        self.moved = self.rows.chosen != self.now();
        if again { self.open(model) } else { Reply::done() }
    }

    fn on_escape(&mut self) -> Reply {
        self.rows.end_find();
        Reply::done()
    }

    /// Asks for the tree when it has changed and is seen.
    fn want(&mut self, model: &Model) -> Reply {
        // Without a row it has no place beside the conversation; the tree may give it one.
        let wide = SizeClass::of(model.window.screen.0, model.window.screen.1).wide();
        let next = self.graph.want(model, self.seen || (wide && self.empty(model)));
        if next.is_empty() { Reply::Ignored } else { Reply::Done(next) }
    }

    fn on_event(&mut self, event: &Event, model: &Model) -> Reply {
        // The answer may be among the missed events, of whichever agent the last event was.
        if matches!(&event.body, EventBody::State(StateEvent::Lagged { .. })) {
            self.graph = std::mem::take(&mut self.graph).parked();
            self.graph.changed();
            return self.want(model);
        }
        if event.agent != model.shown_agent() {
            return Reply::Ignored;
        }
        match &event.body {
            EventBody::Turn(TurnEvent::SessionStarted { .. }) => {
                self.graph = SessionGraph::default();
                self.graph.changed();
            }
            EventBody::Turn(TurnEvent::TurnFinished { .. }) => self.graph.turn_ended(),
            EventBody::State(StateEvent::HeadMoved { .. }) => self.graph.changed(),
            _ => return Reply::Ignored,
        }
        self.want(model)
    }

    fn on_answer(&mut self, event: &Event, model: &Model) -> Reply {
        let EventBody::Reply(reply) = &event.body else { return Reply::Ignored };
        let mut next = self.graph.answered(reply, model);
        if let Reply::Done(more) = self.want(model) {
            next.extend(more);
        }
        Reply::Done(next)
    }

    fn on_message(&mut self, what: Box<dyn std::any::Any>, model: &Model) -> Reply {
        let Ok(another) = what.downcast::<SessionSwitch>() else { return Reply::Ignored };
        let left = std::mem::take(&mut self.graph).parked();
        if another.main {
            // It has gone on meanwhile, perhaps in another session.
            let own = |home: &SessionGraph| home.session() == model.main_session();
            self.graph = self.home.take().filter(own).unwrap_or_default();
        } else {
            self.home.get_or_insert(left);
        }
        self.graph.changed();
        match self.want(model) {
            Reply::Ignored => Reply::done(),
            next => next,
        }
    }
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
