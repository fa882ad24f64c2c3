//! Tables, fitted to the width; where they cannot fit, "header: value" lines.

use pulldown_cmark::Alignment;

use super::Opts;
use crate::line::{Gutter, Line, Look, Wrap};
use crate::role::Role;
use crate::sign;
use crate::width::width;
use crate::wrap::{Row, wrap};

/// Below this many columns a table is drawn as "header: value" lines.
const NARROW: usize = 60;
/// Columns between two columns of a table.
const GAP: usize = 3;
/// Minimum width of a drawn column.
const COLUMN: usize = 8;

/// The cells of a table while it is parsed.
pub(super) struct Table {
    align: Vec<Alignment>,
    rows: Vec<Vec<Line>>,
}

impl Table {
    pub(super) fn new(align: Vec<Alignment>) -> Self {
        Self { align, rows: Vec::new() }
    }

    pub(super) fn row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn cell(&mut self, cell: Line) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// Lines within `room` columns.
    pub(super) fn lay(&self, room: usize, opts: Opts) -> Vec<Line> {
        let fits = if opts.tables_as_text || room < NARROW { None } else { self.columns(room) };
        match fits {
            Some(columns) => self.grid(&columns, opts),
            None => self.sentences(),
        }
    }

    /// Widths of the columns; `None` when they cannot fit.
    fn columns(&self, room: usize) -> Option<Vec<usize>> {
        let count = self.align.len();
        let room = room.checked_sub(GAP * count.saturating_sub(1))?;
        let mut want = vec![1; count];
        for row in &self.rows {
            for (w, cell) in want.iter_mut().zip(row) {
                *w = (*w).max(width(cell.text()));
            }
        }
        let least: usize = want.iter().map(|w| (*w).min(COLUMN)).sum();
        if least > room {
            return None;
        }
        // The widest columns shrink first.
        let mut over = want.iter().sum::<usize>().saturating_sub(room);
        while over > 0 {
            let widest = want.iter().copied().max()?;
            let next = want.iter().copied().filter(|w| *w < widest).max().unwrap_or(1).max(COLUMN);
            let many = want.iter().filter(|w| **w == widest).count();
            let step = (widest - next.min(widest - 1)).min(over.div_ceil(many)).max(1);
            for w in want.iter_mut().filter(|w| **w == widest) {
                let cut = step.min(over);
                *w -= cut;
                over -= cut;
            }
        }
        Some(want)
    }

    fn grid(&self, columns: &[usize], opts: Opts) -> Vec<Line> {
        let dash = sign::RULE.text(opts.ascii);
        let border = Look::of(Role::Border);
        let mut lines = Vec::new();
        for (n, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<Row>> = columns
                .iter()
                .enumerate()
                .map(|(c, w)| {
                    let mut rows = Vec::new();
                    if let Some(cell) = row.get(c) {
                        wrap(cell, 0, *w, &mut rows);
                    }
                    rows
                })
                .collect();
            for k in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let mut line = Line::new(Wrap::Cut);
                let mut edge = 0;
                for (c, w) in columns.iter().enumerate() {
                    if c > 0 {
                        edge += GAP;
                    }
                    if let (Some(cell), Some(piece)) = (row.get(c), cells[c].get(k)) {
                        let (s, e) = (piece.start as usize, piece.end as usize);
                        let spare = w.saturating_sub(width(&cell.text()[s..e]));
                        let left = match self.align[c] {
                            Alignment::Right => spare,
                            Alignment::Center => spare / 2,
                            _ => 0,
                        };
                        line.pad_to(edge + left, Look::of(Role::Text));
                        line.push_slice(cell, s, e);
                    }
                    edge += w;
                }
                lines.push(line);
            }
            if n == 0 {
                let mut line = Line::new(Wrap::Cut);
                let dashes: Vec<String> = columns.iter().map(|w| dash.repeat(*w)).collect();
                line.push(&dashes.join(&" ".repeat(GAP)), border);
                lines.push(line);
            }
        }
        lines
    }

    fn sentences(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        let Some((head, rows)) = self.rows.split_first() else { return lines };
        if rows.is_empty() {
            let names: Vec<&str> = head.iter().map(Line::text).collect();
            lines.push(Line::strict(&names.join(", "), Look::of(Role::Strong), Wrap::Word));
        }
        for (n, row) in rows.iter().enumerate() {
            if n > 0 {
                lines.push(Line::default());
            }
            for (c, cell) in row.iter().enumerate() {
                let mut line = Line::default();
                if let Some(name) = head.get(c).filter(|h| !h.is_empty()) {
                    line.push_slice(name, 0, name.text().len());
                    line.push(": ", Look::of(Role::Dim));
                }
                line.push_slice(cell, 0, cell.text().len());
                line.rest = Gutter::blank(2);
                lines.push(line);
            }
        }
        lines
    }
}
