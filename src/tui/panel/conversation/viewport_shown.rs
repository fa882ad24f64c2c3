//! What the window showed the last time, and how much of it is the same now.

use super::{Scroll, Seen, Stamp, Viewport};

/// What the window showed, to tell what of it is the same the next time.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown {
    /// Columns and rows.
    size: (usize, usize),
    cells: Vec<(Seen, Stamp)>,
    /// Rows from the window's top that the last cell does not change by growing.
    firm: usize,
}

impl Shown {
    /// Rows on top that are the same now, when at most the last cell has grown.
    pub fn same(&self, now: &Self) -> usize {
        let (Some((old, before)), Some((new, after))) = (self.cells.split_last(), now.cells.split_last())
        else {
            return 0;
        };
        let grown = (Seen { rows: new.0.rows, ..old.0 }, Stamp { rev: new.1.rev, ..old.1 });
        if self.size == now.size && before == after && grown == *new { self.firm } else { 0 }
    }

    /// Rows below the last cell.
    pub fn blank(&self) -> usize {
        self.cells.last().map_or(0, |(last, _)| self.size.1.saturating_sub(last.y + last.rows))
    }
}

impl Viewport {
    /// What is visible, measured already. `None`: something of it may change by itself.
    pub fn shown(&self) -> Option<Shown> {
        if self.scroll != Scroll::End || self.highlighter.busy() {
            return None;
        }
        let kept = |s: &Seen| self.kept.get(&s.key).filter(|k| !k.plain);
        let cells = self.visible.iter().map(|s| Some((*s, kept(s)?.stamp))).collect::<Option<Vec<_>>>()?;
        let (last, _) = cells.last()?;
        let firm = last.y + self.kept(last.key)?.settled().saturating_sub(last.from);
        Some(Shown { size: (self.env.columns, self.env.rows), cells, firm })
    }
}
