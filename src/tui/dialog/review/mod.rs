//! Review of what a turn changed. The files already hold the changes: accepting is doing nothing.
//! Rejecting applies the reverse of a hunk, never by force; comments go to the agent as one message.

mod actions;
mod draw;
mod state;
mod talk;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::event::TurnEvent;
use tiller_protocol::{Event, EventBody, Notice, NoticeKind};

pub(crate) use self::actions::ACTIONS;
use self::actions::KEYS;
use crate::app::effect::{Effect, Token};
use crate::input::escape::EscapeStep;
use crate::keymap::action::{Action, ActionSpec, Menu};
use crate::keymap::scope::Scope;
use crate::model::remarks::CommentAnchor;
use crate::model::{Model, Slice};
use crate::panel::{
    DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Refresh, Reply, View,
};
use crate::registry::{Dialog, Opener, PanelEntry};
use crate::text::sheet::Sheet;
use crate::widget::diff::{self, DiffColours};
use crate::widget::draw as cells;
use crate::widget::edit::Edit;
use state::ReviewState;

/// Registers the view of changes.
pub(crate) const PANEL: PanelEntry = PanelEntry {
    view: View::Diff,
    make: |_| Box::new(Review::view()),
    reads: &[Slice::Session, Slice::Crew],
    groups: &[],
    scopes: &[],
};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    openers: &[Opener::new(
        "review.open",
        "review",
        "Review what the last turn changed: accept, reject, comment",
        |_| Ok(Box::new(Review::dialog())),
    )
    .menu(Menu::Go)
    .keys(&["leader d"])],
    groups: &[("Diff review", ACTIONS)],
    scopes: &[Scope::new("diff", Some("list"), "Diff review", false).keys(KEYS)],
    samples: &[("review", || Box::new(sample()))],
    ..Dialog::NONE
};

const OPEN: Token = Token(1);
const REJECT: Token = Token(2);
const UNDO: Token = Token(3);

/// The state of loading.
#[derive(Debug, PartialEq, Eq)]
enum Phase {
    /// Not asked for yet, or a turn has ended since.
    Stale,
    Loading,
    Ready,
    /// Why there is nothing.
    None(String),
}

/// A comment that is being written.
struct CommentField {
    edit: Edit,
    /// The line that it is about, whichever line is selected meanwhile.
    spot: CommentAnchor,
}

/// The panel of view 6, and the dialog.
pub struct Review {
    phase: Phase,
    state: ReviewState,
    layer: bool,
    typing: Option<CommentField>,
    /// Revision of the comments that this review has read.
    revision: u64,
    /// Paths of the hunks that were sent back and not answered yet.
    pending: Vec<String>,
    /// The current file laid out: each line with its hunk and the line of it.
    sheet: Sheet,
    spots: Vec<draw::LineTarget>,
    colours: DiffColours,
    top: usize,
    rows: usize,
    stamp: u64,
    changes: u64,
    /// It has the focus.
    here: bool,
    /// Old and new stand side by side; `None`: there is no room for both.
    beside: Option<bool>,
}

impl Review {
    fn made(layer: bool) -> Self {
        Self {
            phase: Phase::Stale,
            state: ReviewState::default(),
            layer,
            typing: None,
            revision: 0,
            pending: Vec::new(),
            sheet: Sheet::default(),
            spots: Vec::new(),
            colours: DiffColours::default(),
            top: 0,
            rows: 10,
            stamp: 0,
            changes: 1,
            here: false,
            beside: None,
        }
    }

    /// The panel of view 6: it queries the engine when it is first used.
    pub fn view() -> Self {
        Self::made(false)
    }

    /// The dialog: it queries the engine at once.
    pub fn dialog() -> Self {
        Self::made(true)
    }
}

impl Panel for Review {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new(if self.typing.is_some() { "input" } else { "diff" })
            .escape(self.escape_step())
            .empty(self.phase != Phase::Ready)
    }

    fn title(&self, _model: &Model) -> String {
        if self.phase != Phase::Ready {
            return "Review".into();
        }
        let added: u32 = self.state.files.iter().map(|f| f.diff.added).sum();
        let removed: u32 = self.state.files.iter().map(|f| f.diff.removed).sum();
        let (n, all) = self.state.count();
        let files = self.state.files.len();
        let s = if files == 1 { "" } else { "s" };
        format!(
            "Review  {files} file{s}  +{added} {}{removed}  hunk {n} of {all}",
            diff::minus(cells::ascii())
        )
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, _columns: u16, _model: &Model) -> Placement {
        Placement::Full
    }

    fn act(&mut self, action: Action, model: &Model) -> Reply {
        self.changes += 1;
        self.read_remarks(model);
        let reply = self.do_action(action, model);
        self.keep_remarks(model);
        reply
    }

    fn input(&mut self, input: PanelInput<'_>, model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => self.on_key(key, model),
            PanelInput::Paste(text) => self.on_paste(text, model),
            PanelInput::Mouse(event, area) => self.on_mouse(event, area),
            PanelInput::Escape(escape_step) => self.on_escape(escape_step, model),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, model: &Model) -> Reply {
        match event {
            PanelEvent::Opened => Reply::Done(if self.layer { vec![self.load(None)] } else { Vec::new() }),
            PanelEvent::Focused => Reply::Done(self.on_focus()),
            PanelEvent::Engine(event) => self.on_event(event),
            PanelEvent::Answer(token, event) => self.on_answer(token, event, model),
            PanelEvent::Edited(result) => self.on_edited(result),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        if self.typing.is_some() {
            return vec![Hint::as_("input.done", "keep")];
        }
        if self.phase != Phase::Ready {
            // Everything was taken back: that can be undone, and remarks wait to be sent.
            let mut hints = Vec::new();
            if self.state.rejected > 0 {
                hints.push(Hint::of("review.undo"));
            }
            if !self.state.remarks.done.is_empty() {
                hints.push(Hint::of("review.send"));
            }
            hints.push(Hint::of("review.load"));
            return hints;
        }
        let reject = if self.state.mark.is_some() { "reject lines" } else { "reject" };
        let mut hints = vec![Hint::of("review.accept"), Hint::as_("review.reject", reject)];
        // A file without lines is accepted or reverted as a whole.
        let lines = self.state.hunk().is_some();
        if lines {
            hints.push(Hint::of("review.comment"));
        }
        if !self.state.remarks.done.is_empty() {
            hints.push(Hint::of("review.send"));
        }
        if self.state.rejected > 0 {
            hints.push(Hint::of("review.undo"));
        }
        if lines {
            hints.extend(["review.reject_file", "review.lines"].map(Hint::of));
        }
        hints.push(Hint::of("review.edit"));
        if lines {
            hints.extend(["review.blanks", "review.side"].map(Hint::of));
        }
        hints
    }

    fn measure(&mut self, area: Rect, cx: &DrawCx<'_>) -> Refresh {
        self.here = cx.focus;
        self.read_remarks(cx.model);
        let stamp =
            self.changes.wrapping_mul(1 << 20) + u64::from(area.width) * 1000 + u64::from(area.height);
        let again = self.colours.again();
        if stamp != self.stamp || again {
            if !again {
                self.colours.begin();
            }
            self.stamp = stamp;
            self.lay(area);
        }
        Refresh::after(self.colours.wake())
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        self.paint(cx, area, buf);
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        self.cursor_at(area)
    }
}

impl Review {
    fn escape_step(&self) -> Option<EscapeStep> {
        if self.typing.is_some() {
            Some(EscapeStep::Popup)
        } else {
            self.state.mark.map(|_| EscapeStep::Selection)
        }
    }

    fn on_key(&mut self, key: &KeyEvent, model: &Model) -> Reply {
        let Some(field) = &mut self.typing else { return Reply::Ignored };
        self.changes += 1;
        match key.code {
            KeyCode::Char(c) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
                field.edit.insert(c.encode_utf8(&mut [0; 4]));
            }
            KeyCode::Enter => {
                if let Some(mut field) = self.typing.take() {
                    self.state.remarks.finish(&field.spot, field.edit.take());
                }
            }
            _ => return Reply::Ignored,
        }
        self.keep_remarks(model);
        Reply::done()
    }

    fn on_paste(&mut self, text: &str, model: &Model) -> Reply {
        let Some(field) = &mut self.typing else { return Reply::Ignored };
        field.edit.insert(&text.replace('\n', " "));
        self.keep_remarks(model);
        Reply::done()
    }

    fn on_mouse(&mut self, event: &MouseEvent, area: Rect) -> Reply {
        self.changes += 1;
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) if self.typing.is_none() => {
                self.click(area, Position::new(event.column, event.row));
            }
            MouseEventKind::ScrollUp => (0..3).for_each(|_| self.state.step_line(false)),
            MouseEventKind::ScrollDown => (0..3).for_each(|_| self.state.step_line(true)),
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    fn on_escape(&mut self, escape_step: EscapeStep, model: &Model) -> Reply {
        self.changes += 1;
        match escape_step {
            // An unfinished comment is kept: it returns when the line is commented on again.
            EscapeStep::Popup => {
                self.keep_remarks(model);
                self.typing = None;
            }
            EscapeStep::Selection => self.state.mark = None,
            EscapeStep::Layer => return Reply::with(Effect::Pop),
            _ => {}
        }
        Reply::done()
    }

    fn on_focus(&mut self) -> Vec<Effect> {
        if self.phase == Phase::Stale { vec![self.load(None)] } else { Vec::new() }
    }

    fn on_event(&mut self, event: &Event) -> Reply {
        let over = matches!(&event.body, EventBody::Turn(TurnEvent::TurnFinished { .. }));
        // A view that the person has used keeps its content; an unused view is loaded again.
        if over && !self.layer && self.typing.is_none() && !self.state.remarked() {
            self.changes += 1;
            self.phase = Phase::Stale;
            if self.here {
                return Reply::with(self.load(None));
            }
        }
        Reply::Ignored
    }

    fn on_answer(&mut self, token: Token, event: &Event, model: &Model) -> Reply {
        self.changes += 1;
        self.read_remarks(model);
        match &event.body {
            EventBody::Reply(r) => self.answered(token, r),
            _ => Reply::Ignored,
        }
    }

    fn on_edited(&mut self, result: Result<(), String>) -> Reply {
        match result {
            Ok(()) => Reply::with(self.load(self.state.turn)),
            Err(why) => Reply::with(Effect::Toast(Notice::new(NoticeKind::User, why))),
        }
    }
}

/// The dialog with plausible content, for the tests that visit all dialogs.
pub fn sample() -> Review {
    use tiller_protocol::tool::FileDiff;
    let mut r = Review::dialog();
    let diff = "--- a/src/client.rs\n+++ b/src/client.rs\n@@ -41,2 +41,2 @@ fn retry()\n     let wait = header.map(parse);\n-    sleep(wait)\n+    sleep(wait.min(limit))\n";
    r.state.load(tiller_protocol::review::Review {
        turn: "0190a000-0000-7000-8000-000000000001"
            .parse()
            .unwrap_or(tiller_protocol::EntryId(Default::default())),
        title: "Make the retry logic honour Retry-After".into(),
        taken_back: Vec::new(),
        files: vec![FileDiff {
            path: "src/client.rs".into(),
            kind: tiller_protocol::ChangeKind::Modified,
            added: 1,
            removed: 1,
            diff: diff.into(),
        }],
    });
    r.phase = Phase::Ready;
    r
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
