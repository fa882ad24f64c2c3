//! The columns of a table for one width, and the rows drawn with them.

use super::{Cell, Column, GAP, Kind, LEAST};
use crate::text::line::{Line, Look, Wrap};
use crate::text::{clean, shorten_end, shorten_middle, width};
use crate::theme::Role;
use crate::widget::excerpt::excerpt;
use crate::widget::{draw, sign};

/// A column that is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Its number in the table.
    pub(super) at: usize,
    /// Columns for the text, and for the unit.
    pub(super) text: usize,
    pub(super) unit: usize,
}

impl Place {
    /// Columns for both.
    pub(super) fn wide(&self) -> usize {
        self.text + self.unit
    }
}

/// A cell of a row that has content, and the columns of its text.
struct Part<'a> {
    start: usize,
    end: usize,
    kind: Kind,
    text: String,
    cell: &'a Cell,
}

/// The columns of a table for one width.
#[derive(Clone, Debug)]
pub struct Fit {
    pub(super) columns: &'static [Column],
    pub(super) shown: Vec<Place>,
    pub(super) room: usize,
}

impl Fit {
    /// The names of the columns; `None`: they have none.
    pub fn head(&self) -> Option<Line> {
        let titles: Vec<Cell> = self.columns.iter().map(|c| Cell::dim(c.title)).collect();
        let named = self.shown.iter().any(|p| !self.columns[p.at].title.is_empty());
        named.then(|| self.line(&titles, |place| Place { text: place.wide(), unit: 0, ..place }))
    }

    /// A row. Cells that are missing are blank.
    pub fn row(&self, cells: &[Cell]) -> Line {
        self.line(cells, |place| place)
    }

    /// A row with its columns at the places that `place` gives them.
    fn line(&self, cells: &[Cell], place: impl Fn(Place) -> Place) -> Line {
        let mut parts: Vec<Part<'_>> = Vec::with_capacity(self.shown.len());
        let mut from = 0;
        for shown in &self.shown {
            let here = from;
            from += shown.wide() + GAP;
            let Some(cell) = cells.get(shown.at).filter(|c| !c.is_empty()) else { continue };
            let place = place(*shown);
            let kind = self.columns[shown.at].kind;
            let text = cell.shown();
            let right = matches!(kind, Kind::Right | Kind::Number);
            let wide = width(&text).min(place.text);
            let start = if right { here + place.text - wide } else { here };
            parts.push(Part { start, end: here + place.text, kind, text, cell });
        }
        make_way(&mut parts, self.room);
        // What a row leaves empty belongs to the text before it, and then to the text behind it.
        let starts: Vec<usize> = parts.iter().map(|p| p.start).collect();
        let mut line = Line::new(Wrap::Cut);
        for (n, part) in parts.iter().enumerate() {
            let next = starts.get(n + 1).map_or(self.room, |s| s.saturating_sub(GAP));
            let left = if n == 0 { 0 } else { width(line.text()) + GAP };
            if let (Kind::Text, Some((before, marked, behind))) = (part.kind, part.cell.pieces()) {
                let room = next.saturating_sub(part.start);
                let (before, marked, behind) = excerpt((&before, &marked, &behind), room, draw::ellipsis());
                line.pad_to(part.start, Look::of(Role::Text));
                line.push_strict(&before, Look::of(part.cell.role));
                line.push_strict(&marked, Look::of(Role::Match));
                line.push_strict(&behind, Look::of(part.cell.role));
                continue;
            }
            let text = match part.kind {
                Kind::Path => shorten_middle(&part.text, next.saturating_sub(part.start), draw::ascii()),
                Kind::Text => shorten_end(&part.text, next.saturating_sub(part.start), draw::ascii()),
                Kind::Right => shorten_end(&part.text, part.end.saturating_sub(left), draw::ascii()),
                Kind::Number => shorten_end(&part.text, part.end.saturating_sub(part.start), draw::ascii()),
            };
            // As wide in each row, so that rows can be compared.
            let text = match part.cell.gauge {
                Some((used, limit)) => {
                    let cells = width(&part.text).min(part.end.saturating_sub(part.start));
                    sign::gauge(used, limit, cells, draw::ascii())
                }
                None => text,
            };
            let start = match part.kind {
                Kind::Right => part.end.saturating_sub(width(&text)),
                _ => part.start,
            };
            line.pad_to(start, Look::of(Role::Text));
            line.push_strict(&text, Look::of(part.cell.role));
            if !part.cell.unit.is_empty() {
                line.push_strict(part.cell.unit, Look::of(Role::Dim));
            }
        }
        line.pad_to(self.room, Look::of(Role::Text));
        line
    }

    /// The first column, and a sentence in place of all others: why the row cannot be chosen.
    pub fn row_with_reason(&self, first: &Cell, reason: &str) -> Line {
        let mut line = Line::new(Wrap::Cut);
        let least = width(&first.shown()).min(self.room / 2).max(LEAST);
        let reason = shorten_end(&draw::clean(reason), self.room.saturating_sub(least + GAP), draw::ascii());
        let left = self.room.saturating_sub(width(&reason) + GAP);
        line.push_strict(&shorten_end(&first.shown(), left, draw::ascii()), Look::of(first.role));
        line.pad_to(self.room.saturating_sub(width(&reason)), Look::of(Role::Dim));
        line.push_strict(&reason, Look::of(Role::Dim));
        line
    }

    /// A text over the whole width, cut at its end.
    pub fn text(&self, text: &str, look: Look) -> Line {
        let mut line = Line::new(Wrap::Cut);
        line.push_strict(&shorten_end(&clean::plain(text), self.room, draw::ascii()), look);
        line
    }
}

/// Moves the texts that end at the right as far as the row has room, where the text before them would be cut.
fn make_way(parts: &mut [Part<'_>], room: usize) {
    for n in 1..parts.len() {
        let before = &parts[n - 1];
        let is_text = matches!(before.kind, Kind::Text | Kind::Path);
        let fits = before.start + width(&before.text) + GAP <= parts[n].start;
        if !is_text || fits || parts[n].kind != Kind::Right {
            continue;
        }
        let mut next = room + GAP;
        for part in parts[n..].iter_mut().rev() {
            let end = next.saturating_sub(GAP + part.cell.unit.len());
            if part.kind == Kind::Right && end > part.end {
                part.start += end - part.end;
                part.end = end;
            }
            next = part.start;
        }
    }
}
