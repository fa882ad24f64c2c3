//! The parts of rows that differ between two frames, and the order in which they take the fewest bytes. A terminal does
//! not care in which order its cells are written: row by row the cursor moves little, style by style the style changes
//! seldom. What was longer is thrown away.

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::Color;
use unicode_width::UnicodeWidthStr;

use super::pen::{CellStyle, CursorPlace, Pen, SEEN, blank, counted, digits};

/// Going on by so many columns is no shorter than writing what stands there.
const FILL: u16 = 3;

/// Frames with fewer bytes are not tried style by style.
const SHORT: usize = 96;

/// With more styles or spans than this, only row by row is tried.
const STYLES: usize = 24;
const SPANS: usize = 400;

/// Cells of one row that are written in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    y: u16,
    x: u16,
    /// Column behind the last one.
    end: u16,
    what: SpanKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpanKind {
    /// Text of one style, with blanks that look right in it.
    Text,
    /// Blanks only.
    Blanks,
    /// Blanks that the terminal erases; `rest`: to the end of the row.
    Erased { rest: bool },
}

/// The cells to be written for a frame.
#[derive(Default)]
pub(super) struct Spans {
    all: Vec<Span>,
}

impl Spans {
    /// Returns what differs in these rows. `erases`: the terminal erases to the background that is set.
    pub(super) fn find(prev: &Buffer, next: &Buffer, rows: &[usize], erases: bool) -> Self {
        let width = usize::from(next.area.width).max(1);
        let mut spans = Self::default();
        for y in rows {
            let cells = y * width..(y + 1) * width;
            spans.row(*y as u16, &prev.content[cells.clone()], &next.content[cells], erases);
        }
        spans
    }

    fn row(&mut self, y: u16, old: &[Cell], new: &[Cell], erases: bool) {
        let mut row = RowDiff { old, new, torn: 0, erases };
        let mut x = 0;
        while x < new.len() {
            if !row.differs(x) {
                x += columns(&new[x]);
                continue;
            }
            row.cover(x);
            let (end, what) = match row.erased(x) {
                Some(erased) => erased,
                None => row.text(x),
            };
            self.all.push(Span { y, x: x as u16, end: end as u16, what });
            x = end;
        }
    }

    /// Writes the spans, in the order that is shorter.
    pub(super) fn write(&self, next: &Buffer, pen: &mut Pen, out: &mut String) {
        let start = out.len();
        let mut by_rows = *pen;
        self.all.iter().for_each(|span| span.write(next, &mut by_rows, out));
        let length = out.len() - start;
        if length >= SHORT
            && let Some(order) = self.by_style(next)
        {
            let mut by_style = *pen;
            order.iter().for_each(|n| self.all[*n].write(next, &mut by_style, out));
            // Both stand there: the shorter one stays.
            if out.len() - start - length < length {
                out.replace_range(start..start + length, "");
                *pen = by_style;
                return;
            }
            out.truncate(start + length);
        }
        *pen = by_rows;
    }

    /// Numbers of the spans, those of one style together. The style of the lowest text comes last: the next frame most
    /// likely goes on with that text.
    fn by_style(&self, next: &Buffer) -> Option<Vec<usize>> {
        if self.all.len() > SPANS {
            return None;
        }
        let mut styles: Vec<(CellStyle, usize)> = Vec::new();
        let mut of = vec![0; self.all.len()];
        for (n, span) in self.all.iter().enumerate().filter(|(_, s)| s.what == SpanKind::Text) {
            let style = span.style(next);
            of[n] = styles.iter().position(|(s, _)| *s == style).unwrap_or(styles.len());
            match styles.get_mut(of[n]) {
                Some((_, last)) => *last = n,
                None => styles.push((style, n)),
            }
        }
        // Blanks join a text on their background; else they come first.
        let texts = styles.len();
        for (n, span) in self.all.iter().enumerate().filter(|(_, s)| s.what != SpanKind::Text) {
            let cell = span.cell(next);
            let joined = styles.iter().position(|(s, _)| s.bares(cell));
            of[n] = joined.unwrap_or(styles.len());
            if joined.is_none() {
                styles.push((CellStyle { modifier: cell.modifier & SEEN, ..CellStyle::of(cell) }, 0));
            }
        }
        if styles.len() > STYLES {
            return None;
        }
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        order.sort_by_key(|n| {
            let style = of[*n];
            (style < texts, styles[style].1, style, *n)
        });
        Some(order)
    }
}

/// A row of both frames.
struct RowDiff<'a> {
    old: &'a [Cell],
    new: &'a [Cell],
    /// Up to here the screen shows the rest of a wide character that was overwritten.
    torn: usize,
    erases: bool,
}

impl RowDiff<'_> {
    fn differs(&self, x: usize) -> bool {
        x < self.torn || !same(&self.old[x], &self.new[x])
    }

    /// Notes that the cell is written.
    fn cover(&mut self, x: usize) {
        let covered = x..(x + columns(&self.new[x])).min(self.new.len());
        let torn = covered.map(|x| x + columns(&self.old[x])).max().unwrap_or(0);
        self.torn = self.torn.max(torn);
    }

    /// True when the cell may be erased: whatever stands there, it stands in this cell alone.
    fn single(&self, x: usize) -> bool {
        x < self.torn || columns(&self.old[x]) == 1
    }

    /// The end of the blanks from `x` on, if erasing them is shorter than writing them. Blanks that stand there already
    /// are erased with the others.
    fn erased(&self, x: usize) -> Option<(usize, SpanKind)> {
        let first = &self.new[x];
        if !blank(first) || !(self.erases || first.bg == Color::Reset) {
            return None;
        }
        let run = self.new[x..]
            .iter()
            .enumerate()
            .take_while(|(n, cell)| blank(cell) && cell.bg == first.bg && self.single(x + n))
            .count();
        let wanted = (x..x + run).rev().find(|x| self.differs(*x))? + 1;
        let many = (wanted - x) as u16;
        if x + run == self.new.len() {
            return (many > 3).then_some((wanted, SpanKind::Erased { rest: true }));
        }
        // The cursor stays where it was.
        let back = if wanted < self.new.len() && self.differs(wanted) { counted(many) } else { 0 };
        let erasing = 3 + digits(many) + back;
        (usize::from(many) > erasing).then_some((wanted, SpanKind::Erased { rest: false }))
    }

    /// The end of what differs from `x` on and can be written in one style.
    fn text(&mut self, from: usize) -> (usize, SpanKind) {
        let mut style: Option<CellStyle> = None;
        let ground = &self.new[from];
        let mut x = from;
        while x < self.new.len() && self.differs(x) {
            let cell = &self.new[x];
            let fits = match (style, blank(cell)) {
                (Some(style), true) => style.bares(cell),
                (Some(style), false) => style == CellStyle::of(cell),
                (None, true) => cell.bg == ground.bg,
                (None, false) => x == from || CellStyle::of(cell).bares(ground),
            };
            if !fits || x > from && self.erased(x).is_some() {
                break;
            }
            if !blank(cell) {
                style = Some(CellStyle::of(cell));
            }
            self.cover(x);
            x += columns(cell).min(self.new.len() - x);
        }
        (x, if style.is_some() { SpanKind::Text } else { SpanKind::Blanks })
    }
}

impl Span {
    /// The cell whose style counts: the first that is not blank.
    fn cell<'a>(&self, next: &'a Buffer) -> &'a Cell {
        let cells = self.cells(next);
        cells.iter().find(|c| !blank(c)).unwrap_or(&cells[0])
    }

    fn style(&self, next: &Buffer) -> CellStyle {
        CellStyle::of(self.cell(next))
    }

    fn cells<'a>(&self, next: &'a Buffer) -> &'a [Cell] {
        let row = usize::from(self.y) * usize::from(next.area.width);
        &next.content[row + usize::from(self.x)..row + usize::from(self.end)]
    }

    fn write(&self, next: &Buffer, pen: &mut Pen, out: &mut String) {
        let (x, y) = (self.x, self.y);
        let cell = self.cell(next);
        self.fill(next, pen, out);
        pen.reach(x, y, cell, out);
        match self.what {
            SpanKind::Erased { rest: true } => out.push_str("\x1b[K"),
            SpanKind::Erased { rest: false } => {
                use std::fmt::Write as _;
                let _ = write!(out, "\x1b[{}X", self.end - x);
            }
            SpanKind::Text | SpanKind::Blanks => self.symbols(next, pen, out),
        }
    }

    fn symbols(&self, next: &Buffer, pen: &mut Pen, out: &mut String) {
        let cells = self.cells(next);
        let mut n = 0;
        while let Some(cell) = cells.get(n) {
            let x = self.x + n as u16;
            write_cell(x, self.y, cell, next.area.width, pen, out);
            n += columns(cell);
        }
    }

    /// Moves to the span by writing the few cells before it again, if that is shorter than a cursor movement.
    fn fill(&self, next: &Buffer, pen: &mut Pen, out: &mut String) {
        let CursorPlace::At(cx, cy) = pen.at else { return };
        if cy != self.y || self.x <= cx || self.x - cx > FILL {
            return;
        }
        let between = Self { x: cx, end: self.x, ..*self }.cells(next);
        let ready = |c: &Cell| {
            let plain = c.symbol().len() == 1 && safe(c.symbol());
            plain && (pen.style == CellStyle::of(c) || blank(c) && pen.style.bares(c))
        };
        if between.iter().all(ready) {
            between.iter().for_each(|c| out.push_str(c.symbol()));
            pen.at = CursorPlace::At(self.x, cy);
        }
    }
}

/// Writes one cell; style and place are set, unless the place became unsure in this row.
fn write_cell(x: u16, y: u16, cell: &Cell, width: u16, pen: &mut Pen, out: &mut String) {
    pen.go(x, y, out);
    let symbol = if safe(cell.symbol()) { cell.symbol() } else { "?" };
    // Some terminals clear one column only below an emoji that a selector makes wide.
    if symbol.contains('\u{fe0f}') && columns(cell) > 1 {
        out.push_str("  ");
        pen.at = CursorPlace::Row(y);
        pen.go(x, y, out);
    }
    out.push_str(symbol);
    let end = sure(symbol).map(|columns| x + columns);
    pen.at = match end {
        Some(end) if end < width => CursorPlace::At(end, y),
        Some(end) if end == width => CursorPlace::Row(y),
        // Drawn wider than we think it would reach the next row.
        _ if x + 2 < width => CursorPlace::Row(y),
        _ => CursorPlace::Unknown,
    };
}

/// The same on the screen: of an empty cell only the background is seen. Most symbols are one byte.
pub(super) fn same(a: &Cell, b: &Cell) -> bool {
    let symbols = match (a.symbol().as_bytes(), b.symbol().as_bytes()) {
        ([a], [b]) => a == b,
        (a, b) => a == b,
    };
    let looks = a.fg == b.fg && a.modifier == b.modifier;
    symbols && a.bg == b.bg && (looks || blank(a) && blank(b))
}

/// Columns that a cell covers.
fn columns(cell: &Cell) -> usize {
    let symbol = cell.symbol();
    if symbol.len() == 1 || !safe(symbol) { 1 } else { symbol.width().max(1) }
}

/// Columns of a symbol that has the same width in every terminal; `None`: they disagree, as on most that is not plain.
/// The lines and blocks of frames are ambiguous by the standard, but a terminal that draws them wide cannot show any
/// screen. Ideographs, kana and syllables of Hangul are wide wherever there is a font for them.
fn sure(symbol: &str) -> Option<u16> {
    if symbol.len() == 1 {
        return Some(1);
    }
    let mut chars = symbol.chars();
    match (chars.next()?, chars.next()) {
        ('\u{2500}'..='\u{257f}' | '\u{2580}'..='\u{259f}', None) => Some(1),
        ('\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{4e00}'..='\u{9fff}', None) => Some(2),
        ('\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{ac00}'..='\u{d7a3}', None) => Some(2),
        ('\u{ff01}'..='\u{ff5e}', None) => Some(2),
        _ => None,
    }
}

/// Nothing in the symbol is a control.
fn safe(symbol: &str) -> bool {
    match symbol.as_bytes() {
        [b] => (0x20..0x7f).contains(b),
        [] => false,
        _ => !symbol.chars().any(char::is_control),
    }
}
