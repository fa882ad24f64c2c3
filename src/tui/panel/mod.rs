//! Everything that is drawn and takes keys: panels in the layout, dialogs on top. One trait for both.
//!
//! A dialog with buttons needs the required methods of [`Panel`] and [`Panel::placement`]; a dialog that asks the engine
//! also [`Panel::handle`], and a dialog with a text field [`Panel::input`] and [`Panel::cursor`].

use std::any::Any;
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tiller_protocol::Time;

use crate::app::effect::Effect;
use crate::keymap::Keymap;
use crate::keymap::action::{Action, ActionSpec};
use crate::model::Model;
use crate::theme::Theme;
use crate::widget::sign;

pub mod agents;
pub mod composer;
pub mod conversation;
pub mod empty_view;
pub mod event;
pub(crate) mod find;
#[cfg(test)]
mod find_tests;
pub(crate) mod headings;
pub(crate) mod recent_sessions;
pub mod sessions;
pub(crate) mod status;
pub mod terminal;
pub(crate) mod times;
pub mod todo;
mod view;
pub mod views;
pub mod watch;

pub use event::{PanelEvent, PanelInput};
pub use status::{
    Attention, Availability, KeyRouting, Letters, PanelStatus, Placement, QuestionState, Refresh,
};
pub use view::View;

/// The reply of a panel to an input, an action or an event.
pub enum Reply {
    /// Nothing: the input goes on to whatever handles it by default.
    Ignored,
    /// It was handled; these effects are carried out next.
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

/// The facts that drawing may look at.
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
    /// Marks do not move: the setting `ui.reduced_motion`.
    pub reduced_motion: bool,
    /// For naming keys: `cx.key("global.palette")`.
    pub keys: &'a Keymap,
    /// Sections of the key file that are active now, inner first.
    pub scopes: &'a [&'static str],
    /// Rows at the top that are on the screen already and are not drawn; see [`Refresh::kept`].
    pub kept: u16,
    /// Time until this panel accepts decisions, while it is the layer on top; `None`: it accepts them.
    pub delay: Option<Duration>,
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

    /// The spinner's sign in this frame; `None`: marks do not move.
    pub(crate) fn spinner(&self) -> Option<&'static str> {
        let since = Duration::from_millis(u64::try_from(self.now.millis()).unwrap_or(0));
        (!self.reduced_motion).then(|| sign::spinner(since, self.ascii))
    }
}

/// A hint for the footer: the key is looked up in the active keymap, so it always names the key in force.
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
    /// Its state as far as the routing of keys depends on it. Called often: cheap, and without side effects.
    fn status(&self, model: &Model) -> PanelStatus;

    /// Title for borders and for the plain mode.
    fn title(&self, model: &Model) -> String;

    /// Its actions. Also actions of its scope that exist only while it is on top.
    fn actions(&self) -> &'static [ActionSpec];

    /// Performs one of its actions.
    fn act(&mut self, action: Action, model: &Model) -> Reply;

    /// Tells if an action can be performed now, and what it means in the state that the panel is in.
    fn availability(&self, _action: Action, _model: &Model) -> Availability {
        Availability::Available
    }

    /// Takes input that no key binding took. What it ignores gets the default: Escape closes a layer, everything else
    /// goes to the panel below or does nothing.
    fn input(&mut self, _input: PanelInput<'_>, _model: &Model) -> Reply {
        Reply::Ignored
    }

    /// Takes an event that concerns it.
    fn handle(&mut self, _event: PanelEvent<'_>, _model: &Model) -> Reply {
        Reply::Ignored
    }

    /// Hints for the footer, most important first.
    fn hints(&self, model: &Model) -> Vec<Hint>;

    /// Where it lies when it is a layer; how many rows it fills, with so many columns, when it is a view.
    fn placement(&self, _columns: u16, _model: &Model) -> Placement {
        Placement::Full
    }

    /// Called before each `draw` with the same area; may fill caches.
    fn measure(&mut self, _area: Rect, _cx: &DrawCx<'_>) -> Refresh {
        Refresh::default()
    }

    /// Draws. Changes nothing.
    fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer);

    /// Position of the terminal's cursor (caret or focused row), when this panel has the focus.
    fn cursor(&self, _area: Rect, _model: &Model) -> Option<Position> {
        None
    }
}
