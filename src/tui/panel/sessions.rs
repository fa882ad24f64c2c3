//! The tree of this session: one line per turn of the path, the last one marked `now`, and where the path was left for
//! another, the abandoned branches. Each row can be viewed or branched.

#[path = "abandoned_branches.rs"]
mod abandoned_branches;

use std::collections::{HashMap, HashSet};

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::command::SessionCommand;
use tiller_protocol::event::{StateEvent, TurnEvent};
use tiller_protocol::{CommandBody, EntryId, Event, EventBody, Notice, NoticeKind, Origin, Time};

use self::abandoned_branches::AbandonedBranch;
use super::conversation::GoTo;
use super::empty_view::explain;
use super::times::clock;
use super::{DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply, View};
use crate::app::effect::{Effect, Token};
use crate::dialog::reader::text::Text;
use crate::dialog::session::restore::Restore;
use crate::keymap::action::{Action, ActionSpec};
use crate::keymap::scope::Scope;
use crate::model::conversation::Body;
use crate::model::{Model, Slice};
use crate::registry::PanelEntry;
use crate::text::line::{Line, Look, Wrap};
use crate::text::{clean, shorten_end, width};
use crate::theme::Role;
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
    ActionSpec::key_only("tree.fork", "fork here", "Branch before this message; nothing is lost"),
    ActionSpec::key_only(
        "tree.restore",
        "restore",
        "Restore files, conversation or both to this point; previews the change first",
    ),
];

/// One turn of the path.
struct Turn {
    entry: Option<EntryId>,
    text: String,
    time: Time,
    /// A checkpoint was made in it.
    checkpoint: bool,
    /// Every entry of it that is loaded.
    entries: Vec<EntryId>,
}

/// Message that another agent's session is shown from now on; `main`: the main agent's.
pub(crate) struct SessionSwitch {
    pub(crate) main: bool,
}

/// What a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionRow {
    Nothing,
    Turn(EntryId),
    /// An abandoned branch, by its last entry.
    AbandonedBranch(EntryId),
}

/// The panel.
#[derive(Default)]
pub struct SessionsPanel {
    rows: LineList,
    what: Vec<SessionRow>,
    left: Vec<AbandonedBranch>,
    /// The main agent's abandoned branches, while another agent is on the screen.
    home: Option<Vec<AbandonedBranch>>,
    /// The person has moved: the choice does not follow the end any more.
    moved: bool,
}

/// Turns of the loaded path, oldest first.
fn turns(model: &Model) -> Vec<Turn> {
    let mut all: Vec<Turn> = Vec::new();
    for cell in model.agent.conversation.cells() {
        if let Body::User { text, origin: Origin::Prompt | Origin::Task, .. } = &cell.body {
            all.push(Turn {
                entry: cell.entry,
                text: text.lines().next().unwrap_or("").to_owned(),
                time: cell.time,
                checkpoint: false,
                entries: Vec::new(),
            });
        }
        if let Some(last) = all.last_mut() {
            last.checkpoint |= matches!(cell.body, Body::Checkpoint { .. });
            last.entries.extend(cell.entry);
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

/// In place of the time of the last turn.
const NOW: &str = "now";

/// A branch that was left, under the turn after which it went its own way.
fn left_line(left: &AbandonedBranch, columns: usize) -> Line {
    let l = draw::lines(draw::ascii());
    let lane = format!("{}{}", l.tees[0], l.h);
    let lead = [(lane.as_str(), Role::Border), (draw::sign(sign::EMPTY), Role::Dim), (" ", Role::Dim)];
    row(&lead, left.words(), Look::of(Role::Dim), (&clock(left.time), false), columns)
}

fn line(turn: &Turn, now: bool, columns: usize) -> Line {
    let lead = [(draw::sign(sign::FULL), Role::User), (" ", Role::Text)];
    let look = if now { Look::of(Role::Strong).bold() } else { Look::of(Role::Text) };
    let time = if now { NOW.to_owned() } else { clock(turn.time) };
    row(&lead, &turn.text, look, (&time, turn.checkpoint), columns)
}

impl SessionsPanel {
    fn lines(&self, model: &Model, columns: u16) -> (Vec<Line>, Vec<SessionRow>) {
        let columns = usize::from(columns);
        let all = turns(model);
        let (mut lines, mut what) = (Vec::new(), Vec::new());
        let earlier = model.agent.conversation.above();
        if earlier > 0 {
            let text = format!("{earlier} earlier entries; scroll up in the conversation to load them");
            lines.push(Line::strict(&text, Look::of(Role::Dim), Wrap::Word));
            what.push(SessionRow::Nothing);
        }
        // The turn of each entry at which a branch was left or ends.
        let ends: HashSet<EntryId> = self.left.iter().flat_map(|l| [Some(l.tip), l.from]).flatten().collect();
        let turn_of = |(n, turn): (usize, &Turn)| {
            let named = turn.entries.iter().filter(|e| ends.contains(e));
            named.map(|e| (*e, n)).collect::<Vec<_>>()
        };
        let places: HashMap<EntryId, usize> = match ends.is_empty() {
            true => HashMap::new(),
            false => all.iter().enumerate().flat_map(turn_of).collect(),
        };
        let last = all.len().saturating_sub(1);
        for at in std::iter::once(None).chain((0..all.len()).map(Some)) {
            if let Some((n, turn)) = at.and_then(|n| Some((n, all.get(n)?))) {
                lines.push(line(turn, n == last, columns));
                what.push(turn.entry.map_or(SessionRow::Nothing, SessionRow::Turn));
            }
            // A branch whose tip lies on the path is the path.
            let begins = |l: &AbandonedBranch| l.from.and_then(|f| places.get(&f).copied());
            for l in self.left.iter().filter(|l| !places.contains_key(&l.tip) && begins(l) == at) {
                lines.push(left_line(l, columns));
                what.push(SessionRow::AbandonedBranch(l.tip));
            }
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

    fn open(&self) -> Reply {
        match self.chosen() {
            SessionRow::Nothing => Reply::done(),
            SessionRow::Turn(entry) => {
                let go = Effect::Tell(View::Conversation, Box::new(GoTo::Entry(entry)));
                Reply::Done(vec![Effect::Focus(View::Conversation), go])
            }
            SessionRow::AbandonedBranch(tip) => match self.left.iter().find(|l| l.tip == tip) {
                Some(l) => {
                    Reply::with(Effect::Push(Box::new(Text::prose("A branch that you left", &l.text))))
                }
                None => Reply::done(),
            },
        }
    }

    fn restore(&self) -> Reply {
        match self.chosen() {
            SessionRow::Turn(entry) | SessionRow::AbandonedBranch(entry) => {
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
            SessionRow::Turn(entry) | SessionRow::AbandonedBranch(entry) => Reply::Done(vec![
                Effect::send(CommandBody::Session(SessionCommand::Fork { entry })),
                Effect::Focus(View::Composer),
            ]),
            SessionRow::Nothing => Reply::done(),
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
            "list.open" => return self.open(),
            "tree.fork" => return self.fork(model),
            "tree.restore" => return self.restore(),
            "list.back" => return Reply::with(Effect::Focus(View::Composer)),
            id if self.rows.act(id) => self.moved = self.rows.chosen != self.now(),
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    fn input(&mut self, input: PanelInput<'_>, _model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => self.on_key(key),
            PanelInput::Mouse(event, area) => self.on_mouse(event, area),
            PanelInput::Escape(_) => self.on_escape(),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, model: &Model) -> Reply {
        match event {
            PanelEvent::Engine(event) => self.on_event(event),
            PanelEvent::Answer(token, event) => self.on_answer(token, event, model),
            PanelEvent::Message(what) => self.on_message(what),
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
        vec![Hint::as_("list.open", "look"), Hint::of("tree.restore"), Hint::of("tree.fork"), all]
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
        Refresh::default()
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
        self.left.is_empty()
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

    fn on_mouse(&mut self, event: &MouseEvent, area: Rect) -> Reply {
        let again = self.rows.mouse(event, area);
        self.moved = self.rows.chosen != self.now();
        if again { self.open() } else { Reply::done() }
    }

    fn on_escape(&mut self) -> Reply {
        self.rows.end_find();
        Reply::done()
    }

    fn on_event(&mut self, event: &Event) -> Reply {
        match &event.body {
            EventBody::Turn(TurnEvent::SessionStarted { .. }) => self.left.clear(),
            EventBody::State(StateEvent::HeadMoved { .. }) => {}
            _ => return Reply::Ignored,
        }
        Reply::Done(abandoned_branches::ask())
    }

    fn on_answer(&mut self, token: Token, event: &Event, model: &Model) -> Reply {
        match &event.body {
            // Another agent is on the screen by now.
            _ if event.agent != model.shown_agent() => Reply::done(),
            EventBody::Reply(r) => Reply::Done(abandoned_branches::answered(&mut self.left, token, r)),
            _ => Reply::Ignored,
        }
    }

    fn on_message(&mut self, what: Box<dyn std::any::Any>) -> Reply {
        let Ok(another) = what.downcast::<SessionSwitch>() else { return Reply::Ignored };
        if another.main {
            self.left = self.home.take().unwrap_or_default();
            return Reply::done();
        }
        let left = std::mem::take(&mut self.left);
        self.home.get_or_insert(left);
        Reply::Done(abandoned_branches::ask())
    }
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
