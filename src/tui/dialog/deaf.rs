//! The time in which a question takes no keys: after it appears or changes, after the focus returns, and after a
//! letter that means nothing to it, which is a word typed without looking.
//! It counts from the frame that showed it, so what was typed before that can answer nothing.

use std::time::Duration;

use crate::model::Model;
use crate::panel::DrawCx;

/// The notice for words that are typed into a question.
pub(crate) const TYPED: &str = "Answer first, or press Esc to decide later";

/// The state of one dialog.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deaf {
    /// When it was drawn first with nothing over it.
    shown: Option<Duration>,
    /// When a letter came last that is no answer.
    typed: Option<Duration>,
}

impl Deaf {
    /// It changed: begin anew with the next frame.
    pub(crate) fn restart(&mut self) {
        self.shown = None;
    }

    /// It is being drawn.
    pub(crate) fn drawn(&mut self, cx: &DrawCx<'_>) {
        self.shown = if cx.focus { self.shown.or(Some(cx.mono)) } else { None };
    }

    /// A letter came that is no answer: others of the same word follow.
    pub(crate) fn typed(&mut self, now: Duration) {
        self.typed = Some(now);
    }

    /// How long it still is deaf; `None`: it listens.
    pub(crate) fn left(&self, model: &Model) -> Option<Duration> {
        let deaf = Duration::from_millis(model.ui.approval_deaf);
        let Some(shown) = self.shown.filter(|_| !model.window.away) else { return Some(deaf) };
        let until = shown.max(model.window.back).max(self.typed.unwrap_or_default()) + deaf;
        (until > model.mono).then(|| until - model.mono)
    }

    /// Whether keys count now.
    pub(crate) fn listens(&self, model: &Model) -> bool {
        self.left(model).is_none()
    }
}
