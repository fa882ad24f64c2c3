//! The live plan: items that are done, in progress and to do. The person can edit all of it.

use std::collections::HashSet;

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::command::TodoCommand;
use tiller_protocol::event::{StateEvent, TurnEvent};
use tiller_protocol::{AgentId, CommandBody, Event, EventBody, Notice, NoticeKind, TodoItem, TodoStatus};

use super::empty_view::explain;
use super::{DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply, View};
use crate::app::effect::{Effect, Task};
use crate::input::escape::EscapeStep;
use crate::keymap::Chord;
use crate::keymap::action::{Action, ActionSpec};
use crate::keymap::scope::{DefaultKey, Scope};
use crate::model::{Model, Slice};
use crate::registry::PanelEntry;
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::theme::Role;
use crate::widget::edit::Edit;
use crate::widget::line_list::LineList;
use crate::widget::{draw, input, sign};

/// Registers the panel.
pub(crate) const PANEL: PanelEntry = PanelEntry {
    view: View::Todo,
    make: |_| Box::new(Todo::default()),
    reads: &[Slice::Todo, Slice::Crew],
    groups: &[("Todo", ACTIONS)],
    scopes: &[
        Scope::new("todo", Some("list"), "Todo", false).keys(KEYS),
        Scope::new("todo_text", Some("input"), "Todo, words", true).keys(&[("enter", "todo.send")]),
    ],
};

/// Its actions, besides those of a list.
pub const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("todo.add", "add", "Add an item"),
    ActionSpec::key_only("todo.edit", "edit", "Edit the selected item"),
    ActionSpec::key_only("todo.start", "start", "Mark the selected item as in progress"),
    ActionSpec::key_only("todo.cancel", "cancel", "Cancel or restore the selected item"),
    ActionSpec::key_only("todo.down", "move down", "Move the item down"),
    ActionSpec::key_only("todo.up", "move up", "Move the item up"),
    ActionSpec::key_only("todo.agent", "go to agent", "Go to the agent that works on the selected item"),
    ActionSpec::key_only("todo.send", "done", "Save the text"),
];

/// Default keys of the section `todo`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("a", "todo.add"),
    ("e", "todo.edit"),
    ("s", "todo.start"),
    ("c", "todo.cancel"),
    ("@", "todo.agent"),
    ("J", "todo.down"),
    ("K", "todo.up"),
];

/// Cells of the gauge in the title.
const GAUGE: usize = 6;

/// The panel.
#[derive(Default)]
pub struct Todo {
    rows: LineList,
    /// The item that is being edited (`None`: a new one), and its text.
    edit: Option<(Option<String>, Edit)>,
    /// Agents whose list has changed since their last turn ended.
    fresh: HashSet<AgentId>,
}

/// The sign of a state, its look, and that of the words.
fn mark(status: TodoStatus) -> (&'static str, Role, Look) {
    match status {
        TodoStatus::Pending => (draw::sign(sign::EMPTY), Role::Dim, Look::of(Role::Text)),
        TodoStatus::InProgress => (draw::sign(sign::HALF), Role::Running, Look::of(Role::Strong).bold()),
        TodoStatus::Completed => (draw::sign(sign::OK), Role::Ok, Look::of(Role::Dim)),
        TodoStatus::Cancelled => (draw::sign(sign::DOT), Role::Dim, Look::of(Role::Dim).strike()),
    }
}

fn gutter(status: TodoStatus) -> Gutter {
    let (sign, role, _) = mark(status);
    Gutter::new(format!("{sign} "), role)
}

fn line(model: &Model, item: &TodoItem) -> Line {
    let (_, _, look) = mark(item.status);
    let mut line = Line::new(Wrap::Word);
    line.push(&item.content.replace('\n', " "), look);
    if let Some(agent) = model.assignee(item) {
        line.push_strict(&format!("  @{}", model.name_of(agent)), Look::of(Role::Agent));
    }
    line.gutter(gutter(item.status))
}

/// Every item on a line of its own.
fn all(model: &Model) -> Vec<Line> {
    model.agent.todo.iter().map(|i| line(model, i)).collect()
}

/// The short form for so many rows: done items are counted, and so are items to do that find no room.
fn folded(model: &Model, rows: usize) -> Vec<Line> {
    let with = |s: TodoStatus| model.agent.todo.iter().filter(move |i| i.status == s);
    let over = |n: usize| n > rows;
    let mut lines: Vec<Line> = Vec::new();
    let done = with(TodoStatus::Completed).count();
    let gone = with(TodoStatus::Cancelled).count();
    let open = with(TodoStatus::InProgress).count();
    if over(done + gone + open + 1) && done + gone > 1 {
        let mut sum = Line::new(Wrap::Word);
        let words = if gone > 0 { format!("{done} done, {gone} cancelled") } else { format!("{done} done") };
        sum.push(&words, Look::of(Role::Dim));
        lines.push(sum.gutter(gutter(TodoStatus::Completed)));
    } else {
        lines.extend(with(TodoStatus::Completed).chain(with(TodoStatus::Cancelled)).map(|i| line(model, i)));
    }
    lines.extend(with(TodoStatus::InProgress).map(|i| line(model, i)));
    let pending = with(TodoStatus::Pending).count();
    let room = rows.saturating_sub(lines.len());
    let shown = if pending <= room { pending } else { room.saturating_sub(1) };
    lines.extend(with(TodoStatus::Pending).take(shown).map(|i| line(model, i)));
    if pending > shown {
        let mut more = Line::new(Wrap::Word);
        more.push(&format!("{} more to do", pending - shown), Look::of(Role::Dim));
        lines.push(more.gutter(gutter(TodoStatus::Pending)));
    }
    lines
}

fn send(command: TodoCommand) -> Reply {
    Reply::with(Effect::send(CommandBody::Todo(command)))
}

impl Todo {
    fn item<'a>(&self, model: &'a Model) -> Option<&'a TodoItem> {
        model.agent.todo.get(self.rows.chosen)
    }

    fn status(&self, model: &Model, to: impl Fn(TodoStatus) -> TodoStatus) -> Reply {
        self.item(model).map_or_else(Reply::done, |i| {
            send(TodoCommand::Status { id: i.id.clone(), status: to(i.status) })
        })
    }

    fn shift(&mut self, model: &Model, down: bool) -> Reply {
        let at = self.rows.chosen;
        let to = if down { at + 1 } else { at.wrapping_sub(1) };
        match (model.agent.todo.get(at), model.agent.todo.get(to)) {
            (Some(item), Some(_)) => {
                self.rows.chosen = to;
                send(TodoCommand::Move { id: item.id.clone(), to })
            }
            _ => Reply::done(),
        }
    }

    /// Nothing is left to do: with the end of the turn the list leaves the screen. The key of the panel still shows it.
    fn is_over(&self, model: &Model) -> bool {
        let closed = |i: &TodoItem| matches!(i.status, TodoStatus::Completed | TodoStatus::Cancelled);
        !self.fresh.contains(&model.shown_agent()) && model.agent.todo.iter().all(closed)
    }

    fn finish(&mut self) -> Reply {
        let Some((id, edit)) = self.edit.take() else { return Reply::Ignored };
        let content = edit.text().trim().to_owned();
        match id {
            _ if content.is_empty() => Reply::done(),
            Some(id) => send(TodoCommand::Edit { id, content }),
            None => send(TodoCommand::Add { content }),
        }
    }

    fn field(area: Rect) -> Rect {
        let y = area.bottom().saturating_sub(1).max(area.y);
        Rect { x: area.x + 2, y, width: area.width.saturating_sub(2), height: area.height.min(1) }
    }
}

impl Panel for Todo {
    fn status(&self, model: &Model) -> PanelStatus {
        PanelStatus::new(self.scope())
            .escape(self.escape_step())
            .empty(self.is_over(model) && self.edit.is_none())
    }

    fn title(&self, model: &Model) -> String {
        let done = model.agent.todo.iter().filter(|i| i.status == TodoStatus::Completed).count();
        let of = model.agent.todo.iter().filter(|i| i.status != TodoStatus::Cancelled).count();
        if of == 0 {
            return "Todo".into();
        }
        let gauge = sign::gauge(done as u64, of as u64, GAUGE, draw::ascii());
        format!("Todo {gauge} {done}/{of}")
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, width: u16, model: &Model) -> Placement {
        Placement::Rows(LineList::height(all(model), width) + u16::from(self.edit.is_some()))
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        if let Some((_, edit)) = &mut self.edit {
            return match action.0 {
                "todo.send" => self.finish(),
                id if id.starts_with("edit.") => {
                    edit.act(id);
                    Reply::done()
                }
                _ => Reply::Ignored,
            };
        }
        match action.0 {
            "todo.add" => self.edit = Some((None, Edit::default())),
            "todo.edit" | "list.open" => {
                if let Some(i) = self.item(model) {
                    self.edit = Some((Some(i.id.clone()), Edit::with(&i.content.replace('\n', " "))));
                }
            }
            "list.mark" => {
                return self.status(model, |s| match s {
                    TodoStatus::Completed => TodoStatus::Pending,
                    _ => TodoStatus::Completed,
                });
            }
            "todo.start" => return self.status(model, |_| TodoStatus::InProgress),
            "todo.cancel" => {
                return self.status(model, |s| match s {
                    TodoStatus::Cancelled => TodoStatus::Pending,
                    _ => TodoStatus::Cancelled,
                });
            }
            "todo.agent" => {
                let Some(id) = self.item(model).and_then(|i| model.assignee(i)).cloned() else {
                    return Reply::with(Effect::Toast(Notice::new(
                        NoticeKind::Info,
                        "No other agent works on this item",
                    )));
                };
                let tell = Effect::Tell(View::Agents, Box::new(id));
                return Reply::Done(vec![Effect::Focus(View::Agents), tell]);
            }
            "todo.down" => return self.shift(model, true),
            "todo.up" => return self.shift(model, false),
            "list.copy" => {
                if let Some(i) = self.item(model) {
                    return Reply::with(Effect::Task(Task::Copy { text: i.content.clone(), what: "item" }));
                }
            }
            "list.back" => return Reply::with(Effect::Focus(View::Composer)),
            id if self.rows.act(id) => {}
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    fn input(&mut self, input: PanelInput<'_>, model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => self.on_key(key),
            PanelInput::Paste(text) => self.on_paste(text),
            PanelInput::Mouse(event, area) => self.on_mouse(event, area),
            PanelInput::Escape(escape_step) => self.on_escape(escape_step, model),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, model: &Model) -> Reply {
        match event {
            PanelEvent::Engine(event) => self.on_event(event, model),
            PanelEvent::Message(what) => self.on_message(what, model),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, model: &Model) -> Vec<Hint> {
        if self.edit.is_some() {
            return vec![Hint::as_("todo.send", "save")];
        }
        if let Some(hints) = self.rows.find_hints() {
            return hints;
        }
        if self.item(model).is_none() {
            return vec![Hint::of("todo.add")];
        }
        let mut all = vec![
            Hint::as_("list.mark", "tick"),
            Hint::of("todo.add"),
            Hint::of("todo.edit"),
            Hint::of("todo.start"),
            Hint::of("todo.cancel"),
            Hint::of("todo.down"),
            Hint::of("todo.up"),
        ];
        if self.item(model).is_some_and(|i| model.assignee(i).is_some()) {
            all.insert(1, Hint::of("todo.agent"));
        }
        all
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) -> Refresh {
        let taken = u16::from(self.edit.is_some());
        let area = Rect { height: area.height.saturating_sub(taken), ..area };
        let lines = all(cx.model);
        let fits = LineList::height(lines.clone(), area.width) <= area.height;
        let lines = if cx.focus || fits { lines } else { folded(cx.model, usize::from(area.height)) };
        self.rows.set(lines, area);
        Refresh::default()
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let taken = u16::from(self.edit.is_some());
        let list = Rect { height: area.height.saturating_sub(taken), ..area };
        if cx.model.agent.todo.is_empty() && self.edit.is_none() {
            explain(cx, list, &format!("The plan appears here; {} adds an item", cx.key("todo.add")), buf);
        }
        self.rows.draw(cx, list, buf);
        if let Some((_, edit)) = &self.edit {
            let field = Self::field(area);
            draw::put(buf, area.x, field.y, draw::sign(sign::CLOSED), cx.theme.style(Role::Accent));
            input::draw(edit, field, buf, cx.theme.style(Role::Text));
        }
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        match &self.edit {
            Some((_, edit)) => Some(input::caret(edit, Self::field(area))),
            None => self.rows.cursor(area),
        }
    }
}

impl Todo {
    fn scope(&self) -> &'static str {
        match (&self.edit, self.rows.typing()) {
            (Some(_), _) => "todo_text",
            (None, true) => "input",
            (None, false) => "todo",
        }
    }

    fn escape_step(&self) -> Option<EscapeStep> {
        if self.edit.is_some() { Some(EscapeStep::Popup) } else { self.rows.escape_step() }
    }

    fn on_key(&mut self, key: &KeyEvent) -> Reply {
        match (&mut self.edit, Chord::of(key).text()) {
            (Some((_, edit)), Some(c)) => {
                edit.insert(c.encode_utf8(&mut [0; 4]));
                Reply::done()
            }
            (None, _) if self.rows.key(key) => Reply::done(),
            _ => Reply::Ignored,
        }
    }

    fn on_paste(&mut self, text: &str) -> Reply {
        match &mut self.edit {
            Some((_, edit)) => {
                edit.insert(&text.replace(['\n', '\r'], " "));
                Reply::done()
            }
            None => Reply::Ignored,
        }
    }

    fn on_mouse(&mut self, event: &MouseEvent, area: Rect) -> Reply {
        self.rows.mouse(event, area);
        Reply::done()
    }

    fn on_escape(&mut self, escape_step: EscapeStep, model: &Model) -> Reply {
        if escape_step == EscapeStep::Search {
            self.rows.end_find();
            return Reply::done();
        }
        let Some((id, edit)) = self.edit.take() else { return Reply::done() };
        let same = |i: &TodoItem| Some(&i.id) == id.as_ref() && i.content.replace('\n', " ") == edit.text();
        let kept = (!model.agent.todo.iter().any(same))
            .then(|| crate::dialog::text_prompt::keep(edit.text()))
            .flatten();
        Reply::Done(kept.into_iter().collect())
    }

    fn on_event(&mut self, event: &Event, model: &Model) -> Reply {
        let changed = match event.body {
            EventBody::State(StateEvent::TodoChanged { .. }) => self.fresh.insert(event.agent.clone()),
            EventBody::Turn(TurnEvent::TurnFinished { .. }) => self.fresh.remove(&event.agent),
            _ => false,
        };
        if changed && event.agent == model.shown_agent() { Reply::done() } else { Reply::Ignored }
    }

    /// Selects the item of the agent that another panel names.
    fn on_message(&mut self, what: Box<dyn std::any::Any>, model: &Model) -> Reply {
        let Ok(id) = what.downcast::<AgentId>() else { return Reply::Ignored };
        if let Some(at) = model.agent.todo.iter().position(|i| model.assignee(i) == Some(&*id)) {
            self.rows.chosen = at;
        }
        Reply::done()
    }
}

#[cfg(test)]
#[path = "todo_tests.rs"]
pub(super) mod tests;
