//! Following the end. Terminals scroll whole lines cheaply. Where panels stand beside the text, most terminals need the
//! whole text again for each scrolled row. There a full window scrolls by several rows at once while a turn runs, and
//! the next rows fill the free ones. When no turn runs the window is full.

use super::Viewport;
use crate::model::conversation::Conversation;

/// The window moves by one of so many of its rows.
const PART: usize = 4;

/// The top row of the last frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TopRow {
    /// Cell and row on top.
    key: u64,
    row: usize,
    /// Columns and rows that it had.
    size: (usize, usize),
}

impl Viewport {
    /// The top row while the end is followed: the same as before as long as the end is visible.
    pub(super) fn following(&mut self, conv: &Conversation) -> (usize, usize) {
        let rows = self.env.rows;
        let free = if self.env.leaps { rows.div_ceil(PART).saturating_sub(1) } else { 0 };
        let held = self.held.filter(|h| h.size == (self.env.columns, self.env.rows));
        let mut below = rows;
        if let Some((held, index)) = held.and_then(|h| Some((h, conv.find(h.key)?))) {
            let used = self.below(conv, index, held.row, rows + 1);
            if used <= rows && used + free >= rows {
                return (index, held.row);
            }
            // Less than before (something was folded) gets no free rows.
            if used > rows {
                below = rows - free;
            }
        }
        self.up(conv, conv.cells().len(), 0, below)
    }

    /// Remembers the top row of this frame.
    pub(super) fn hold(&mut self, conv: &Conversation, (index, row): (usize, usize)) {
        let size = (self.env.columns, self.env.rows);
        self.held = conv.cells().get(index).map(|c| TopRow { key: c.key, row, size });
    }
}
