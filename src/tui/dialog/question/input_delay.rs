//! The time in which a dialog takes no decisions: after it appears or changes, after the window gets the focus, after a
//! letter without a function, which is part of a word typed without looking, and after each key that came too soon. It
//! begins with the first frame that shows the dialog, so a key pressed before cannot answer it.

use std::time::Duration;

use crate::model::Model;
use crate::panel::DrawCx;

/// The notice for words that are typed into a dialog of the screen's own that decides something.
pub(crate) const TYPED: &str = "Answer first, or press Esc to decide later";

/// The delay of one dialog. Its length is the setting `ui.approval_deaf`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InputDelay {
    /// When it was first drawn with nothing over it.
    shown: Option<Duration>,
    /// When the last key came that was not taken.
    typed: Option<Duration>,
}

impl InputDelay {
    /// The dialog changed: the delay begins again with the next frame.
    pub(crate) fn restart(&mut self) {
        self.shown = None;
    }

    /// The dialog is being drawn.
    pub(crate) fn note_drawn(&mut self, cx: &DrawCx<'_>) {
        self.shown = if cx.focus { self.shown.or(Some(cx.mono)) } else { None };
    }

    /// A letter without a function was typed: others of the same word follow.
    pub(crate) fn note_typed(&mut self, now: Duration) {
        self.typed = Some(now);
    }

    /// Time until decisions are taken; `None`: they are taken now.
    pub(crate) fn remaining(&self, model: &Model) -> Option<Duration> {
        let delay = Duration::from_millis(model.ui.approval_deaf);
        let Some(shown) = self.shown.filter(|_| !model.window.away) else { return Some(delay) };
        let until = shown.max(model.window.back).max(self.typed.unwrap_or_default()) + delay;
        (until > model.mono).then(|| until - model.mono)
    }

    /// True when the dialog takes the decision of the key that was pressed. One that it does not take begins the delay anew.
    pub(crate) fn take(&mut self, model: &Model) -> bool {
        let takes = self.is_over(model);
        if !takes {
            self.note_typed(model.mono);
        }
        takes
    }

    /// True when decisions are taken now.
    pub(crate) fn is_over(&self, model: &Model) -> bool {
        self.remaining(model).is_none()
    }
}
