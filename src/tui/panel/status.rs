//! The facts that a panel tells the screen of itself, as plain values.

use std::time::Duration;

use tiller_protocol::AskId;

use crate::input::escape::EscapeStep;
use crate::keymap::action::Action;
use crate::text::line::{Line, Look, Wrap};
use crate::theme::Role;

/// The state of a panel as far as the routing of keys depends on it.
#[derive(Clone, Copy, Debug)]
pub struct PanelStatus {
    /// Section of the key file in which its keys are looked up: `composer`, `list`, `approval`, ...
    pub scope: &'static str,
    /// The way that keys take.
    pub keys: KeyRouting,
    /// The innermost thing inside the panel that Escape ends (popup, search, selection, copy mode, vim insert); `None`:
    /// Escape leaves the panel itself.
    pub escape: Option<EscapeStep>,
    /// The effect of Escape on this layer, for the footer; empty: the layer says so itself.
    pub leave: &'static str,
    /// The question that this dialog answers. The dialog is dropped when the question is answered elsewhere, and kept
    /// when Escape puts it aside.
    pub question: Option<AskId>,
    /// There is nothing to show: the rail folds it to its title. For the composer: there is no draft.
    pub empty: bool,
    /// How its title stands out.
    pub attention: Attention,
    /// The state in the title of a question.
    pub state: QuestionState,
    /// The effect of letters at a question.
    pub letters: Letters,
    /// A question takes no input now: see [`crate::dialog::question::input_delay`].
    pub deaf: bool,
}

/// The effect of a printable key at a question that takes input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Letters {
    /// Each is the key of a button, or has no function.
    #[default]
    Press,
    /// The digits from 1 up to this number answer; the others have no function.
    Number(usize),
    /// They filter a list. The digits from 1 up to this number answer.
    Filter(usize),
    /// They go into a field that the person has opened.
    Write,
}

/// The state at the right of a question's title.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuestionState {
    /// Lines that the call adds and removes.
    pub counts: Option<(u32, u32)>,
    /// It destroys something, reaches the network, or is not understood.
    pub risky: bool,
    /// Which one it is of how many, where there are several.
    pub which: Option<(usize, usize)>,
    /// Time until it counts as denied.
    pub denied_in: Option<Duration>,
}

impl QuestionState {
    /// The tone of the bar at the left and of the sign before the title.
    pub fn tone(self) -> Role {
        if self.risky { Role::Error } else { Role::Waiting }
    }

    /// As it is drawn.
    pub fn line(self, ascii: bool) -> Line {
        let mut line = Line::new(Wrap::Cut);
        if let Some((added, removed)) = self.counts {
            line = crate::widget::diff::counts(added, removed, ascii);
        }
        let mut add = |text: &str, role| {
            line.push(if line.text().is_empty() { "" } else { "   " }, Look::of(Role::Text));
            line.push(text, Look::of(role));
        };
        if self.risky {
            add("risky", Role::Error);
        }
        if let Some((at, of)) = self.which {
            add(&format!("{at} of {of}"), Role::Dim);
        }
        if let Some(left) = self.denied_in {
            // Minutes, and at the end seconds.
            let words = match left.as_millis().div_ceil(1000) {
                s @ 0..=90 => format!("denied in {s} s"),
                s => format!("denied in {} min", s.div_ceil(60)),
            };
            add(&words, Role::Waiting);
        }
        line
    }
}

/// The reason for which a title stands out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attention {
    #[default]
    None,
    /// Something has not been seen yet.
    Unseen,
    /// Something waits for the person.
    Waiting,
}

impl PanelStatus {
    /// Keys of this section, and nothing special.
    pub const fn new(scope: &'static str) -> Self {
        Self {
            scope,
            keys: KeyRouting::Bound,
            escape: None,
            leave: "close",
            question: None,
            empty: false,
            attention: Attention::None,
            state: QuestionState { counts: None, risky: false, which: None, denied_in: None },
            letters: Letters::Press,
            deaf: false,
        }
    }

    /// A dialog that answers a question of the engine.
    pub const fn question(scope: &'static str, id: AskId) -> Self {
        Self { leave: "later", question: Some(id), ..Self::new(scope) }
    }

    /// With this at the right of its title.
    #[must_use]
    pub const fn state(self, state: QuestionState) -> Self {
        Self { state, ..self }
    }

    /// With this use of letters; `deaf`: nothing is taken now.
    #[must_use]
    pub const fn input(self, letters: Letters, deaf: bool) -> Self {
        Self { letters, deaf, ..self }
    }

    /// With this step for Escape.
    #[must_use]
    pub const fn escape(self, step: Option<EscapeStep>) -> Self {
        Self { escape: step, ..self }
    }

    /// Empty, or not.
    #[must_use]
    pub const fn empty(self, empty: bool) -> Self {
        Self { empty, ..self }
    }

    /// With a title that stands out, or not.
    #[must_use]
    pub const fn attention(self, attention: Attention) -> Self {
        Self { attention, ..self }
    }

    /// True when keys go to the panel without a look-up.
    pub fn is_raw(&self) -> bool {
        matches!(self.keys, KeyRouting::Raw { .. })
    }
}

/// How keys reach a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRouting {
    /// By their bindings; those without one as [`super::PanelInput::Key`].
    Bound,
    /// All as [`super::PanelInput::Key`], but for the keys of this action, which leave that state.
    Raw { release: Option<Action> },
}

/// The state of an action: if it can be performed now, and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    Available,
    /// Why not; shown in the palette and when its key is pressed.
    Unavailable(String),
    /// It decides something in the present state of the panel: it is accepted only after the dialog was readable for a
    /// moment.
    Decides,
    /// It presses the focused button, which performs this action. A deciding button is not pressed this way.
    Presses(Action),
}

impl Availability {
    /// Unavailable for this reason, if there is one.
    pub fn unless(why: Option<&str>) -> Self {
        why.map_or(Self::Available, |why| Self::Unavailable(why.to_owned()))
    }
}

/// Where a panel lies. A box that is larger than the screen becomes the full screen; its content must scroll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// A layer in the middle of the screen, of this size with its border.
    Center { width: u16, height: u16 },
    /// A layer in place of the composer, of this height with its border.
    Dock { height: u16 },
    /// A layer over everything between header and footer; a view as large as its part of the layout.
    Full,
    /// A view that fills so many rows at most.
    Rows(u16),
}

/// The cells that the next frames need not draw, and when one is due. Made by [`super::Panel::measure`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refresh {
    /// Time from this frame after which the panel must be drawn again though nothing happens; `None`: never.
    pub wake: Option<Duration>,
    /// Rows at the top that look as in the frame before. When only this panel is drawn, they are left alone.
    pub kept: u16,
    /// Rows at the bottom that were blank and are blank again. Counts only together with `kept`.
    pub blank: u16,
    /// Columns and rows, from the corner of its area, of the cells with a spinner. They change by themselves: for them the
    /// panel is not drawn again.
    pub spinners: Vec<(u16, u16)>,
}

impl Refresh {
    /// Everything is drawn, and again after this time.
    pub fn after(wake: Option<Duration>) -> Self {
        Self { wake, ..Self::default() }
    }
}
