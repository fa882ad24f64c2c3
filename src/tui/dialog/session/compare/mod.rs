//! Compares two branches (or any two entries): the conversation, the files that differ, and the output of a command on
//! each. Files and hunks of the right side can be taken into the workspace. Two columns where there is room for them.

mod actions;
mod draw;
mod head;
pub(crate) mod pick;
mod sample;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::command::{CompareCommand, Query, SessionCommand};
use tiller_protocol::compare::{Comparison, Pair, SideRun, TakeConflict, TakePart};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandBody, Event, EventBody, Notice, NoticeKind};

pub(crate) use self::actions::ACTIONS;
use self::actions::KEYS;
pub(crate) use self::sample::sample;
use crate::app::effect::{Effect, Token};
use crate::input::escape::EscapeStep;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::panel::{DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply};
use crate::registry::{Dialog, Opener};
use crate::text::diff::{Hunk, Patch};
use crate::widget::diff::DiffScroll;
use crate::widget::edit::Edit;
use crate::widget::line_list::LineList;
use crate::widget::scroll::Scroll;

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new(
        "compare.open",
        "compare",
        "Compare this branch with another, side by side",
        |_| Ok(Box::new(pick::open())),
    )
    .menu(Menu::Session)],
    groups: &[("Compare", ACTIONS)],
    scopes: &[Scope::new("compare", Some("list"), "Compare", false).keys(KEYS)],
    samples: &[("compare", || Box::new(sample()))],
    ..Dialog::NONE
};

const LOOK: Token = Token(1);
const TAKE: Token = Token(2);
const RUN: Token = Token(3);
const UNDO: Token = Token(4);

/// The part that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompareTab {
    Files,
    Talk,
    Run,
}

/// The run of a command on both sides.
#[derive(Debug)]
enum CommandRun {
    Not,
    Running(String),
    Done { line: String, left: SideRun, right: SideRun, notes: Vec<String> },
}

/// The dialog.
pub struct Compare {
    pair: Pair,
    compared: Option<Comparison>,
    failed: Option<String>,
    view: CompareTab,
    /// The side that is scrolled, and shown where there is room for one only.
    right: bool,
    files: LineList,
    hunks: Vec<Hunk>,
    hunk: usize,
    /// The difference of the chosen file, left and right of the others.
    diff: DiffScroll,
    sides: [Scroll; 2],
    ran: CommandRun,
    conflicts: Vec<TakeConflict>,
    typing: Option<Edit>,
    /// Content has changed since it was laid out.
    stale: bool,
    width: u16,
}

impl Compare {
    /// Makes the dialog; it queries the engine when it opens.
    pub(crate) fn of(pair: Pair) -> Self {
        Self {
            pair,
            compared: None,
            failed: None,
            view: CompareTab::Files,
            right: false,
            files: LineList::default(),
            hunks: Vec::new(),
            hunk: 0,
            diff: DiffScroll::default(),
            sides: Default::default(),
            ran: CommandRun::Not,
            conflicts: Vec::new(),
            typing: None,
            stale: true,
            width: 0,
        }
    }

    fn look(&self) -> Effect {
        Effect::ask(CommandBody::Query(Query::Compare { pair: self.pair.clone() }), LOOK)
    }

    fn file(&self) -> Option<&tiller_protocol::RestoreFile> {
        self.compared.as_ref()?.files.get(self.files.chosen)
    }

    fn choose_file(&mut self) {
        self.hunks = self.file().map(|f| Patch::read(&f.diff).hunks).unwrap_or_default();
        self.hunk = 0;
        self.stale = true;
    }

    fn step_hunk(&mut self, down: bool) {
        self.hunk = if down { self.hunk + 1 } else { self.hunk.saturating_sub(1) };
        self.hunk = self.hunk.min(self.hunks.len().saturating_sub(1));
        self.stale = true;
    }

    fn take(&mut self, whole: bool, model: &Model) -> Reply {
        let Some(file) = self.file().filter(|_| self.view == CompareTab::Files) else {
            return Reply::Ignored;
        };
        let no = if model.agent.turn.running {
            Some("A turn is running; stop it first")
        } else if model.agent.session.read_only {
            Some("This session is open read-only")
        } else {
            None
        };
        if let Some(why) = no {
            return Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, why)));
        }
        let hunk = self.hunks.get(self.hunk).filter(|_| !whole);
        let part =
            TakePart { path: file.path.clone(), hunk: hunk.map(|h| h.to_patch(&file.path, file.kind)) };
        let take = CompareCommand::Take { pair: self.pair.clone(), parts: vec![part] };
        Reply::with(Effect::ask(CommandBody::Compare(take), TAKE))
    }

    fn run(&mut self, line: String) -> Reply {
        if line.trim().is_empty() {
            return Reply::done();
        }
        self.view = CompareTab::Run;
        self.ran = CommandRun::Running(line.clone());
        let run = CompareCommand::Run { pair: self.pair.clone(), line };
        Reply::with(Effect::ask(CommandBody::Compare(run), RUN))
    }

    fn answered(&mut self, token: Token, reply: &ReplyEvent) -> Reply {
        self.stale = true;
        match (token, reply) {
            (LOOK, ReplyEvent::CompareReply { compared, .. }) => {
                self.files.chosen = self.files.chosen.min(compared.files.len().saturating_sub(1));
                self.compared = Some((**compared).clone());
                self.failed = None;
                self.choose_file();
            }
            (TAKE, ReplyEvent::TakeReply { said, conflicts }) => {
                self.conflicts.clone_from(conflicts);
                return Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, said.clone())));
            }
            (RUN, ReplyEvent::CompareRunReply { line, left, right, notes }) => {
                let (left, right, notes) = (left.clone(), right.clone(), notes.clone());
                self.ran = CommandRun::Done { line: line.clone(), left, right, notes };
            }
            (UNDO, ReplyEvent::DoneReply { said }) => {
                self.conflicts.clear();
                return Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, said.clone())));
            }
            (LOOK, ReplyEvent::ErrorReply { notice }) => self.failed = Some(notice.message.clone()),
            (_, ReplyEvent::ErrorReply { .. }) => {
                // Its words are shown as those of every error.
                if matches!(self.ran, CommandRun::Running(_)) && token == RUN {
                    self.ran = CommandRun::Not;
                }
            }
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    /// Stops the command on both sides.
    fn stop() -> Effect {
        let id = "compare".to_owned();
        Effect::send(CommandBody::Turn(tiller_protocol::command::TurnCommand::StopTool { id }))
    }
}

impl Panel for Compare {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new(if self.typing.is_some() { "input" } else { "compare" })
            .escape(self.typing.is_some().then_some(EscapeStep::Popup))
    }

    fn title(&self, _model: &Model) -> String {
        "Compare".into()
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, _columns: u16, _model: &Model) -> Placement {
        Placement::Full
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        if let Some(edit) = &mut self.typing {
            return if edit.act(action.0) { Reply::done() } else { Reply::Ignored };
        }
        self.stale = true;
        match action.0 {
            "list.back" => return self.on_escape(EscapeStep::Layer),
            "compare.next" | "list.open" => {
                self.view = match self.view {
                    CompareTab::Files => CompareTab::Talk,
                    CompareTab::Talk => CompareTab::Run,
                    CompareTab::Run => CompareTab::Files,
                };
            }
            "compare.other" => self.right = !self.right,
            "compare.take" => return self.take(false, model),
            "compare.take_file" => return self.take(true, model),
            "compare.undo" => {
                let undo = SessionCommand::UndoOp { redo: false };
                return Reply::with(Effect::ask(CommandBody::Session(undo), UNDO));
            }
            "compare.hunk_down" | "list.next" if self.view == CompareTab::Files => self.step_hunk(true),
            "compare.hunk_up" | "list.previous" if self.view == CompareTab::Files => self.step_hunk(false),
            "compare.run" if !matches!(self.ran, CommandRun::Running(_)) => {
                let line = if let CommandRun::Done { line, .. } = &self.ran { line.as_str() } else { "" };
                self.typing = Some(Edit::with(line));
            }
            "compare.swap" => {
                std::mem::swap(&mut self.pair.left, &mut self.pair.right);
                (self.compared, self.ran) = (None, CommandRun::Not);
                self.conflicts.clear();
                return Reply::with(self.look());
            }
            "compare.load" => return Reply::with(self.look()),
            id if self.view == CompareTab::Files && matches!(id, "list.page_down" | "list.page_up") => {
                self.stale = false;
                self.diff.scroll.act(id);
            }
            id if self.view == CompareTab::Files => {
                let was = self.files.chosen;
                if !self.files.act(id) {
                    return Reply::Ignored;
                }
                if was != self.files.chosen {
                    self.choose_file();
                }
            }
            id => {
                self.stale = false;
                if !self.sides[usize::from(self.right)].act(id) {
                    return Reply::Ignored;
                }
            }
        }
        Reply::done()
    }

    fn input(&mut self, input: PanelInput<'_>, _model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => self.on_key(key),
            PanelInput::Paste(text) => self.on_paste(text),
            PanelInput::Mouse(event, area) => self.on_mouse(event, area),
            PanelInput::Escape(escape_step) => self.on_escape(escape_step),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, _model: &Model) -> Reply {
        match event {
            PanelEvent::Opened => Reply::Done(vec![self.look()]),
            PanelEvent::Answer(token, event) => self.on_answer(token, event),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        if self.typing.is_some() {
            return vec![Hint::as_("input.done", "run on both")];
        }
        let mut hints = Vec::new();
        if self.view == CompareTab::Files && self.file().is_some() {
            hints.push(Hint::of("compare.take_file"));
            if !self.hunks.is_empty() {
                hints.push(Hint::of("compare.take"));
            }
            hints.push(Hint::of("compare.undo"));
        }
        hints.extend(["compare.next", "compare.run"].map(Hint::of));
        if self.view != CompareTab::Files {
            hints.push(Hint::of("compare.other"));
        }
        hints.push(Hint::of("compare.swap"));
        hints
    }

    fn measure(&mut self, area: Rect, _cx: &DrawCx<'_>) -> Refresh {
        self.lay(area);
        Refresh::after(self.diff.colours.wake())
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        self.paint(cx, area, buf);
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        self.cursor_at(area)
    }
}

impl Compare {
    fn on_key(&mut self, key: &KeyEvent) -> Reply {
        let Some(edit) = &mut self.typing else { return Reply::Ignored };
        match key.code {
            KeyCode::Char(c) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
                edit.insert(c.encode_utf8(&mut [0; 4]));
            }
            KeyCode::Enter => {
                let line = edit.take();
                self.typing = None;
                self.stale = true;
                return self.run(line);
            }
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    fn on_paste(&mut self, text: &str) -> Reply {
        let Some(edit) = &mut self.typing else { return Reply::Ignored };
        edit.insert(&text.replace('\n', " "));
        Reply::done()
    }

    fn on_mouse(&mut self, event: &MouseEvent, area: Rect) -> Reply {
        let at = Position::new(event.column, event.row);
        let parts = self.parts(area);
        if self.view == CompareTab::Files && parts.left.contains(at) {
            let was = self.files.chosen;
            self.files.mouse(event, parts.left);
            if was != self.files.chosen {
                self.choose_file();
            }
            return Reply::done();
        }
        let taken = match self.view {
            CompareTab::Files => self.diff.scroll.mouse(event),
            _ => {
                let right = if parts.wide { parts.right.contains(at) } else { self.right };
                self.sides[usize::from(right)].mouse(event)
            }
        };
        if taken { Reply::done() } else { Reply::Ignored }
    }

    fn on_escape(&mut self, escape_step: EscapeStep) -> Reply {
        self.stale = true;
        match escape_step {
            EscapeStep::Popup => {
                let kept = self.typing.take().and_then(|edit| crate::dialog::text_prompt::keep(edit.text()));
                return Reply::Done(kept.into_iter().collect());
            }
            EscapeStep::Layer if matches!(self.ran, CommandRun::Running(_)) => {
                return Reply::Done(vec![Self::stop(), Effect::Pop]);
            }
            EscapeStep::Layer => return Reply::with(Effect::Pop),
            _ => {}
        }
        Reply::done()
    }

    fn on_answer(&mut self, token: Token, event: &Event) -> Reply {
        match &event.body {
            EventBody::Reply(reply) => self.answered(token, reply),
            _ => Reply::Ignored,
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
