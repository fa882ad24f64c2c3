//! The tree browser: every session as a tree, over the whole screen. From any entry one can go on, go another way,
//! go back, compare, and give names. Rows are made anew only when folds or filters change; words and previews are
//! read when they come into view.

mod actions;
mod ask;
mod columns;
mod draw;
mod filter;
mod forest;
mod keys;
mod naming;
mod sample;
mod shape;
mod side;
mod told;

use std::collections::HashMap;

use crossterm::event::{KeyCode, KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::event::{StateEvent, TurnEvent};
use tiller_protocol::tree::{TreeFound, TreeLine};
use tiller_protocol::{EntryId, Event, EventBody, SessionId};

pub(crate) use self::actions::ACTIONS;
use self::draw::Parts;
use self::filter::{Filter, Only};
use self::forest::{Forest, Row, What};
pub(crate) use self::sample::sample;
use self::side::Side;
use crate::action::{Action, ActionSpec};
use crate::app::App;
use crate::effect::{Effect, Token};
use crate::keymap::Chord;
use crate::ladder::Rung;
use crate::model::Model;
use crate::panel::{DrawCx, Hint, Panel, Place, Reply};
use crate::theme::Role;
use crate::widget::edit::Edit;
use crate::widget::input;
use crate::widget::list::ListState;

/// The text of an entry on its way to the clipboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copying {
    No,
    Wanted(EntryId),
}

/// What is typed at the bottom.
#[derive(Debug)]
enum Field {
    None,
    /// Words to look for.
    Find(Edit),
    /// A new name for this branch.
    Branch(SessionId, String, Edit),
    Title(SessionId, Edit),
    Tag(SessionId, EntryId, Edit),
    /// The file that a session is written to.
    Export(SessionId, Edit),
}

/// A name at a row.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Badge {
    text: String,
    role: Role,
    /// Place of the head in its tree, where it is one.
    head: Option<usize>,
}

/// The dialog.
pub(crate) struct Browser {
    forest: Forest,
    filter: Filter,
    rows: Vec<Row>,
    list: ListState,
    page: usize,
    /// Names at rows, by tree and node.
    badges: HashMap<(u32, u32), Vec<Badge>>,
    words: HashMap<EntryId, TreeLine>,
    lines_asked: bool,
    /// Words to look for, as typed; what is asked for; what was found.
    typed: String,
    finding: Option<String>,
    found: Option<TreeFound>,
    field: Field,
    side: Side,
    side_shown: bool,
    copying: Copying,
    everywhere: bool,
    /// The open session.
    here: Option<SessionId>,
    /// To be compared with another.
    marked: Option<(SessionId, EntryId)>,
    /// A session that is not open, and is being changed.
    changing: Option<SessionId>,
    /// The choice was put where the person is.
    placed: bool,
    /// The list of sessions is here.
    heard: bool,
    /// The open session changed while its tree was on its way.
    stale: bool,
}

/// Makes it.
pub(crate) fn open(app: &App) -> Browser {
    Browser::of(app.model.session.summary.as_ref().map(|s| s.id))
}

impl Browser {
    fn of(here: Option<SessionId>) -> Self {
        Self {
            forest: Forest::default(),
            filter: Filter::default(),
            rows: Vec::new(),
            list: ListState::default(),
            page: 0,
            badges: HashMap::new(),
            words: HashMap::new(),
            lines_asked: false,
            typed: String::new(),
            finding: None,
            found: None,
            field: Field::None,
            side: Side::default(),
            side_shown: false,
            copying: Copying::No,
            everywhere: false,
            here,
            marked: None,
            changing: None,
            placed: false,
            heard: false,
            stale: false,
        }
    }

    fn chosen(&self) -> Option<Row> {
        self.rows.get(self.list.chosen).copied()
    }

    fn chosen_entry(&self) -> Option<EntryId> {
        let row = self.chosen()?;
        let What::Node(n) = row.what else { return None };
        Some(self.forest.trees[row.tree as usize].shape()?.tree.nodes[n as usize].id)
    }

    /// Makes the rows anew; the choice stays with its row, or goes to the nearest above that is left.
    fn rebuild(&mut self) {
        let before = std::mem::take(&mut self.rows);
        self.rows = self.forest.rows(&self.filter);
        self.name_rows();
        if let Some(chosen) = before.get(self.list.chosen) {
            let from_top = self.list.chosen.saturating_sub(self.list.top);
            let key = |r: &Row| (r.tree, r.what);
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

    /// Names stand at their entry's row, or at the nearest one above that is shown.
    fn name_rows(&mut self) {
        self.badges.clear();
        let filtered = self.filter.active();
        let mut shown: HashMap<u32, Vec<bool>> = HashMap::new();
        for row in &self.rows {
            let Some(shape) = self.forest.trees[row.tree as usize].shape() else { continue };
            if let What::Node(n) = row.what {
                shown.entry(row.tree).or_insert_with(|| vec![false; shape.depth.len()])[n as usize] = true;
            }
        }
        for (tree, shown) in shown {
            let Some(shape) = self.forest.trees[tree as usize].shape() else { continue };
            let nodes = &shape.tree.nodes;
            let mut put = |node: Option<u32>, badge: Badge| {
                let mut at = node;
                while let Some(n) = at.filter(|n| !shown[*n as usize]) {
                    // A filter leaves out what lies between: there a name goes no further up than its turn.
                    let turn = shape.turn[n as usize];
                    at = if filtered { Some(turn).filter(|t| *t != n) } else { nodes[n as usize].parent };
                }
                if let Some(n) = at {
                    self.badges.entry((tree, n)).or_default().push(badge);
                }
            };
            let several = shape.tree.heads.len() > 1;
            for (n, h) in shape.tree.heads.iter().enumerate() {
                if h.archived && !h.current && !self.filter.archived {
                    continue;
                }
                let word = match (h.label.is_empty(), h.name.as_str()) {
                    (false, _) => h.label.clone(),
                    (true, "main") if several => "main".into(),
                    (true, _) if several => "branch".into(),
                    _ => String::new(),
                };
                let away = if h.archived { ", put away" } else { "" };
                if !word.is_empty() {
                    let text = format!("[{word}{away}]");
                    put(h.node, Badge { text, role: Role::Accent, head: Some(n) });
                }
                if h.current {
                    put(h.node, Badge { text: "now".into(), role: Role::Running, head: Some(n) });
                }
            }
            for t in &shape.tree.tags {
                put(Some(t.node), Badge { text: format!("#{}", t.name), role: Role::Waiting, head: None });
            }
        }
    }

    /// The row of the open session's head.
    fn now_row(&self) -> Option<usize> {
        let n = self.forest.find(self.here?)? as u32;
        let is_now = |r: &Row| match r.what {
            What::Node(node) => {
                self.badges.get(&(n, node)).is_some_and(|b| r.tree == n && b.iter().any(|b| b.text == "now"))
            }
            _ => false,
        };
        self.rows.iter().position(is_now)
    }

    fn field_shown(&self) -> bool {
        !matches!(self.field, Field::None) || !self.typed.is_empty()
    }

    /// What stands at the bottom: label and words.
    fn field_line(&self) -> (&'static str, Option<&Edit>) {
        match &self.field {
            Field::None => ("/", None),
            Field::Find(edit) => ("/", Some(edit)),
            Field::Branch(_, _, edit) => ("name of the branch: ", Some(edit)),
            Field::Title(_, edit) => ("title: ", Some(edit)),
            Field::Tag(_, _, edit) => ("name of the entry: ", Some(edit)),
            Field::Export(_, edit) => ("new file (.md, .html, .jsonl): ", Some(edit)),
        }
    }

    fn editing(&mut self) -> Option<&mut Edit> {
        match &mut self.field {
            Field::None => None,
            Field::Find(edit)
            | Field::Branch(_, _, edit)
            | Field::Title(_, edit)
            | Field::Tag(_, _, edit)
            | Field::Export(_, edit) => Some(edit),
        }
    }

    /// How many entries were found.
    fn count(&self) -> String {
        let found = match (&self.field, &self.found) {
            (Field::None | Field::Find(_), Some(found)) if !self.typed.trim().is_empty() => found,
            _ => return String::new(),
        };
        let n: usize = found.sessions.iter().map(|(_, s)| s.len()).sum();
        let more = if found.more { "+" } else { "" };
        match (n, found.behind) {
            (0, 0) => "nothing found".into(),
            (_, 0) => format!("{n}{more} found"),
            (_, behind) => format!("{n}{more} found, {behind} entries not looked at yet"),
        }
    }

    /// What the filters leave.
    fn shown_words(&self) -> String {
        let mut words = Vec::new();
        let only = self.filter.only.words();
        words.extend((!only.is_empty()).then(|| only.to_owned()));
        words.extend(self.filter.agent.as_ref().map(|a| format!("only agent {a}")));
        words.extend(self.filter.archived.then(|| "also put away".to_owned()));
        words.extend(self.filter.all.then(|| "all calls".to_owned()));
        words.join(", ")
    }

    fn nothing(&self) -> &'static str {
        match (self.heard, self.filter.active()) {
            (false, _) => "looking...",
            (true, true) => "nothing fits the filter; escape ends it",
            (true, false) => "no session yet",
        }
    }

    /// The open session has changed: its tree is read again.
    fn reload(&mut self) -> Vec<Effect> {
        self.side.stale();
        match self.here.and_then(|id| self.forest.find(id)) {
            Some(n) if matches!(self.forest.trees[n].state, forest::State::Asked) => {
                self.stale = true;
                Vec::new()
            }
            Some(n) if self.forest.trees[n].shape().is_some() => vec![self.load(n)],
            // It had nothing in it so far.
            Some(n) => vec![self.list_query(), self.load(n)],
            None => Vec::new(),
        }
    }
}

impl Panel for Browser {
    fn scope(&self) -> &'static str {
        if matches!(self.field, Field::None) { "tree" } else { "input" }
    }

    fn title(&self, _model: &Model) -> String {
        let of = if self.everywhere { "all projects" } else { "this project" };
        let n = self.forest.roots.len();
        let s = if n == 1 { "" } else { "s" };
        if self.heard { format!("tree of {of}, {n} session{s}") } else { format!("tree of {of}") }
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn opened(&mut self, _model: &Model) -> Vec<Effect> {
        // The open session's tree does not wait for the list.
        let tree = self.here.map(|id| self.forest.ready(id)).map(|n| self.load(n));
        std::iter::once(self.list_query()).chain(tree).collect()
    }

    fn place(&self, _model: &Model) -> Place {
        Place::Full
    }

    fn event(&mut self, event: &Event, _model: &Model) -> Reply {
        match &event.body {
            EventBody::Turn(TurnEvent::SessionStarted { .. }) => {
                self.here = Some(event.session);
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

    fn reply(&mut self, token: Token, event: &Event, _model: &Model) -> Reply {
        match &event.body {
            EventBody::Reply(r) => self.answered(token, r),
            _ => Reply::Ignored,
        }
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

    fn rung(&self, _model: &Model) -> Option<Rung> {
        match self.field {
            Field::None | Field::Find(_) => {
                (self.field_shown() || self.filter.active()).then_some(Rung::Search)
            }
            _ => Some(Rung::Popup),
        }
    }

    fn escape(&mut self, rung: Rung, _model: &Model) -> Reply {
        if rung == Rung::Layer {
            return Reply::with(Effect::Pop);
        }
        self.field = Field::None;
        if rung == Rung::Search {
            self.typed.clear();
            self.found = None;
            self.filter.only = Only::All;
            self.filter.agent = None;
            self.rebuild();
        }
        Reply::Done(self.wants())
    }

    fn key(&mut self, key: &KeyEvent, _model: &Model) -> Reply {
        let Some(edit) = self.editing() else { return Reply::Ignored };
        if let Some(c) = Chord::of(key).text() {
            edit.insert(c.encode_utf8(&mut [0; 4]));
            return self.field_changed();
        }
        if key.code == KeyCode::Enter { self.field_done() } else { Reply::Ignored }
    }

    fn paste(&mut self, text: &str, _model: &Model) -> Reply {
        let Some(edit) = self.editing() else { return Reply::Ignored };
        edit.insert(text.lines().next().unwrap_or_default());
        self.field_changed()
    }

    fn mouse(&mut self, event: &MouseEvent, area: Rect, model: &Model) -> Reply {
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

    fn hints(&self, model: &Model) -> Vec<Hint> {
        self.row_hints(model)
    }

    fn measure(&mut self, area: Rect, _cx: &DrawCx<'_>) {
        let parts = self.parts(area);
        self.page = usize::from(parts.rows.height);
        self.side_shown = parts.side.width > 0;
        self.list.show(self.rows.len(), self.page.max(1));
        if let Some(entry) = self.chosen_entry().filter(|_| self.side_shown) {
            let facts = self.facts();
            self.side.measure(parts.side, entry, facts);
        }
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        self.paint(cx, area, buf);
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        let Parts { rows, field, .. } = self.parts(area);
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

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
