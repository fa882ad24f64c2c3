//! Layout of a list row: a name at the left, figures at the right, and between them the current activity, where there
//! is room.

use crate::text::line::{Line, Look};
use crate::text::{clean, shorten_end, width};
use crate::theme::Role;
use crate::widget::draw;

/// Fewest columns in which the current activity is shown.
const LEAST: usize = 8;

/// The figures at the right end of a row.
pub(crate) struct RowEnd<'a> {
    parts: Vec<&'a (String, Role)>,
    /// Columns that are left of it.
    pub(crate) room: usize,
}

impl<'a> RowEnd<'a> {
    /// Of these parts, the most important first, those that fit beside a name of `used` columns.
    pub(crate) fn of(parts: &'a [(String, Role)], used: usize, columns: usize) -> Self {
        let mut used = used + 1;
        let fits = |part: &&(String, Role)| {
            let need = width(&part.0) + 1;
            let fits = !part.0.is_empty() && used + need <= columns;
            used += if fits { need } else { 0 };
            fits
        };
        let parts: Vec<_> = parts.iter().filter(fits).collect();
        let tail: usize = parts.iter().map(|p| width(&p.0) + 1).sum();
        Self { parts, room: columns.saturating_sub(tail) }
    }

    /// Appends the figures to a line that holds the name, with the current activity `act` between.
    pub(crate) fn end(self, line: &mut Line, act: &str) {
        let free = self.room.saturating_sub(width(line.text()) + 3);
        if free >= LEAST && !act.is_empty() {
            let act = shorten_end(&clean::plain(&act.replace('\n', " ")), free, draw::ascii());
            line.push_strict(&format!("  {act}"), Look::of(Role::Dim));
        }
        line.pad_to(self.room, Look::of(Role::Text));
        for (text, role) in self.parts {
            line.push_strict(&format!(" {text}"), Look::of(*role));
        }
    }
}
