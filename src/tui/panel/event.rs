//! Input and events that reach a panel besides its actions.

use std::any::Any;

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::layout::Rect;
use tiller_protocol::Event;

use crate::app::effect::Token;
use crate::input::escape::EscapeStep;
use crate::panel::terminal::visibility::Visibility;

/// Input that no key binding took.
#[derive(Clone, Copy)]
pub enum PanelInput<'a> {
    /// A key, for text input.
    Key(&'a KeyEvent),
    /// Pasted text, already cleaned.
    Paste(&'a str),
    /// A mouse event, and the area in which the panel was drawn.
    Mouse(&'a MouseEvent, Rect),
    /// Escape, for exactly this step: what [`super::PanelStatus::escape`] named, or [`EscapeStep::Layer`] when it closes
    /// the layer.
    Escape(EscapeStep),
    /// Ctrl-C: copies the selection. Ignored when nothing is selected.
    CopySelection,
}

/// An event that concerns a panel.
pub enum PanelEvent<'a> {
    /// It was put on the screen for the first time.
    Opened,
    /// It got the focus as a view.
    Focused,
    /// It is not on the screen now, or is measured next because all is drawn again. Views only; the reply is dropped.
    Hidden,
    /// Its question was put aside and is on the screen again.
    Resumed,
    /// Its question was answered elsewhere and the dialog is about to be dropped: what the person has written in it is
    /// to be kept (see [`crate::panel::composer::request::keep_unsent`]).
    Withdrawn,
    /// A time that [`super::Refresh::wake`] named has come. Views only.
    Tick,
    /// The settings in [`crate::model::Model::ui`] changed while it is on the screen.
    SettingsChanged,
    /// An event of the engine, after the model took it.
    Engine(&'a Event),
    /// The answer to an [`crate::app::effect::Effect::ask`] with this token.
    Answer(Token, &'a Event),
    /// The result of an [`crate::app::effect::Task::Job`] with this token.
    JobDone(Token, Box<dyn Any + Send>),
    /// The external editor has closed the file of [`crate::app::effect::External::Editor`], or a trial has ended; an error:
    /// the program failed.
    Edited(Result<(), String>),
    /// A message of another panel ([`crate::app::effect::Effect::Tell`]).
    Message(Box<dyn Any>),
    /// The view of terminals was shown, hidden, covered or (un)focused.
    Visibility(&'a Visibility),
}
