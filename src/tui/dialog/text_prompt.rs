//! A prompt for a short text: a message to an agent, a note, limits. It lies in place of the composer, whose draft is
//! kept. A text that is not sent becomes the newest of the composer's history.

use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::notice::sentence;
use tiller_protocol::{Event, EventBody, Message};

use crate::app::effect::Effect;
use crate::keymap::Chord;
use crate::keymap::action::{Action, ActionSpec};
use crate::keymap::scope::Scope;
use crate::model::Model;
use crate::panel::composer::request::ComposerRequest;
use crate::panel::{DrawCx, Hint, Panel, PanelEvent, PanelInput, PanelStatus, Placement, Reply, View};
use crate::registry::Dialog;
use crate::theme::Role;
use crate::widget::edit::Edit;
use crate::widget::{draw, field};

/// Registers the dialog.
pub(crate) const DIALOG: Dialog = Dialog {
    groups: &[("Message box", ACTIONS)],
    scopes: &[Scope::new("words", Some("input"), "Message box", true).keys(&[
        ("enter", "words.send"),
        ("ctrl-j", "words.newline"),
        ("alt-enter", "words.newline"),
        ("shift-enter", "words.newline"),
    ])],
    samples: &[("words", || Box::new(sample()))],
    ..Dialog::NONE
};

/// Its actions.
pub const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("words.send", "send", "Send the message"),
    ActionSpec::key_only("words.newline", "new line", "Insert a new line"),
];

/// Rows of the field at most.
const FIELD: u16 = 6;

/// Keeps a text that was not sent as the newest of the composer's history. `None`: the text is empty.
pub(crate) fn keep(text: &str) -> Option<Effect> {
    let text = text.trim();
    let message = ComposerRequest::Keep(Message::text(text));
    (!text.is_empty()).then(|| Effect::Tell(View::Composer, Box::new(message)))
}

/// Makes effects of the text. An error is a sentence for the person; the text then stays in the field.
pub type Then = Box<dyn Fn(&str) -> Result<Vec<Effect>, String>>;

/// The dialog.
pub struct TextPrompt {
    title: String,
    /// The text to enter, in one line.
    about: String,
    edit: Edit,
    then: Then,
    /// Why the text was refused.
    said: Option<String>,
    /// The answer is on its way.
    sent: bool,
}

impl TextPrompt {
    /// `then` makes commands of them; those that are asked ([`Effect::ask`]) are answered to this dialog, which
    /// closes when they are taken.
    pub fn new(title: &str, about: &str, text: &str, then: Then) -> Self {
        let (title, about) = (title.to_owned(), about.to_owned());
        Self { title, about, edit: Edit::with(text), then, said: None, sent: false }
    }

    fn send(&mut self) -> Reply {
        match (self.then)(self.edit.text().trim()) {
            Ok(effects) => {
                let asks = effects.iter().any(|e| matches!(e, Effect::Command(r) if r.token.is_some()));
                self.sent = asks;
                self.said = None;
                let close = (!asks).then_some(Effect::Pop);
                Reply::Done(close.into_iter().chain(effects).collect())
            }
            Err(why) => {
                self.said = Some(why);
                Reply::done()
            }
        }
    }

    fn height(&self, columns: u16) -> u16 {
        field::rows(&self.edit, columns).clamp(1, FIELD)
    }
}

impl Panel for TextPrompt {
    fn status(&self, _model: &Model) -> PanelStatus {
        PanelStatus::new("words")
    }

    fn title(&self, _model: &Model) -> String {
        self.title.clone()
    }

    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    fn placement(&self, _columns: u16, model: &Model) -> Placement {
        let rows = self.height(model.window.screen.0.saturating_sub(4));
        Placement::Dock { height: rows + 3 }
    }

    fn act(&mut self, action: Action, _model: &Model) -> Reply {
        // While the answer is on its way nothing is changed or sent again; Escape and the rest work as always.
        let mine = ACTIONS.iter().any(|a| a.action == action);
        if self.sent {
            return if mine { Reply::done() } else { Reply::Ignored };
        }
        match action.0 {
            "words.send" => return self.send(),
            "words.newline" => self.edit.insert("\n"),
            id if self.edit.act(id) => {}
            _ => return Reply::Ignored,
        }
        self.said = None;
        Reply::done()
    }

    fn input(&mut self, input: PanelInput<'_>, _model: &Model) -> Reply {
        match input {
            PanelInput::Key(key) => self.on_key(key),
            PanelInput::Paste(text) => self.on_paste(text),
            PanelInput::Escape(_) => self.on_escape(),
            _ => Reply::Ignored,
        }
    }

    fn handle(&mut self, event: PanelEvent<'_>, _model: &Model) -> Reply {
        match event {
            PanelEvent::Answer(_, event) => self.on_answer(event),
            _ => Reply::Ignored,
        }
    }

    fn hints(&self, _model: &Model) -> Vec<Hint> {
        vec![Hint::of("words.send"), Hint::of("words.newline")]
    }

    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let (about, words) = parts(area);
        let (text, role) = match &self.said {
            Some(why) => (why.as_str(), Role::Error),
            None if self.sent => ("Sending...", Role::Dim),
            None => (self.about.as_str(), Role::Dim),
        };
        draw::text(buf, about, &draw::clean(text), cx.theme.style(role));
        field::draw(&self.edit, words, buf, cx.theme);
    }

    fn cursor(&self, area: Rect, _model: &Model) -> Option<Position> {
        let words = parts(area).1;
        (words.area() > 0).then(|| field::caret(&self.edit, words))
    }
}

impl TextPrompt {
    fn on_key(&mut self, key: &KeyEvent) -> Reply {
        let Some(c) = Chord::of(key).text().filter(|_| !self.sent) else { return Reply::Ignored };
        self.edit.insert(c.encode_utf8(&mut [0; 4]));
        self.said = None;
        Reply::done()
    }

    fn on_paste(&mut self, text: &str) -> Reply {
        if !self.sent {
            self.edit.insert(&text.replace("\r\n", "\n").replace('\r', "\n"));
        }
        Reply::done()
    }

    fn on_escape(&mut self) -> Reply {
        let kept = Some(self.edit.text()).filter(|_| !self.sent).and_then(keep);
        Reply::Done([Effect::Pop].into_iter().chain(kept).collect())
    }

    fn on_answer(&mut self, event: &Event) -> Reply {
        match &event.body {
            EventBody::Reply(r) => match r.as_ref() {
                ReplyEvent::ErrorReply { notice } => {
                    self.sent = false;
                    self.said = Some(sentence(&notice.message));
                    Reply::done()
                }
                ReplyEvent::DoneReply { said } => {
                    let said = tiller_protocol::Notice::new(tiller_protocol::NoticeKind::Info, said.clone());
                    Reply::Done(vec![Effect::Pop, Effect::Toast(said)])
                }
                _ => Reply::with(Effect::Pop),
            },
            // A message has no answer but that it is there.
            EventBody::Turn(_) | EventBody::State(_) if self.sent => Reply::with(Effect::Pop),
            _ => Reply::Ignored,
        }
    }
}

/// The line that says what is wanted, and the field.
fn parts(area: Rect) -> (Rect, Rect) {
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let about = Rect { height: area.height.min(u16::from(area.height > 1)), ..area };
    (about, Rect { y: about.bottom(), height: area.height - about.height, ..area })
}

/// For tests.
pub(crate) fn sample() -> TextPrompt {
    TextPrompt::new(
        "Message to a2 docs",
        "it reads this at its next step",
        "use short words",
        Box::new(|_| Ok(Vec::new())),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_its_answer_lets_every_other_key_through() {
        let mut words = sample();
        words.sent = true;
        let model = Model::default();
        assert!(matches!(words.act(Action("words.send"), &model), Reply::Done(list) if list.is_empty()));
        assert!(matches!(words.act(Action("global.answer"), &model), Reply::Ignored), "it is no trap");
        assert!(matches!(words.on_escape(), Reply::Done(list) if list.len() == 1));
    }
}
