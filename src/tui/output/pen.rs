//! The terminal's cursor and style: where they are, and the shortest sequences that change them.

use std::fmt::Write as _;

use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};

/// Where the terminal's cursor stands, as far as we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CursorPlace {
    Unknown,
    /// Column and row.
    At(u16, u16),
    /// In this row, at a column that terminals disagree about: behind a character of unsure width, or behind the last
    /// column (`xenl`).
    Row(u16),
}

/// Colours and modifiers of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CellStyle {
    pub(super) fg: Color,
    pub(super) bg: Color,
    pub(super) modifier: Modifier,
}

/// Modifiers that show where nothing is written.
pub(super) const SEEN: Modifier =
    Modifier::UNDERLINED.union(Modifier::SLOW_BLINK).union(Modifier::REVERSED).union(Modifier::CROSSED_OUT);

/// The style of a terminal after a reset.
pub(super) const PLAIN: CellStyle =
    CellStyle { fg: Color::Reset, bg: Color::Reset, modifier: Modifier::empty() };

/// Modifiers that we write, with the numbers that set and end them. Bold and dim end together.
const SGR: &[(Modifier, u8, u8)] = &[
    (Modifier::BOLD, 1, INTENSITY),
    (Modifier::DIM, 2, INTENSITY),
    (Modifier::ITALIC, 3, 23),
    (Modifier::UNDERLINED, 4, 24),
    (Modifier::SLOW_BLINK, 5, 25),
    (Modifier::REVERSED, 7, 27),
    (Modifier::HIDDEN, 8, 28),
    (Modifier::CROSSED_OUT, 9, 29),
];

/// Ends bold and dim.
const INTENSITY: u8 = 22;

impl CellStyle {
    pub(super) fn of(cell: &Cell) -> Self {
        Self { fg: cell.fg, bg: cell.bg, modifier: cell.modifier }
    }

    /// True when an empty cell looks right with this style.
    pub(super) fn bares(self, cell: &Cell) -> bool {
        self.bg == cell.bg && !self.modifier.intersects(SEEN) && !cell.modifier.intersects(SEEN)
    }

    /// The nearest style that is right for an empty cell: only its background matters.
    fn baring(self, cell: &Cell) -> Self {
        match self.bares(cell) {
            true => self,
            false => {
                Self { fg: self.fg, bg: cell.bg, modifier: (self.modifier - SEEN) | (cell.modifier & SEEN) }
            }
        }
    }
}

/// The parameters of one SGR sequence.
struct Sgr {
    params: [u8; 32],
    len: usize,
}

impl Sgr {
    /// The shortest sequence from one style to another; none when they are the same.
    fn change(from: CellStyle, to: CellStyle) -> Self {
        let steps = Self::steps(from, to, false);
        if to.modifier.contains(from.modifier) {
            return steps;
        }
        let anew = Self::steps(PLAIN, to, true);
        if steps.bytes() < anew.bytes() { steps } else { anew }
    }

    /// Returns what is to be ended, then what is to be set. `reset`: all of it ends at once.
    fn steps(from: CellStyle, to: CellStyle, reset: bool) -> Self {
        let mut all = Self { params: [0; 32], len: 0 };
        if reset {
            all.push(0);
        }
        let mut has = from.modifier;
        for (m, _, end) in SGR {
            if has.contains(*m) && !to.modifier.contains(*m) {
                all.push(*end);
                has -= if *end == INTENSITY { Modifier::BOLD | Modifier::DIM } else { *m };
            }
        }
        for (m, set, _) in SGR {
            if to.modifier.contains(*m) && !has.contains(*m) {
                all.push(*set);
            }
        }
        if to.fg != from.fg {
            all.color(to.fg, 30);
        }
        if to.bg != from.bg {
            all.color(to.bg, 40);
        }
        all
    }

    fn push(&mut self, param: u8) {
        // Seven ends, eight sets and two colours fit.
        if let Some(place) = self.params.get_mut(self.len) {
            *place = param;
            self.len += 1;
        }
    }

    fn color(&mut self, color: Color, base: u8) {
        match color {
            Color::Reset => self.push(base + 9),
            Color::Rgb(r, g, b) => [base + 8, 2, r, g, b].into_iter().for_each(|n| self.push(n)),
            Color::Indexed(n) => [base + 8, 5, n].into_iter().for_each(|n| self.push(n)),
            named => {
                let n = crate::theme::color::number(named);
                self.push(if n < 8 { base + n } else { base + 60 + n - 8 });
            }
        }
    }

    /// Length of the sequence.
    fn bytes(&self) -> usize {
        let digits = |n: &u8| digits(u16::from(*n));
        match self.len {
            0 => 0,
            len => 2 + len + self.params[..len].iter().map(digits).sum::<usize>(),
        }
    }

    fn write(&self, out: &mut String) {
        for (n, param) in self.params[..self.len].iter().enumerate() {
            let _ = write!(out, "{}{param}", if n == 0 { "\x1b[" } else { ";" });
        }
        if self.len > 0 {
            out.push('m');
        }
    }
}

/// Decimal digits of a number.
pub(super) fn digits(n: u16) -> usize {
    match n {
        ..10 => 1,
        10..100 => 2,
        100..1000 => 3,
        1000..10_000 => 4,
        _ => 5,
    }
}

/// Length of a sequence with one number, which is left out when it is 1.
pub(super) fn counted(n: u16) -> usize {
    if n == 1 { 3 } else { 3 + digits(n) }
}

/// A way for the cursor to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Stay,
    /// By so many columns.
    Right(u16),
    /// By so many rows, in the same column.
    Down(u16),
    /// To this column of the same row.
    Column(u16),
    /// To the beginning of a row so many rows below, and by so many columns.
    Lines(u16, u16),
    To,
}

/// Rows that are gone down by line feeds at most.
const FEEDS: u16 = 3;

impl Way {
    /// The shortest one, and its length.
    fn find(from: CursorPlace, x: u16, y: u16) -> (Self, usize) {
        let right = |n: u16| if n == 0 { 0 } else { counted(n) };
        let to = match (x, y) {
            (0, 0) => 3,
            (0, _) => 3 + digits(y + 1),
            _ => 4 + digits(x + 1) + digits(y + 1),
        };
        let mut best = (Self::To, to);
        let mut try_way = |way: Self, bytes: usize| {
            if bytes < best.1 {
                best = (way, bytes);
            }
        };
        let row = match from {
            CursorPlace::Unknown => return best,
            CursorPlace::At(_, row) | CursorPlace::Row(row) => row,
        };
        if let CursorPlace::At(cx, _) = from {
            match () {
                () if (cx, row) == (x, y) => return (Self::Stay, 0),
                () if row == y && x > cx => try_way(Self::Right(x - cx), counted(x - cx)),
                () if cx == x && y > row => try_way(Self::Down(y - row), counted(y - row)),
                () => {}
            }
        }
        if row == y {
            try_way(Self::Column(x), if x == 0 { 1 } else { 3 + digits(x + 1) });
        } else if y > row && y - row <= FEEDS {
            try_way(Self::Lines(y - row, x), 1 + usize::from(y - row) + right(x));
        }
        best
    }

    fn write(self, x: u16, y: u16, out: &mut String) {
        let mut sequence = |n: u16, last: char| {
            let _ = if n == 1 { write!(out, "\x1b[{last}") } else { write!(out, "\x1b[{n}{last}") };
        };
        match self {
            Self::Stay => {}
            Self::Right(n) => sequence(n, 'C'),
            Self::Down(n) => sequence(n, 'B'),
            Self::Column(0) => out.push('\r'),
            Self::Column(x) => sequence(x + 1, 'G'),
            Self::Lines(rows, columns) => {
                out.push('\r');
                (0..rows).for_each(|_| out.push('\n'));
                if columns > 0 {
                    Self::Right(columns).write(x, y, out);
                }
            }
            Self::To => {
                let _ = match (x, y) {
                    (0, 0) => write!(out, "\x1b[H"),
                    (0, _) => write!(out, "\x1b[{}H", y + 1),
                    _ => write!(out, "\x1b[{};{}H", y + 1, x + 1),
                };
            }
        }
    }
}

/// The state that the terminal saved with DECSC: style, column and row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SavedCursor {
    pub(super) style: CellStyle,
    pub(super) x: u16,
    pub(super) y: u16,
}

/// Cursor and style of the terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pen {
    pub(super) at: CursorPlace,
    pub(super) style: CellStyle,
    pub(super) saved: Option<SavedCursor>,
}

impl Pen {
    /// After a reset of the style, with the cursor anywhere.
    pub(super) const fn new() -> Self {
        Self { at: CursorPlace::Unknown, style: PLAIN, saved: None }
    }

    /// Moves the cursor.
    pub(super) fn go(&mut self, x: u16, y: u16, out: &mut String) {
        Way::find(self.at, x, y).0.write(x, y, out);
        self.at = CursorPlace::At(x, y);
    }

    /// Length of the sequence that moves the cursor.
    pub(super) fn way(&self, x: u16, y: u16) -> usize {
        Way::find(self.at, x, y).1
    }

    /// Sets the style.
    pub(super) fn set(&mut self, style: CellStyle, out: &mut String) {
        Sgr::change(self.style, style).write(out);
        self.style = style;
    }

    /// Length of the sequence that sets the style.
    pub(super) fn change(&self, style: CellStyle) -> usize {
        Sgr::change(self.style, style).bytes()
    }

    /// Sets the style for an empty cell.
    pub(super) fn ground(&mut self, cell: &Cell, out: &mut String) {
        self.set(self.style.baring(cell), out);
    }

    /// Moves the cursor to where `cell` is to be written, and sets the style for it. Where the terminal has saved that
    /// style, restoring it may be the shorter way.
    pub(super) fn reach(&mut self, x: u16, y: u16, cell: &Cell, out: &mut String) {
        let wanted = |style: CellStyle| match blank(cell) {
            true => style.baring(cell),
            false => CellStyle::of(cell),
        };
        let style = wanted(self.style);
        if style != self.style
            && let Some(saved) = self.saved
        {
            let restored = Self { at: CursorPlace::At(saved.x, saved.y), style: saved.style, ..*self };
            let again = wanted(restored.style);
            if 2 + restored.way(x, y) + restored.change(again) < self.way(x, y) + self.change(style) {
                self.restore(out);
            }
        }
        self.go(x, y, out);
        self.set(wanted(self.style), out);
    }

    /// Saves the cursor's place, which must be known, and the style.
    pub(super) fn save(&mut self, out: &mut String) {
        if let CursorPlace::At(x, y) = self.at {
            out.push_str("\x1b7");
            self.saved = Some(SavedCursor { style: self.style, x, y });
        }
    }

    /// Restores both, if they were saved.
    pub(super) fn restore(&mut self, out: &mut String) {
        if let Some(saved) = self.saved {
            out.push_str("\x1b8");
            self.at = CursorPlace::At(saved.x, saved.y);
            self.style = saved.style;
        }
    }
}

/// The cell is empty and shows only its background.
pub(super) fn blank(cell: &Cell) -> bool {
    cell.symbol() == " " && !cell.modifier.intersects(SEEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_way_is_taken_and_its_length_is_known() {
        use CursorPlace::{At, Row, Unknown};
        for (from, x, y, want) in [
            (Unknown, 0, 0, "\x1b[H"),
            (Unknown, 0, 8, "\x1b[9H"),
            (Unknown, 4, 8, "\x1b[9;5H"),
            (At(4, 8), 4, 8, ""),
            (At(4, 8), 5, 8, "\x1b[C"),
            (At(4, 8), 30, 8, "\x1b[26C"),
            (At(40, 8), 4, 8, "\x1b[5G"),
            (At(40, 8), 0, 8, "\r"),
            (At(4, 8), 4, 9, "\x1b[B"),
            (At(4, 8), 4, 29, "\x1b[21B"),
            (At(40, 8), 0, 9, "\r\n"),
            (At(40, 7), 2, 8, "\x1b[9;3H"),
            (At(40, 18), 2, 19, "\r\n\x1b[2C"),
            (Row(18), 0, 20, "\r\n\n"),
            (Row(18), 2, 20, "\x1b[21;3H"),
            (Row(18), 40, 18, "\x1b[41G"),
            (At(40, 18), 2, 17, "\x1b[18;3H"),
        ] {
            let (mut pen, mut out) = (Pen { at: from, ..Pen::new() }, String::new());
            let length = pen.way(x, y);
            pen.go(x, y, &mut out);
            assert_eq!(out, want, "{from:?} to {x},{y}");
            assert_eq!(length, want.len(), "{want:?}");
            assert_eq!(pen.at, At(x, y));
        }
    }

    #[test]
    fn a_modifier_is_ended_alone_where_that_is_shorter() {
        let text = CellStyle { fg: Color::Rgb(200, 201, 202), bg: Color::Rgb(20, 21, 22), ..PLAIN };
        let bold = CellStyle { modifier: Modifier::BOLD, ..text };
        let both = CellStyle { modifier: Modifier::BOLD | Modifier::ITALIC, ..text };
        let dim = CellStyle { modifier: Modifier::DIM, ..text };
        for (from, to, want) in [
            (text, text, ""),
            (text, bold, "\x1b[1m"),
            (bold, text, "\x1b[22m"),
            (both, bold, "\x1b[23m"),
            (bold, dim, "\x1b[22;2m"),
            (bold, PLAIN, "\x1b[0m"),
            (PLAIN, both, "\x1b[1;3;38;2;200;201;202;48;2;20;21;22m"),
        ] {
            let (mut pen, mut out) = (Pen { style: from, ..Pen::new() }, String::new());
            let length = pen.change(to);
            pen.set(to, &mut out);
            assert_eq!(out, want);
            assert_eq!(length, want.len(), "{want:?}");
        }
    }
}
