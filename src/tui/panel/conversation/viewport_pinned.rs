//! The message of the person that a turn answers stays on the top row while rows of its turn are on the screen.

use tiller_protocol::Origin;

use super::Viewport;
use crate::model::conversation::{Body, Cell, Conversation};

/// Windows with fewer rows pin nothing.
const ROWS: usize = 8;
/// Cells of a turn that are looked through for its message.
const FAR: usize = 4000;

fn is_message(cell: &Cell) -> bool {
    matches!(&cell.body, Body::User { origin: Origin::Prompt, .. })
}

impl Viewport {
    /// The message that belongs to the top row but stands above it.
    pub(super) fn message_above(&self, conv: &Conversation) -> Option<usize> {
        if self.env.rows < ROWS {
            return None;
        }
        let cells = conv.cells();
        let top = self.visible.first()?;
        let turn = cells.get(top.index)?.turn;
        let of_turn = cells.range(..=top.index).rev().take(FAR).take_while(|c| c.turn == turn);
        let (n, _) = of_turn.enumerate().find(|(_, c)| is_message(c))?;
        // A message that is on the screen itself, or a part of it, is not repeated.
        (n > 0).then(|| top.index - n)
    }

    /// Rows for the cells: all but the one of the pinned message.
    pub fn window(&self) -> usize {
        self.env.rows - usize::from(self.pinned.is_some())
    }
}
