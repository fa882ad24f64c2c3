//! Cells without rows of their own: calls that share the row of a call below them, and calls of the todo list while its
//! panel shows the list. What is unfolded has its own rows.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::Viewport;
use crate::cell;
use crate::model::conversation::{Body, Cell, Conversation, ToolCell, ToolState};

/// Calls that share one row at most.
const MOST: usize = 200;

impl Viewport {
    fn folded_call<'a>(&self, cell: &'a Cell) -> Option<&'a ToolCell> {
        match &cell.body {
            Body::Tool(t) if !self.unfolded(cell) => Some(t),
            _ => None,
        }
    }

    /// True when cell `index` has no rows of its own.
    pub fn hidden(&self, conv: &Conversation, index: usize) -> bool {
        let cells = conv.cells();
        let Some(cell) = cells.get(index) else { return false };
        let Some(call) = self.folded_call(cell) else { return false };
        if self.env.todo_shown && cell::is_todo(call) && matches!(call.state, ToolState::Done(o) if o.ok()) {
            return true;
        }
        cells.get(index + 1).is_some_and(|below| {
            below.turn == cell.turn && self.folded_call(below).is_some_and(|b| cell::joins(call, b))
        })
    }

    /// The calls above cell `index` that share its row, oldest first.
    pub(super) fn sharing<'a>(&self, conv: &'a Conversation, index: usize) -> Vec<&'a Cell> {
        let cells = conv.cells();
        let Some(own) = cells.get(index).filter(|c| self.folded_call(c).is_some()) else { return Vec::new() };
        let mut all = Vec::new();
        let mut below = own;
        for above in cells.range(..index).rev().take(MOST) {
            let joined = self
                .folded_call(above)
                .zip(self.folded_call(below))
                .is_some_and(|(a, b)| above.turn == own.turn && cell::joins(a, b));
            if !joined {
                break;
            }
            all.push(above);
            below = above;
        }
        all.reverse();
        all
    }

    /// The cell with rows that stands above cell `index`, which shares its row with `sharing` cells.
    pub(super) fn above<'a>(&self, conv: &'a Conversation, index: usize, sharing: usize) -> Option<&'a Cell> {
        let first = index.checked_sub(sharing)?;
        let shown = |n: &usize| !self.hidden(conv, *n);
        (0..first).rev().take(MOST).find(shown).and_then(|n| conv.cells().get(n))
    }

    /// The next cell with rows at or after `index`, or before it.
    pub fn shown_from(&self, conv: &Conversation, index: usize, down: bool) -> usize {
        let mut n = index;
        while self.hidden(conv, n) {
            match if down { n.checked_add(1).filter(|n| *n < conv.cells().len()) } else { n.checked_sub(1) } {
                Some(next) => n = next,
                None => return index,
            }
        }
        n
    }
}

/// Changes when one of these cells does.
pub(super) fn revision(cells: &[&Cell]) -> u64 {
    if cells.is_empty() {
        return 0;
    }
    let mut h = DefaultHasher::new();
    cells.iter().for_each(|c| (c.key, c.rev).hash(&mut h));
    h.finish()
}
