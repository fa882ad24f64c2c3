//! Everything that is drawn and takes keys: panels in the layout, dialogs on top. One trait for both.

use std::any::Any;
use std::time::Duration;

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::{AskId, Event, Message, Time};

use crate::app::effect::{Effect, Token};
use crate::input::escape::EscapeStep;
use crate::keymap::Keymap;
use crate::keymap::action::{Action, ActionSpec};
use crate::model::Model;
use crate::theme::Theme;

pub mod agents;
pub mod compose;
pub mod composer;
pub mod conversation;
pub(crate) mod find;
#[cfg(test)]
mod find_tests;
pub mod nothing;
pub(crate) mod rows;
pub mod seen;
pub mod sessions;
pub(crate) mod sides;
pub mod terminal;
pub mod todo;
mod view;
pub mod views;
pub mod watch;

pub use view::View;

/// Where a layer lies. Whatever is asked for, the shell makes it fit: a box that is larger than the
/// screen becomes the full screen, and must scroll inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the middle, so many columns and rows with its border.
    Center { width: u16, height: u16 },
    /// In place of the composer, so many rows with its border.
    Dock { height: u16 },
    /// Everything between header and footer.
    Full,
}

/// What became of a key or an action.
pub enum Reply {
    /// Not mine: try the next layer.
    Ignored,
    /// Done; these are to follow.
    Done(Vec<Effect>),
}

impl Reply {
    /// Done, nothing to follow.
    pub fn done() -> Self {
        Self::Done(Vec::new())
    }

    /// Done, with one effect.
    pub fn with(effect: Effect) -> Self {
        Self::Done(vec![effect])
    }
}

/// What drawing may look at.
pub struct DrawCx<'a> {
    pub theme: &'a Theme,
    pub model: &'a Model,
    /// This panel has the focus.
    pub focus: bool,
    /// Wall time and monotonic time of this frame.
    pub now: Time,
    pub mono: Duration,
    /// Marks and borders in ASCII only.
    pub ascii: bool,
    /// No moving marks.
    pub still: bool,
    /// For naming keys: `cx.key("global.palette")`.
    pub keys: &'a Keymap,
    /// Sections of the key file that are active now, inner first.
    pub scopes: &'a [&'static str],
    /// Rows on top that stay as they are; see [`Panel::same`].
    pub same: u16,
    /// How long nothing is decided in it yet, when it is the layer on top.
    pub deaf: Option<Duration>,
}

impl DrawCx<'_> {
    /// The key that does this now, as text; without one, the key that does it somewhere else, or `-`.
    pub fn key(&self, id: &'static str) -> String {
        let action = Action(id);
        self.keys
            .describe(action, self.scopes)
            .or_else(|| self.keys.anywhere(action).map(|(_, k)| k))
            .unwrap_or_else(|| "-".into())
    }
}

/// A hint for the footer: the key is looked up in the active keymap, so it is never a lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    pub action: Action,
    /// Instead of the action's own label, when it means something else now (`steer` for `send`).
    pub label: Option<&'static str>,
}

impl Hint {
    /// With the action's own label.
    pub const fn of(id: &'static str) -> Self {
        Self { action: Action(id), label: None }
    }

    /// With another label.
    pub const fn as_(id: &'static str, label: &'static str) -> Self {
        Self { action: Action(id), label: Some(label) }
    }
}

/// A panel or a dialog.
pub trait Panel: Any {
    /// Section of the key file that it looks keys up in: `composer`, `list`, `approval`, ...
    fn scope(&self) -> &'static str;

    /// Title for borders and for the plain mode.
    fn title(&self, model: &Model) -> String;

    /// What it can do. Also actions of its scope that exist only while it is on top.
    fn actions(&self) -> &'static [ActionSpec];

    /// Does one of its actions.
    fn act(&mut self, action: Action, model: &Model) -> Reply;

    /// Called once, when it is put on the screen: what it needs from the engine.
    fn opened(&mut self, _model: &Model) -> Vec<Effect> {
        Vec::new()
    }

    /// It has got the focus as a view: what it needs from the engine now.
    fn focused(&mut self, _model: &Model) -> Vec<Effect> {
        Vec::new()
    }

    /// What was begun to be written in it and is sent nowhere; a question that goes away gives it to the
    /// composer's history.
    fn begun(&self) -> Option<String> {
        None
    }

    /// A question that was put aside is on the screen again.
    fn back(&mut self, _model: &Model) {}

    /// Where it lies when it is a layer.
    fn place(&self, _model: &Model) -> Place {
        Place::Full
    }

    /// Nothing to show: the rail folds it to its title. For the composer: no draft.
    fn empty(&self, _model: &Model) -> bool {
        false
    }

    /// The innermost thing inside of it that Escape would end now (popup, search, selection, copy mode,
    /// vim insert); `None`: Escape leaves the panel itself.
    fn escape_step(&self, _model: &Model) -> Option<EscapeStep> {
        None
    }

    /// Ends what [`Panel::escape_step`] named, exactly that. Also called with [`EscapeStep::Layer`] when Escape
    /// closes the layer: the default takes it away.
    fn escape(&mut self, escape_step: EscapeStep, _model: &Model) -> Reply {
        if escape_step == EscapeStep::Layer { Reply::with(Effect::Pop) } else { Reply::done() }
    }

    /// What Escape does to this layer, for the footer; `None`: it closes it. Questions are put aside.
    fn leave(&self) -> Option<&'static str> {
        self.ask().map(|_| "later")
    }

    /// Copies the selection, when there is one (Ctrl-C).
    fn copy_selection(&mut self, _model: &Model) -> Option<Reply> {
        None
    }

    /// Puts text where one can type, as [`Effect::Compose`] says. For the composer.
    fn compose(&mut self, _text: &Message, _replace: bool, _model: &Model) -> Reply {
        Reply::Ignored
    }

    /// A message of another panel's ([`Effect::Tell`]).
    fn told(&mut self, _what: Box<dyn Any>, _model: &Model) -> Reply {
        Reply::Ignored
    }

    /// The file that [`crate::app::effect::External::Editor`] was asked for has been edited, or why not.
    fn edited(&mut self, _result: Result<(), String>, _model: &Model) -> Reply {
        Reply::Ignored
    }

    /// The question that this dialog answers. It is closed when the question is answered elsewhere.
    fn ask(&self) -> Option<AskId> {
        None
    }

    /// What an action comes to here: the button that has the focus for one that presses it; the action itself when
    /// it decides something in the state that the panel is in.
    fn pressed(&self, _action: Action, _model: &Model) -> Option<Action> {
        None
    }

    /// Keys come to [`Panel::key`] as they are, also those that are bound.
    fn raw(&self) -> bool {
        false
    }

    /// While keys come as they are: the one action that is looked up even so, to get out.
    fn way_out(&self) -> Option<Action> {
        None
    }

    /// It came on the screen or went, keys come to it or not, a dialog lies on the screen or not: what it needs from
    /// the engine now. Only told to the view of terminals.
    fn seen(&mut self, _now: &crate::panel::seen::Seen, _model: &Model) -> Vec<Effect> {
        Vec::new()
    }

    /// Takes a key that no binding took (text input).
    fn key(&mut self, _key: &KeyEvent, _model: &Model) -> Reply {
        Reply::Ignored
    }

    /// Takes pasted text, already cleaned.
    fn paste(&mut self, _text: &str, _model: &Model) -> Reply {
        Reply::Ignored
    }

    /// Takes a mouse event; `area` is where it was drawn.
    fn mouse(&mut self, _event: &MouseEvent, _area: Rect, _model: &Model) -> Reply {
        Reply::Ignored
    }

    /// A moment that a frame named has come ([`Panel::wake`]): what it needs from the engine now.
    fn tick(&mut self, _model: &Model) -> Vec<Effect> {
        Vec::new()
    }

    /// Sees every event after the model did.
    fn event(&mut self, _event: &Event, _model: &Model) -> Reply {
        Reply::Ignored
    }

    /// The settings in [`Model::ui`] changed while it is on the screen.
    fn settings_changed(&mut self, _model: &Model) {}

    /// The answer to an [`Effect::Ask`] with this token.
    fn reply(&mut self, _token: Token, _event: &Event, _model: &Model) -> Reply {
        Reply::Ignored
    }

    /// The result of an [`Effect::Job`] with this token.
    fn job(&mut self, _token: Token, _result: Box<dyn Any + Send>, _model: &Model) -> Reply {
        Reply::Ignored
    }

    /// What to tell in the footer now, most important first.
    fn hints(&self, model: &Model) -> Vec<Hint>;

    /// Why an action cannot be done now; `None` when it can. Shown in the palette.
    fn disabled(&self, _action: Action, _model: &Model) -> Option<String> {
        None
    }

    /// Rows that it would like at this width (composer, dialogs); `None`: as many as there are.
    fn rows(&self, _width: u16, _model: &Model) -> Option<u16> {
        None
    }

    /// Called before `draw`; may fill caches.
    fn measure(&mut self, _area: Rect, _cx: &DrawCx<'_>) {}

    /// Asked after `measure`, when nothing but this panel is drawn anew: how many rows on top are as they were when it
    /// was measured before. They are left alone, also by `draw`.
    fn same(&self, _cx: &DrawCx<'_>) -> u16 {
        0
    }

    /// After measuring: rows at the bottom that were blank and are blank again. Counts only with rows that are the
    /// same on top.
    fn blank(&self, _cx: &DrawCx<'_>) -> u16 {
        0
    }

    /// Draws. Changes nothing.
    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer);

    /// Where the terminal's cursor belongs (caret or focused row), when this panel has the focus.
    fn cursor(&self, _area: Rect, _model: &Model) -> Option<Position> {
        None
    }

    /// When it wants to be drawn again though nothing happens (deaf time over, seconds counter).
    /// Monotonic time of the frame plus this; `None`: never.
    fn wake(&self, _cx: &DrawCx<'_>) -> Option<Duration> {
        None
    }
}
