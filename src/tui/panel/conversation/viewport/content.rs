//! Content of the window in the last frame, and how much of it is unchanged.

use super::{LayoutKey, Pinned, ScrollPosition, Viewport, VisibleCell};

/// Content of the window in one frame, to find the rows that are unchanged in the next.
#[derive(Debug, PartialEq, Eq)]
pub struct WindowContent {
    /// Columns and rows.
    size: (usize, usize),
    /// The message on the top rows.
    pinned: Option<Pinned>,
    cells: Vec<(VisibleCell, LayoutKey)>,
    /// Rows from the window's top that the last cell does not change by growing.
    firm: usize,
}

impl WindowContent {
    /// Rows on top that are the same now, when at most the last cell has grown.
    pub fn same(&self, now: &Self) -> usize {
        let (Some((old, before)), Some((new, after))) = (self.cells.split_last(), now.cells.split_last())
        else {
            return 0;
        };
        let grown = (VisibleCell { rows: new.0.rows, ..old.0 }, LayoutKey { rev: new.1.rev, ..old.1 });
        if self.size == now.size && self.pinned == now.pinned && before == after && grown == *new {
            self.firm
        } else {
            0
        }
    }

    /// Rows below the last cell.
    pub fn blank(&self) -> usize {
        self.cells.last().map_or(0, |(last, _)| self.size.1.saturating_sub(last.y + last.rows))
    }
}

impl Viewport {
    /// Returns what is visible, measured already. `None`: something of it may change by itself.
    pub fn shown(&self) -> Option<WindowContent> {
        if self.scroll != ScrollPosition::End || self.highlighter.busy() {
            return None;
        }
        let kept = |s: &VisibleCell| self.layouts.get(s.key).filter(|k| !k.plain);
        let cells = self.visible.iter().map(|s| Some((*s, kept(s)?.stamp))).collect::<Option<Vec<_>>>()?;
        let (last, _) = cells.last()?;
        let firm = last.y + self.kept(last.key)?.settled().saturating_sub(last.from);
        let size = (self.env.columns, self.env.rows);
        Some(WindowContent { size, pinned: self.pinned, cells, firm })
    }
}
