//! The cover over views and dialogs that takes no keys: toasts, and the keys that can follow those pressed so far. While
//! it stays as it is, a frame draws what has changed below it, and it again where that reaches under it.

use ratatui::layout::{Position, Rect};

use crate::keymap::Chord;

/// The state that the cover is made from, besides theme, keys and layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::view) struct CoverSource {
    /// Revision of the list of toasts.
    pub(super) toasts: u64,
    /// Rows at the bottom that a dialog leaves to toasts.
    pub(in crate::view) spare: u16,
    /// Keys pressed so far.
    pub(super) pending: Vec<Chord>,
    /// The keys that can follow are shown.
    pub(super) keys_shown: bool,
}

/// The cover as it was drawn.
#[derive(Clone, Debug)]
pub(in crate::view) struct Cover {
    pub(in crate::view) source: CoverSource,
    /// Cells of the toasts in the header and elsewhere, and of the keys.
    pub(in crate::view) toasts: [Rect; 2],
    pub(super) keys: Rect,
}

impl Cover {
    /// True for a cell that it hides.
    pub(in crate::view) fn hides(&self, at: Position) -> bool {
        self.toasts.iter().any(|r| r.contains(at)) || self.keys.contains(at)
    }

    /// It lies over the place of the cursor.
    pub(in crate::view) fn hides_cursor(&self) -> bool {
        self.source.keys_shown
    }
}
