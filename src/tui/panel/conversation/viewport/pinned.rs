//! The message of the person that a turn answers stays on the top rows while rows of its turn are on the screen.

use tiller_protocol::Origin;

use super::{ScrollPosition, Viewport};
use crate::model::conversation::{Body, Cell, Conversation};

/// Windows with fewer rows pin nothing.
const ROWS: usize = 8;
/// Cells of a turn that are looked through for its message.
const FAR: usize = 4000;
/// Rows of a message that are pinned at most; of a low window one row in so many.
const MOST: usize = 3;
const PART: usize = 6;
/// The blank row below it.
const BLANK: usize = 1;

/// A message that is pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pinned {
    pub key: u64,
    /// Its rows that are drawn, and those that are left out.
    pub rows: usize,
    pub more: usize,
    /// Unfolding the current turn shows more rows of it.
    pub unfolds: bool,
    /// Rows that it takes, with the blank row below it.
    pub height: usize,
}

fn is_message(cell: &Cell) -> bool {
    matches!(&cell.body, Body::User { origin: Origin::Prompt | Origin::Task, .. })
}

impl Viewport {
    /// Decides which message is pinned, and returns the cell and the row at the top of the window; `None`: there are no
    /// cells. Where the end is followed, a pinned message covers the rows on top; else the window ends above.
    pub(super) fn pin(&mut self, conv: &Conversation) -> Option<(usize, usize)> {
        self.pinned = None;
        let mut top = self.top(conv)?;
        if self.scroll != ScrollPosition::End {
            self.held = None;
            self.pinned = self.message_above(conv, top).and_then(|n| self.pinned_form(conv, n));
            let rows = self.window();
            if self.below(conv, top.0, top.1, rows) >= rows {
                return Some(self.below_gap(conv, top));
            }
            self.scroll = ScrollPosition::End;
            self.pinned = None;
            top = self.top(conv)?;
        }
        self.hold(conv, top);
        let Some(form) = self.message_above(conv, top).and_then(|n| self.pinned_form(conv, n)) else {
            return Some(top);
        };
        let covered = self.down(conv, top.0, top.1, form.height);
        // The rows that are left may be of the next turn already.
        let Some(n) = self.message_above(conv, covered) else { return Some(top) };
        self.pinned = self.pinned_form(conv, n).map(|p| p.fitted(form.height));
        Some(covered)
    }

    /// The blank row on top of a cell is not repeated below the pinned message.
    fn below_gap(&mut self, conv: &Conversation, (index, row): (usize, usize)) -> (usize, usize) {
        match self.pinned {
            Some(_) => (index, row.max(self.laid(conv, index).map_or(0, |l| l.gap))),
            None => (index, row),
        }
    }

    /// The message that belongs to the row at the top but stands above it.
    fn message_above(&self, conv: &Conversation, top: (usize, usize)) -> Option<usize> {
        if self.env.rows < ROWS {
            return None;
        }
        let cells = conv.cells();
        let turn = cells.get(top.0)?.turn;
        let of_turn = cells.range(..=top.0).rev().take(FAR).take_while(|c| c.turn == turn);
        let (n, _) = of_turn.enumerate().find(|(_, c)| is_message(c))?;
        // A message that is on the screen itself, or a part of it, is not repeated.
        (n > 0).then(|| top.0 - n)
    }

    /// How cell `index` is pinned: its first rows, more of them when its turn is unfolded.
    fn pinned_form(&mut self, conv: &Conversation, index: usize) -> Option<Pinned> {
        let cell = conv.cells().get(index)?;
        let unfolded = !self.all && self.unfolded(cell);
        let most = if unfolded { self.env.rows / 2 } else { (self.env.rows / PART).clamp(1, MOST) };
        let all = self.laid(conv, index)?.stack().rows();
        // The key unfolds the current turn.
        let unfolds = !unfolded && !self.all && cell.turn == conv.turn();
        let rows = all.min(most);
        Some(Pinned { key: cell.key, rows, more: all - rows, unfolds, height: rows + BLANK })
    }

    /// Rows that a page moves by: no more than what is left below the highest message that may be pinned, but one.
    pub fn page(&self) -> usize {
        let most = match self.env.rows {
            ..ROWS => 0,
            rows if self.turns.is_empty() => (rows / PART).clamp(1, MOST) + BLANK,
            rows => rows / 2 + BLANK,
        };
        self.env.rows.saturating_sub(most.max(1) + 1).max(1)
    }

    /// Rows for the cells: all but those of the pinned message.
    pub fn window(&self) -> usize {
        self.env.rows - self.pinned.map_or(0, |p| p.height.min(self.env.rows))
    }
}

impl Pinned {
    /// In so many rows, the blank one counted.
    fn fitted(self, height: usize) -> Self {
        let rows = self.rows.min(height - BLANK);
        Self { rows, more: self.more + self.rows - rows, height, ..self }
    }

    /// Returns what stands at the end of its last row when there are more.
    pub fn note(self, key: &str) -> String {
        let plural = if self.more == 1 { "" } else { "s" };
        match self.more {
            0 => String::new(),
            n if self.unfolds => format!("+{n} row{plural} {key}"),
            n => format!("+{n} row{plural}"),
        }
    }
}
