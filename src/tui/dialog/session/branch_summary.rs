//! Asks, after a branch was left, whether a summary of it is added where the conversation continues. The dialog lies in
//! place of the composer for a moment. "No" has the focus, and typing means no: the keys go to the composer.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_config::schema::BranchSummary;
use tiller_protocol::command::SessionCommand;
use tiller_protocol::event::{StateEvent, TurnEvent};
use tiller_protocol::{BranchName, CommandBody, EntryId, Event, EventBody, Notice, NoticeKind};

use crate::app::App;
use crate::app::effect::{ComposerInput, Effect};
use crate::dialog::text_prompt;
use crate::input::escape::EscapeStep;
use crate::keymap::action::{Action, ActionSpec};
use crate::keymap::scope::{DefaultKey, Scope};
use crate::model::Model;
use crate::panel::{
    Availability, DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Reply, View,
};
use crate::registry::Dialog;
use crate::text::{clean, shorten_end, width};
use crate::theme::Role;
use crate::widget::edit::Edit;
use crate::widget::{draw, input};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    groups: &[("Branch summary", ACTIONS)],
    scopes: &[Scope::new("leave", None, "Branch summary", false).keys(KEYS)],
    samples: &[("leave", || Box::new(sample()))],
    ..Dialog::NONE
};

/// Its actions.
pub(crate) const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("leave.press", "choose", "Choose the focused answer; the default is no"),
    ActionSpec::key_only("leave.next", "next answer", "Next answer"),
    ActionSpec::key_only("leave.previous", "previous answer", "Previous answer"),
];

/// Default keys of the section `leave`.
pub(crate) const KEYS: &[DefaultKey] = &[
    ("enter", "leave.press"),
    ("tab", "leave.next"),
    ("right", "leave.next"),
    ("shift-tab", "leave.previous"),
    ("left", "leave.previous"),
];

const ANSWERS: [&str; 3] = ["no summary", "summary", "with instructions"];
const LABEL: &str = "what to keep: ";

/// The dialog.
pub(crate) struct BranchSummaryPrompt {
    from: EntryId,
    words: String,
    focus: usize,
    writing: Option<Edit>,
}

impl BranchSummaryPrompt {
    fn of(from: EntryId, name: &BranchName, entries: u64) -> Self {
        let what = if entries == 1 { "1 entry".into() } else { format!("{entries} entries") };
        let words = format!(
            "You left {}, which has {what} that this branch does not have.",
            clean::plain(name.word())
        );
        Self { from, words, focus: 0, writing: None }
    }

    fn done(&self, focus: Option<String>) -> Reply {
        Reply::Done(vec![Effect::Pop, carry(self.from, focus), Effect::Focus(View::Composer)])
    }

    /// Keeps the text of the field in the composer's history.
    fn kept(&mut self) -> Option<Effect> {
        self.writing.take().and_then(|edit| text_prompt::keep(edit.text()))
    }

    fn field(area: Rect) -> Rect {
        let used = (width(LABEL) as u16).min(area.width);
        let y = area.y + 1.min(area.height);
        Rect { x: area.x + used, y, width: area.width - used, height: u16::from(area.height > 1) }
    }
}

fn carry(from: EntryId, focus: Option<String>) -> Effect {
    Effect::send(CommandBody::Session(SessionCommand::CarryOver { from, focus }))
}

impl App {
    /// Opens the dialog, or does what the setting says.
    pub(crate) fn branch_left(&mut self, from: EntryId, name: &BranchName, entries: u64) {
        match self.model.ui.branch_summary {
            BranchSummary::Never => {}
            BranchSummary::Always => self.effects(self.top(), vec![carry(from, None)]),
            BranchSummary::Ask if self.layers.is_empty() && !self.model.agent.turn.running => {
                self.push(Box::new(BranchSummaryPrompt::of(from, name, entries)));
            }
            // Another question is being answered: it stays on top.
            BranchSummary::Ask => {
                let said = "To add a summary of the branch that you left: /branch";
                self.effects(self.top(), vec![Effect::Toast(Notice::new(NoticeKind::Info, said))]);
            }
        }
    }
}

impl Panel for BranchSummaryPrompt {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new(if self.writing.is_some() { "input" } else { "leave" })
            .escape(self.writing.is_some().then_some(EscapeStep::Popup))
    }

    fn title(&self, _model: &Model) -> String {
        "Summarize the branch that you left?".into()
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, _columns: u16, _model: &Model) -> Placement {
        Placement::Dock { height: 4 }
    }

    fn act(&mut self, action: Action, _model: &Model) -> Reply {
        if let Some(edit) = &mut self.writing {
            return if edit.act(action.0) { Reply::done() } else { Reply::Ignored };
        }
        match action.0 {
            "leave.next" => self.focus = (self.focus + 1) % ANSWERS.len(),
            "leave.previous" => self.focus = (self.focus + ANSWERS.len() - 1) % ANSWERS.len(),
            "leave.press" => match self.focus {
                0 => return Reply::Done(vec![Effect::Pop, Effect::Focus(View::Composer)]),
                1 => return self.done(None),
                _ => self.writing = Some(Edit::default()),
            },
            _ => return Reply::Ignored,
        }
        Reply::done()
    }

    fn input(&mut self, input: PanelInput<'_>, _model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => self.on_key(key),
            PanelInput::Paste(text) => self.on_paste(text),
            PanelInput::Escape(escape_step) => self.on_escape(escape_step),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, _model: &Model) -> Reply {
        match event {
            PanelEvent::Engine(event) => self.on_event(event),
            _ => Reply::Ignored,
        }
    }

    fn availability(&self, action: Action, _model: &Model) -> Availability {
        // A summary costs money.
        let decides = action.0 == "leave.press" && self.writing.is_none() && self.focus > 0;
        if decides { Availability::Decides } else { Availability::Available }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        if self.writing.is_some() {
            return vec![Hint::as_("input.done", "add summary")];
        }
        vec![Hint::as_("leave.press", ANSWERS[self.focus]), Hint::of("leave.next")]
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let row = |n: u16| Rect { y: area.y + n, height: u16::from(n < area.height), ..area };
        let words = shorten_end(&self.words, usize::from(area.width), cx.ascii);
        draw::text(buf, row(0), &words, cx.theme.style(Role::Text));
        if let Some(edit) = &self.writing {
            draw::text(buf, row(1), LABEL, cx.theme.style(Role::Accent));
            input::draw(edit, Self::field(area), buf, cx.theme.style(Role::Text));
            return;
        }
        let mut at = row(1);
        for (n, answer) in ANSWERS.iter().enumerate() {
            let (text, role) = match n == self.focus {
                true => (format!("[{answer}] "), Role::Accent),
                false => (format!(" {answer}  "), Role::Dim),
            };
            let used = draw::text(buf, at, &text, cx.theme.style(role)).min(at.width);
            at = Rect { x: at.x + used, width: at.width - used, ..at };
        }
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        let edit = self.writing.as_ref()?;
        Some(input::caret(edit, Self::field(area)))
    }
}

impl BranchSummaryPrompt {
    fn on_key(&mut self, key: &KeyEvent) -> Reply {
        let Some(edit) = &mut self.writing else {
            return Reply::Done(vec![
                Effect::Pop,
                Effect::Focus(View::Composer),
                Effect::Compose(ComposerInput::Key(*key)),
            ]);
        };
        match key.code {
            KeyCode::Char(c) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
                edit.insert(c.encode_utf8(&mut [0; 4]));
                Reply::done()
            }
            KeyCode::Enter => {
                let focus = Some(edit.take().trim().to_owned()).filter(|f| !f.is_empty());
                self.done(focus)
            }
            _ => Reply::Ignored,
        }
    }

    fn on_paste(&mut self, text: &str) -> Reply {
        match &mut self.writing {
            Some(edit) => {
                edit.insert(&text.replace('\n', " "));
                Reply::done()
            }
            None => {
                let typed = Effect::Compose(ComposerInput::Paste(text.to_owned()));
                Reply::Done(vec![Effect::Pop, Effect::Focus(View::Composer), typed])
            }
        }
    }

    fn on_escape(&mut self, escape_step: EscapeStep) -> Reply {
        match escape_step {
            EscapeStep::Popup => Reply::Done(self.kept().into_iter().collect()),
            _ => Reply::Done(vec![Effect::Pop, Effect::Focus(View::Composer)]),
        }
    }

    fn on_event(&mut self, event: &Event) -> Reply {
        match &event.body {
            // Another session is shown by now: it is too late to ask.
            EventBody::State(StateEvent::HeadMoved { .. })
            | EventBody::Turn(TurnEvent::SessionStarted { .. } | TurnEvent::TurnStarted { .. }) => {
                Reply::Done([Effect::Pop].into_iter().chain(self.kept()).collect())
            }
            _ => Reply::Ignored,
        }
    }
}

/// The dialog with plausible content, for the tests that visit all dialogs.
pub(crate) fn sample() -> BranchSummaryPrompt {
    let name = BranchName { head: "main".into(), label: String::new() };
    BranchSummaryPrompt::of(EntryId(Default::default()), &name, 12)
}

#[cfg(test)]
#[path = "branch_summary_tests.rs"]
mod tests;
