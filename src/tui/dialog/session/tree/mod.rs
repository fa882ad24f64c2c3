//! The tree browser: every session as a tree, over the whole screen. Any entry can be continued, branched, restored,
//! compared and named. Rows are rebuilt only when folds or filters change; texts and previews are read when they come
//! into view.

mod actions;
mod badges;
mod columns;
mod draw;
mod facts;
mod field;
mod filter;
mod forest;
mod keys;
mod naming;
mod preview_pane;
mod requests;
mod sample;
mod shape;

use std::collections::HashMap;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::event::{StateEvent, TurnEvent};
use tiller_protocol::tree::{TreeFound, TreeLine};
use tiller_protocol::{EntryId, Event, EventBody, SessionId};

pub(crate) use self::actions::ACTIONS;
use self::actions::KEYS;
use self::badges::Badge;
use self::draw::BrowserAreas;
pub(crate) use self::draw::{dollars, glyph, inner_glyph};
use self::field::Field;
use self::filter::EntryFilter;
pub(crate) use self::filter::Filter;
pub(crate) use self::forest::{Forest, RowKind, TreeRow};
use self::preview_pane::PreviewPane;
pub(crate) use self::sample::sample;
pub(crate) use self::shape::Shape;
use crate::app::App;
use crate::app::effect::{Effect, Token};
use crate::input::escape::EscapeStep;
use crate::keymap::Chord;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::panel::{DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply};
use crate::registry::{Dialog, Opener};
use crate::widget::input;
use crate::widget::list::ListState;

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new(
        "tree.open",
        "tree",
        "All sessions as trees: browse, branch, restore, name, filter",
        |app| Ok(Box::new(open(app))),
    )
    .menu(Menu::Go)
    .keys(&["leader T"])],
    groups: &[("Tree of all sessions", ACTIONS)],
    scopes: &[Scope::new("tree", Some("list"), "Tree of all sessions", false).keys(KEYS)],
    samples: &[("tree", || Box::new(sample()))],
    ..Dialog::NONE
};

/// The text of an entry on its way to the clipboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PendingCopy {
    No,
    Wanted(EntryId),
}

/// The search in the text of all entries.
#[derive(Default)]
struct TextSearch {
    /// The text that the person has typed.
    typed: String,
    /// The text of the running query; `None`: no query is running.
    finding: Option<String>,
    found: Option<TreeFound>,
}

/// Where the dialog was opened from, and how far its list reaches.
#[derive(Default)]
struct Origin {
    /// Sessions of all projects are listed.
    everywhere: bool,
    /// The session of the agent on the screen.
    here: Option<SessionId>,
    /// For a child agent, the session that started it.
    root: Option<SessionId>,
    /// The entry of `here` to select first.
    goal: Option<EntryId>,
}

/// The progress of loading the list and the trees.
#[derive(Default)]
struct Loading {
    /// The list of sessions is here.
    listed: bool,
    /// The selection was put on the entry that the person came from.
    placed: bool,
    /// The open session changed while its tree was on its way.
    stale: bool,
    /// A session that is not open, and is being changed.
    changing: Option<SessionId>,
}

/// The texts of rows, which are read when a row comes on the screen.
#[derive(Default)]
struct LineTexts {
    by_entry: HashMap<EntryId, TreeLine>,
    /// A request for texts is running.
    asked: bool,
}

/// The dialog.
pub(crate) struct Browser {
    forest: Forest,
    filter: Filter,
    rows: Vec<TreeRow>,
    list: ListState,
    page: usize,
    /// Names at rows, by tree and node.
    badges: HashMap<(u32, u32), Vec<Badge>>,
    lines: LineTexts,
    search: TextSearch,
    field: Field,
    side: PreviewPane,
    side_shown: bool,
    copying: PendingCopy,
    origin: Origin,
    /// The entry that is marked for comparison.
    marked: Option<(SessionId, EntryId)>,
    loading: Loading,
}

/// Makes it.
pub(crate) fn open(app: &App) -> Browser {
    Browser::on(&app.model)
}

/// Opens the browser with this entry selected.
pub(crate) fn at(model: &Model, entry: EntryId) -> Browser {
    let mut browser = Browser::on(model);
    browser.origin.goal = Some(entry);
    browser
}

impl Browser {
    fn on(model: &Model) -> Self {
        let here = model.shown_session();
        let root = model.main_session().filter(|main| Some(*main) != here);
        let mut browser = Self::of(here);
        browser.origin.root = root;
        browser
    }

    fn of(here: Option<SessionId>) -> Self {
        Self {
            forest: Forest::default(),
            filter: Filter::default(),
            rows: Vec::new(),
            list: ListState::default(),
            page: 0,
            badges: HashMap::new(),
            lines: LineTexts::default(),
            search: TextSearch::default(),
            field: Field::None,
            side: PreviewPane::default(),
            side_shown: false,
            copying: PendingCopy::No,
            origin: Origin { here, ..Origin::default() },
            marked: None,
            loading: Loading::default(),
        }
    }

    fn chosen(&self) -> Option<TreeRow> {
        self.rows.get(self.list.chosen).copied()
    }

    fn chosen_entry(&self) -> Option<EntryId> {
        let row = self.chosen()?;
        let RowKind::Node(n) = row.what else { return None };
        Some(self.forest.trees[row.tree as usize].shape()?.tree.nodes[n as usize].id)
    }

    /// Rebuilds the rows. The selection stays with its row, or moves to the nearest row above that is left.
    fn rebuild(&mut self) {
        let before = std::mem::take(&mut self.rows);
        self.rows = self.forest.rows(&self.filter);
        self.name_rows();
        if let Some(chosen) = before.get(self.list.chosen) {
            let from_top = self.list.chosen.saturating_sub(self.list.top);
            let key = |r: &TreeRow| (r.tree, r.what);
            let at: HashMap<_, _> = match self.rows.iter().position(|r| key(r) == key(chosen)) {
                Some(at) => std::iter::once((key(chosen), at)).collect(),
                None => self.rows.iter().enumerate().map(|(n, r)| (key(r), n)).collect(),
            };
            let left = before[..=self.list.chosen].iter().rev().find_map(|r| at.get(&key(r)));
            self.list.chosen = left.copied().unwrap_or(0);
            self.list.top = self.list.chosen.saturating_sub(from_top);
        }
        self.list.show(self.rows.len(), self.page.max(1));
    }

    /// The active filters in words.
    fn shown_words(&self) -> String {
        let mut words = Vec::new();
        let only = self.filter.only.words();
        words.extend((!only.is_empty()).then(|| only.to_owned()));
        words.extend(self.filter.agent.as_ref().map(|a| format!("only agent {a}")));
        words.extend(self.filter.archived.then(|| "including archived".to_owned()));
        words.extend(self.filter.all.then(|| "all calls".to_owned()));
        words.join(", ")
    }

    fn nothing(&self) -> &'static str {
        match (self.loading.listed, self.filter.active()) {
            (false, _) => "Loading...",
            (true, true) => "No entry matches the filter; Esc clears it",
            (true, false) => "Sessions appear here once you have sent a message",
        }
    }

    /// The open session has changed: its tree is read again.
    fn reload(&mut self) -> Vec<Effect> {
        self.side.stale();
        match self.origin.here.and_then(|id| self.forest.find(id)) {
            Some(n) if matches!(self.forest.trees[n].state, forest::LoadState::Requested) => {
                self.loading.stale = true;
                Vec::new()
            }
            Some(n) if self.forest.trees[n].shape().is_some() => vec![self.load(n)],
            // The session was empty so far.
            Some(n) => vec![self.list_query(), self.load(n)],
            None => Vec::new(),
        }
    }
}

impl Panel for Browser {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new(if matches!(self.field, Field::None) { "tree" } else { "input" })
            .escape(self.escape_step())
    }

    fn title(&self, _model: &Model) -> String {
        let of = if self.origin.everywhere { "all projects" } else { "this project" };
        let n = self.forest.roots.len();
        let s = if n == 1 { "" } else { "s" };
        if self.loading.listed { format!("Tree of {of}, {n} session{s}") } else { format!("Tree of {of}") }
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, _columns: u16, _model: &Model) -> Placement {
        Placement::Full
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        if self.field_shown() && !matches!(self.field, Field::None) {
            let Some(edit) = self.editing() else { return Reply::Ignored };
            if action.0 == "input.done" {
                return self.field_done();
            }
            return if edit.act(action.0) { self.field_changed() } else { Reply::Ignored };
        }
        self.act_on_row(action, model)
    }

    fn input(&mut self, input: PanelInput<'_>, model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => self.on_key(key),
            PanelInput::Paste(text) => self.on_paste(text),
            PanelInput::Mouse(event, area) => self.on_mouse(event, area, model),
            PanelInput::Escape(escape_step) => self.on_escape(escape_step),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, _model: &Model) -> Reply {
        match event {
            PanelEvent::Opened => Reply::Done(self.on_open()),
            PanelEvent::Tick => match self.wants() {
                nothing if nothing.is_empty() => Reply::Ignored,
                all => Reply::Done(all),
            },
            PanelEvent::Engine(event) => self.on_event(event),
            PanelEvent::Answer(token, event) => self.on_answer(token, event),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, model: &Model) -> Vec<Hint> {
        self.row_hints(model)
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) -> Refresh {
        let parts = self.parts(area);
        self.page = usize::from(parts.rows.height);
        self.side_shown = parts.side.width > 0;
        self.list.show(self.rows.len(), self.page.max(1));
        if !self.side_shown {
            return Refresh::default();
        }
        if let Some(entry) = self.chosen_entry() {
            let facts = self.facts();
            self.side.measure(parts.side, (entry, self.is_markdown()), facts);
            // What has come into view with this size is requested before the next key.
            let missing = self.preview_missing().then_some(Duration::ZERO);
            return Refresh::after(missing.or(self.side.colours.wake()));
        }
        let lines = self.session_lines(cx.model, cx.now);
        self.side.measure_session(parts.side, lines);
        Refresh::default()
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        self.paint(cx, area, buf);
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        let BrowserAreas { rows, field, .. } = self.parts(area);
        if let (label, Some(edit)) = self.field_line() {
            let skip = (label.len() as u16).min(field.width);
            let count = self.count().len() as u16;
            let width = field.width.saturating_sub(skip + count + 1);
            return Some(input::caret(edit, Rect { x: field.x + skip, width, ..field }));
        }
        let row = self.list.chosen.checked_sub(self.list.top)? as u16;
        (row < rows.height).then(|| Position::new(rows.x, rows.y + row))
    }
}

impl Browser {
    fn escape_step(&self) -> Option<EscapeStep> {
        match self.field {
            Field::None | Field::Find(_) => {
                (self.field_shown() || self.filter.active()).then_some(EscapeStep::Search)
            }
            _ => Some(EscapeStep::Popup),
        }
    }

    fn on_key(&mut self, key: &KeyEvent) -> Reply {
        let Some(edit) = self.editing() else { return Reply::Ignored };
        if let Some(c) = Chord::of(key).text() {
            edit.insert(c.encode_utf8(&mut [0; 4]));
            return self.field_changed();
        }
        if key.code == KeyCode::Enter { self.field_done() } else { Reply::Ignored }
    }

    fn on_paste(&mut self, text: &str) -> Reply {
        let Some(edit) = self.editing() else { return Reply::Ignored };
        edit.insert(text.lines().next().unwrap_or_default());
        self.field_changed()
    }

    fn on_mouse(&mut self, event: &MouseEvent, area: Rect, model: &Model) -> Reply {
        let parts = self.parts(area);
        let at = Position::new(event.column, event.row);
        let (len, page) = (self.rows.len(), self.page.max(1));
        match event.kind {
            MouseEventKind::ScrollDown | MouseEventKind::ScrollUp => {
                let down = event.kind == MouseEventKind::ScrollDown;
                if parts.side.contains(at) {
                    self.side.scroll(down);
                } else {
                    let id = if down { "list.down" } else { "list.up" };
                    for _ in 0..3 {
                        self.list.act(id, len, page);
                    }
                }
            }
            MouseEventKind::Down(MouseButton::Left) if parts.rows.contains(at) => {
                let row = self.list.top + usize::from(at.y - parts.rows.y);
                if row < len {
                    let again = std::mem::replace(&mut self.list.chosen, row) == row;
                    if again {
                        return self.act_on_row(Action("list.open"), model);
                    }
                }
            }
            _ => return Reply::Ignored,
        }
        Reply::Done(self.wants())
    }

    fn on_escape(&mut self, escape_step: EscapeStep) -> Reply {
        if escape_step == EscapeStep::Layer {
            return Reply::with(Effect::Pop);
        }
        self.field = Field::None;
        if escape_step == EscapeStep::Search {
            self.search.typed.clear();
            self.search.found = None;
            self.filter.only = EntryFilter::All;
            self.filter.agent = None;
            self.rebuild();
        }
        Reply::Done(self.wants())
    }

    fn on_open(&mut self) -> Vec<Effect> {
        // The open session's tree does not wait for the list.
        let trees: Vec<usize> =
            self.origin.root.iter().chain(&self.origin.here).map(|id| self.forest.ready(*id)).collect();
        let mut all = vec![self.list_query()];
        all.extend(trees.into_iter().map(|n| self.load(n)));
        all
    }

    fn on_event(&mut self, event: &Event) -> Reply {
        match &event.body {
            EventBody::Turn(TurnEvent::SessionStarted { .. }) => {
                self.origin.here = Some(event.session);
                let n = self.forest.ready(event.session);
                Reply::Done(vec![self.list_query(), self.load(n)])
            }
            EventBody::Turn(
                TurnEvent::UserMessage { .. } | TurnEvent::TurnFinished { .. } | TurnEvent::Compacted { .. },
            )
            | EventBody::State(
                StateEvent::HeadMoved { .. }
                | StateEvent::CheckpointCreated { .. }
                | StateEvent::Restored { .. }
                | StateEvent::BranchNamed { .. }
                | StateEvent::BranchArchived { .. }
                | StateEvent::TagChanged { .. },
            ) => Reply::Done(self.reload()),
            EventBody::State(StateEvent::TitleChanged { .. }) => Reply::with(self.list_query()),
            _ => Reply::Ignored,
        }
    }

    fn on_answer(&mut self, token: Token, event: &Event) -> Reply {
        match &event.body {
            EventBody::Reply(r) => self.answered(token, r),
            _ => Reply::Ignored,
        }
    }
}

#[cfg(test)]
mod crew_tests;
#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
