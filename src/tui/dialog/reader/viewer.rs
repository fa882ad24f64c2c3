//! The full viewer: the conversation with everything unfolded, and the whole output of one call.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;
use tiller_protocol::ToolVerb;
use tiller_protocol::command::Query;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandBody, Event, EventBody, Notice, NoticeKind, Part};

use crate::app::effect::{Effect, External, Task, Token};
use crate::dialog::reader::picture::Picture;
use crate::input::escape::EscapeStep;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::{DefaultKey, Scope};
use crate::model::Model;
use crate::model::conversation::ToolCell;
use crate::panel::conversation::{ConversationPanel, private_file, search};
use crate::panel::{DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply};
use crate::registry::{Dialog, Opener};
use crate::text::line::{Line, Look, Wrap};
use crate::text::paint::{self, StyleRange};
use crate::text::wrap::{Row, wrap};
use crate::text::{clean, width};
use crate::theme::Role;
use crate::widget::edit::Edit;

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new(
        "viewer.open",
        "viewer",
        "Read and search the whole conversation, unfolded",
        |app| open(&app.model),
    )
    .menu(Menu::Go)
    .keys(&["leader o"])],
    groups: &[("Viewer", ACTIONS)],
    scopes: &[Scope::new("viewer", Some("list"), "Viewer", false).keys(KEYS)],
    ..Dialog::NONE
};

/// Actions of the viewers, besides those of a list.
pub const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("viewer.dump", "dump", "Write it to the terminal's scrollback"),
    ActionSpec::key_only("viewer.edit", "editor", "Open it in the editor"),
];

/// Default keys of the section `viewer`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("[", "conversation.turn_up"),
    ("]", "conversation.turn_down"),
    ("{", "conversation.tool_up"),
    ("}", "conversation.tool_down"),
    ("v", "conversation.copy_mode"),
    ("s", "viewer.dump"),
    ("e", "viewer.edit"),
];

/// The viewer of the conversation.
pub fn open(model: &Model) -> Result<Box<dyn Panel>, String> {
    if model.agent.conversation.cells().is_empty() {
        return Err("The conversation is empty".into());
    }
    Ok(Box::new(ConversationPanel::viewer()))
}

const FULL: Token = Token(1);

/// The whole output of one tool call. Only the visible lines are ever cut and cleaned, so its length
/// does not matter.
pub struct OutputViewer {
    call_id: String,
    title: String,
    text: String,
    /// Where each line begins.
    starts: Vec<usize>,
    /// It is all there.
    whole: bool,
    /// First visible line, and its first visible row.
    top: (usize, usize),
    columns: usize,
    rows: usize,
    edit: Option<Edit>,
    typing: bool,
    /// Line of the current hit.
    hit: Option<usize>,
    file: Option<std::path::PathBuf>,
}

impl OutputViewer {
    /// Shows what is known, and asks for the rest.
    pub fn new(tool: &ToolCell) -> Self {
        let mut o = Self {
            call_id: tool.call_id.clone(),
            title: format!(
                "Output of {}",
                clean::plain(if tool.verb == ToolVerb::Unnamed { &tool.name } else { tool.verb.word() })
            ),
            text: String::new(),
            starts: Vec::new(),
            whole: false,
            top: (0, 0),
            columns: 80,
            rows: 20,
            edit: None,
            typing: false,
            hit: None,
            file: None,
        };
        o.set(tool.output.text().to_owned());
        o
    }

    fn set(&mut self, text: String) {
        self.starts = std::iter::once(0).chain(text.match_indices('\n').map(|(n, _)| n + 1)).collect();
        if self.starts.len() > 1 && self.starts.last() == Some(&text.len()) {
            self.starts.pop();
        }
        self.text = text;
    }

    /// Line `n`, not cleaned.
    fn raw(&self, n: usize) -> &str {
        let from = self.starts.get(n).copied().unwrap_or(self.text.len());
        let to = self.starts.get(n + 1).map_or(self.text.len(), |s| s - 1);
        let line = self.text.get(from..to).unwrap_or_default();
        line.strip_suffix('\n').unwrap_or(line).trim_end_matches('\r')
    }

    fn rows_of(&self, n: usize) -> (Line, Vec<Row>) {
        let line = Line::strict(self.raw(n), Look::of(Role::Text), Wrap::Hard);
        let mut rows = Vec::new();
        wrap(&line, 0, self.columns, &mut rows);
        (line, rows)
    }

    fn scroll(&mut self, by: isize) {
        let (mut line, mut row) = self.top;
        let mut left = by.unsigned_abs();
        while left > 0 {
            if by > 0 {
                if row + 1 < self.rows_of(line).1.len() {
                    row += 1;
                } else if line + 1 < self.starts.len() {
                    (line, row) = (line + 1, 0);
                } else {
                    break;
                }
            } else if row > 0 {
                row -= 1;
            } else if line > 0 {
                line -= 1;
                row = self.rows_of(line).1.len() - 1;
            } else {
                break;
            }
            left -= 1;
        }
        self.top = (line, row);
        self.limit();
    }

    /// The last page is full, where there is enough.
    fn limit(&mut self) {
        let mut left = self.rows;
        for n in (0..self.starts.len()).rev().take(self.rows) {
            let rows = self.rows_of(n).1.len();
            if rows >= left {
                self.top = self.top.min((n, rows - left));
                return;
            }
            left -= rows;
        }
        self.top = (0, 0);
    }

    fn words(&self) -> &str {
        self.edit.as_ref().map_or("", Edit::text)
    }

    fn find(&mut self, forward: bool) -> Reply {
        let len = self.starts.len();
        let words = self.words().to_owned();
        if words.is_empty() || len == 0 {
            return Reply::done();
        }
        let from = self.hit.unwrap_or(self.top.0);
        let first = usize::from(self.hit.is_some());
        let order =
            (first..=len).map(|n| if forward { (from + n) % len } else { (from + 2 * len - n) % len });
        self.hit = order.into_iter().find(|n| search::matches(self.raw(*n), &words).next().is_some());
        if let Some(n) = self.hit {
            self.top = (n, 0);
            self.scroll(-((self.rows / 3) as isize));
        }
        Reply::done()
    }

    fn clean_text(&self) -> String {
        clean::plain_lines(&self.text)
    }
}

impl Panel for OutputViewer {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new(if self.typing { "input" } else { "viewer" })
            .escape(self.edit.is_some().then_some(EscapeStep::Search))
    }

    fn title(&self, _model: &Model) -> String {
        let state = if self.whole { "" } else { ", loading" };
        format!("{}: {} lines{state}", self.title, self.starts.len())
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, _columns: u16, _model: &Model) -> Placement {
        Placement::Full
    }

    fn act(&mut self, action: Action, _model: &Model) -> Reply {
        if self.typing {
            let done = self.edit.as_mut().is_some_and(|e| e.act(action.0));
            return if done { Reply::done() } else { Reply::Ignored };
        }
        let page = self.rows.saturating_sub(1).max(1) as isize;
        match action.0 {
            "list.down" => self.scroll(1),
            "list.up" => self.scroll(-1),
            "list.page_down" | "conversation.page_down" => self.scroll(page),
            "list.page_up" | "conversation.page_up" => self.scroll(-page),
            "list.first" | "conversation.first" => self.top = (0, 0),
            "list.last" | "conversation.last" => {
                self.top = (self.starts.len().saturating_sub(1), 0);
                self.limit();
            }
            "list.search" | "conversation.search" => {
                self.edit = Some(Edit::default());
                self.typing = true;
                self.hit = None;
            }
            "list.next" => return self.find(true),
            "list.previous" => return self.find(false),
            "list.copy" => {
                return Reply::with(Effect::Task(Task::Copy {
                    text: self.text.clone(),
                    what: "tool output",
                }));
            }
            "list.back" => return Reply::with(Effect::Pop),
            "viewer.dump" => {
                return Reply::with(Effect::Task(Task::Suspend(External::Dump { text: self.clean_text() })));
            }
            "viewer.edit" => {
                return match private_file("output", &self.text) {
                    Ok(file) => {
                        self.file = Some(file.clone());
                        let line = u32::try_from(self.top.0 + 1).ok();
                        Reply::with(Effect::Task(Task::Suspend(External::Editor { file, line })))
                    }
                    Err(e) => {
                        let text = format!("The output could not be written for the editor: {e}");
                        Reply::with(Effect::Toast(Notice::new(NoticeKind::User, text)))
                    }
                };
            }
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    fn input(&mut self, input: PanelInput<'_>, _model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => self.on_key(key),
            PanelInput::Mouse(event, _) => self.on_mouse(event),
            PanelInput::Escape(escape_step) => self.on_escape(escape_step),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, _model: &Model) -> Reply {
        match event {
            PanelEvent::Opened => Reply::Done(self.on_open()),
            PanelEvent::Answer(token, event) => self.on_answer(token, event),
            PanelEvent::Edited(result) => self.on_edited(result),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        if self.typing {
            return vec![Hint::as_("input.done", "find")];
        }
        ["list.search", "list.next", "list.copy", "viewer.dump", "viewer.edit"]
            .into_iter()
            .map(Hint::of)
            .collect()
    }

    fn measure(&mut self, area: Rect, _cx: &DrawCx<'_>) -> Refresh {
        self.columns = usize::from(area.width).max(1);
        self.rows = usize::from(area.height).saturating_sub(usize::from(self.edit.is_some()));
        Refresh::default()
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let mut y = 0;
        let (first, skip) = self.top;
        for n in first..self.starts.len() {
            let (line, rows) = self.rows_of(n);
            let look = if self.hit == Some(n) { Modifier::REVERSED } else { Modifier::UNDERLINED };
            let style = cx.theme.style(Role::Match).add_modifier(look);
            let over: Vec<StyleRange> = search::over(&line, self.words(), style);
            for row in rows.iter().skip(if n == first { skip } else { 0 }) {
                if y >= self.rows {
                    break;
                }
                let place = paint::PaintTarget { x: area.x, y: area.y + y as u16, columns: area.width };
                paint::row(buf, place, &line, *row, cx.theme, &over);
                y += 1;
            }
            if y >= self.rows {
                break;
            }
        }
        if self.edit.is_some() && area.height > 0 {
            let line = Rect { y: area.bottom() - 1, height: 1, ..area };
            crate::widget::draw::clear(buf, line, cx.theme.style(Role::Raised));
            let found = if self.typing || self.hit.is_some() { "" } else { "  no matches" };
            let text = format!("/{}{found}", clean::plain(self.words()));
            let place = paint::PaintTarget { x: area.x, y: line.y, columns: area.width };
            paint::text(buf, place, &text, cx.theme.style(Role::Raised));
        }
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        let edit = self.edit.as_ref().filter(|_| self.typing)?;
        let x = 1 + width(edit.text().get(..edit.caret())?);
        Some(Position::new(
            area.x + (x as u16).min(area.width.saturating_sub(1)),
            area.bottom().saturating_sub(1),
        ))
    }
}

impl OutputViewer {
    fn on_key(&mut self, key: &KeyEvent) -> Reply {
        let Some(edit) = self.edit.as_mut().filter(|_| self.typing) else { return Reply::Ignored };
        match key.code {
            KeyCode::Char(c) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
                edit.insert(c.encode_utf8(&mut [0; 4]));
                Reply::done()
            }
            KeyCode::Enter => {
                self.typing = false;
                self.find(true)
            }
            _ => Reply::Ignored,
        }
    }

    fn on_mouse(&mut self, event: &MouseEvent) -> Reply {
        match event.kind {
            MouseEventKind::ScrollUp => self.scroll(-3),
            MouseEventKind::ScrollDown => self.scroll(3),
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    fn on_escape(&mut self, escape_step: EscapeStep) -> Reply {
        if escape_step == EscapeStep::Layer {
            return Reply::with(Effect::Pop);
        }
        self.edit = None;
        self.typing = false;
        self.hit = None;
        Reply::done()
    }

    fn on_open(&mut self) -> Vec<Effect> {
        let query = Query::ToolOutput { call_id: self.call_id.clone() };
        vec![Effect::ask(CommandBody::Query(query), FULL)]
    }

    fn on_answer(&mut self, token: Token, event: &Event) -> Reply {
        if token != FULL {
            return Reply::Ignored;
        }
        self.whole = true;
        if let EventBody::Reply(r) = &event.body
            && let ReplyEvent::ToolOutputReply { text, images, .. } = r.as_ref()
        {
            let image = images.iter().find_map(|part| match part {
                Part::Image { data, .. } => Some(data.as_str()),
                Part::Text { .. } => None,
            });
            if let Some(data) = image {
                // Its text is only what the picture is.
                let title = text.lines().next().unwrap_or_default();
                let picture = Picture::new(&clean::plain(title), data);
                return Reply::Done(vec![Effect::Pop, Effect::Push(Box::new(picture))]);
            }
            self.set(text.clone());
            self.limit();
        }
        Reply::done()
    }

    fn on_edited(&mut self, result: Result<(), String>) -> Reply {
        if let Some(file) = self.file.take() {
            let _ = std::fs::remove_file(file);
        }
        match result {
            Ok(()) => Reply::done(),
            Err(why) => Reply::with(Effect::Toast(Notice::new(NoticeKind::User, why))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Robot;

    fn output(lines: usize) -> OutputViewer {
        let mut o = OutputViewer::new(&ToolCell {
            call_id: "c".into(),
            name: "terminal".into(),
            ..ToolCell::default()
        });
        o.set((0..lines).map(|n| format!("line {n} {}\n", if n == 777 { "needle" } else { "" })).collect());
        o
    }

    #[test]
    fn it_scrolls_and_finds_in_long_output() {
        let mut r = Robot::new(60, 12);
        r.push(Box::new(output(5000)));
        assert!(r.screen().contains("line 0"));
        r.run("G");
        assert!(r.screen().contains("line 4999"), "{}", r.screen());
        r.run("g; /; type needle; enter");
        assert!(r.screen().contains("line 777 needle"), "{}", r.screen());
        r.run("esc; esc");
        assert!(!r.screen().contains("line 777"));
    }
}
