//! Frames to bytes: only what differs from the frame before, in as few bytes as is simple. Nothing
//! foreign gets through: every symbol is checked once more here.

mod scroll;
pub mod writer;

use std::fmt::Write as _;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

/// Frames shorter than this are drawn by a terminal in one go anyway.
const SYNC_FROM: usize = 256;

/// From so many on, blanks are erased instead of written.
const ERASE: usize = 6;

/// So far from the left edge, the next row is reached by its beginning.
const NEAR: u16 = 9;

/// Going on by so many columns is no shorter than writing what stands there.
const FILL: u16 = 3;

/// The last frame that went out, and the state in which the terminal is.
pub struct Encoder {
    prev: Buffer,
    /// The next frame must not trust what is on the screen.
    repaint: bool,
    at: CursorPlace,
    look: CellStyle,
    shown: Option<bool>,
    /// Where the last frame left the cursor.
    rest: Option<(u16, u16)>,
    /// The terminal has saved the cursor there, with this style.
    saved: Option<CellStyle>,
    /// The style of the first text of this frame, and of the frame before.
    first: [Option<CellStyle>; 2],
    /// The terminal knows synchronised output (mode 2026); `None`: it has not said.
    pub sync: Option<bool>,
    /// The terminal supports left and right margins (mode 69).
    pub sides: bool,
    /// The terminal erases to the background that is set (`bce` of terminfo).
    pub erases: bool,
    /// Columns of the conversation's text, if panels stand beside it.
    pub text: std::ops::Range<u16>,
}

/// Where the terminal's cursor stands, as far as we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CursorPlace {
    Unknown,
    /// Column and row.
    At(u16, u16),
    /// In this row behind the last column: where each terminal likes, but in this row (`xenl`).
    Behind(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CellStyle {
    fg: Color,
    bg: Color,
    modifier: Modifier,
}

impl CellStyle {
    fn is(self, cell: &Cell) -> bool {
        self == Self { fg: cell.fg, bg: cell.bg, modifier: cell.modifier }
    }

    /// Whether an empty cell looks right with this style.
    fn bares(self, cell: &Cell) -> bool {
        self.bg == cell.bg && !self.modifier.intersects(SEEN) && !cell.modifier.intersects(SEEN)
    }
}

/// Modifiers that show where nothing is written.
const SEEN: Modifier =
    Modifier::UNDERLINED.union(Modifier::SLOW_BLINK).union(Modifier::REVERSED).union(Modifier::CROSSED_OUT);

const PLAIN: CellStyle = CellStyle { fg: Color::Reset, bg: Color::Reset, modifier: Modifier::empty() };

/// Modifiers that we write, with their SGR numbers.
const SGR: &[(Modifier, u8)] = &[
    (Modifier::BOLD, 1),
    (Modifier::DIM, 2),
    (Modifier::ITALIC, 3),
    (Modifier::UNDERLINED, 4),
    (Modifier::SLOW_BLINK, 5),
    (Modifier::REVERSED, 7),
    (Modifier::HIDDEN, 8),
    (Modifier::CROSSED_OUT, 9),
];

impl Default for Encoder {
    fn default() -> Self {
        Self {
            prev: Buffer::default(),
            repaint: true,
            at: CursorPlace::Unknown,
            look: PLAIN,
            shown: None,
            rest: None,
            saved: None,
            first: [None; 2],
            sync: None,
            sides: false,
            erases: false,
            text: 0..0,
        }
    }
}

impl Encoder {
    /// The next frame is drawn whole, on a cleared screen.
    pub fn repaint(&mut self) {
        self.repaint = true;
    }

    /// Bytes that turn the last frame into `next`, added to `out`. `drawn`: where it may differ. `cursor`: where it
    /// belongs; `None` hides it. Nothing is added when nothing differs.
    /// Anything that a terminal would act on goes out as `?`.
    pub fn frame(&mut self, next: &Buffer, drawn: &[Rect], cursor: Option<Position>, out: &mut String) {
        let start = out.len();
        if self.repaint || self.prev.area != next.area {
            self.repaint = true;
            self.prev = Buffer::empty(next.area);
            out.push_str("\x1b[0m\x1b[2J");
            self.look = PLAIN;
            self.at = CursorPlace::Unknown;
            self.shown = None;
            self.rest = None;
            self.saved = None;
        }
        self.first = [None, self.first[0]];
        let (area, mut prev) = (next.area, std::mem::take(&mut self.prev));
        let width = usize::from(area.width).max(1);
        let whole = [next.area];
        let drawn = if std::mem::take(&mut self.repaint) { &whole[..] } else { drawn };
        let mut changed = changes(&prev, next, drawn);
        // Typing changes a row or two: a search for moved rows never pays then.
        let inner = self.sides.then(|| usize::from(self.text.start)..usize::from(self.text.end));
        if changed.len() > 2
            && let Some(scroll) = scroll::find(&prev, next, inner)
        {
            // Rows that come in get the background that is set.
            self.ground(&Cell::EMPTY, out);
            scroll.write(area.width, out);
            scroll.apply(&mut prev);
            self.at = CursorPlace::Unknown;
            changed = changes(&prev, next, &whole);
        }
        for y in changed {
            let rows = y * width..(y + 1) * width;
            self.row(y as u16, &prev.content[rows.clone()], &next.content[rows.clone()], out);
            prev.content[rows.clone()].clone_from_slice(&next.content[rows]);
        }
        self.prev = prev;
        self.cursor(cursor, area, out);
        if out.len() - start >= SYNC_FROM && self.sync != Some(false) {
            out.insert_str(start, "\x1b[?2026h");
            out.push_str("\x1b[?2026l");
        }
    }

    /// What differs in a row.
    fn row(&mut self, y: u16, old: &[Cell], new: &[Cell], out: &mut String) {
        // Up to here the screen shows the rest of a wide character that was overwritten.
        let mut torn = 0;
        let mut x = 0;
        while x < new.len() {
            let cell = &new[x];
            let width = columns(cell).min(new.len() - x);
            if x >= torn && same(&old[x], cell) {
                x += width;
                continue;
            }
            let covered = x..x + width;
            torn = covered.map(|x| x + columns(&old[x])).max().unwrap_or(0).max(torn);
            self.fill(x as u16, y, new, out);
            let blanks = new[x..]
                .iter()
                .zip(&old[x..])
                .enumerate()
                .take_while(|(n, (c, o))| {
                    blank(c) && c.bg == cell.bg && (x + n < torn || columns(o) == 1 && !same(o, c))
                })
                .count();
            if blanks >= ERASE && (self.erases || cell.bg == Color::Reset) {
                self.go(x as u16, y, out);
                self.ground(cell, out);
                let _ = write!(out, "\x1b[{blanks}X");
                x += blanks;
            } else {
                self.cell(x as u16, y, cell, new.len(), out);
                x += width;
            }
        }
    }

    fn cell(&mut self, x: u16, y: u16, cell: &Cell, width: usize, out: &mut String) {
        self.go(x, y, out);
        if blank(cell) {
            self.ground(cell, out);
        } else {
            self.look(cell, out);
            self.first[0].get_or_insert(self.look);
        }
        let symbol = if safe(cell.symbol()) { cell.symbol() } else { "?" };
        // Some terminals clear one column only below an emoji that a selector makes wide.
        if symbol.contains('\u{fe0f}') && columns(cell) > 1 {
            out.push_str("  ");
            self.at = CursorPlace::Unknown;
            self.go(x, y, out);
        }
        out.push_str(symbol);
        self.at = match narrow(symbol) {
            true if usize::from(x) + 1 < width => CursorPlace::At(x + 1, y),
            true => CursorPlace::Behind(y),
            false => CursorPlace::Unknown,
        };
    }

    /// Moves to `x` by writing the few cells between again, if that is shorter than a cursor movement.
    fn fill(&mut self, x: u16, y: u16, row: &[Cell], out: &mut String) {
        let CursorPlace::At(cx, cy) = self.at else { return };
        if cy != y || x <= cx || x - cx > FILL {
            return;
        }
        let between = &row[usize::from(cx)..usize::from(x)];
        let ready = |c: &Cell| {
            let plain = c.symbol().len() == 1 && safe(c.symbol());
            plain && (self.look.is(c) || blank(c) && self.look.bares(c))
        };
        if between.iter().all(ready) {
            between.iter().for_each(|c| out.push_str(c.symbol()));
            self.at = CursorPlace::At(x, y);
        }
    }

    fn go(&mut self, x: u16, y: u16, out: &mut String) {
        match self.at {
            CursorPlace::At(cx, cy) if (cx, cy) == (x, y) => {}
            CursorPlace::At(cx, cy) if cy == y && x > cx => {
                let by = x - cx;
                let _ = if by == 1 { write!(out, "\x1b[C") } else { write!(out, "\x1b[{by}C") };
            }
            CursorPlace::At(_, row) | CursorPlace::Behind(row) if row + 1 == y && x <= NEAR => {
                out.push_str("\r\n");
                self.at = CursorPlace::At(0, y);
                return self.go(x, y, out);
            }
            _ => {
                let _ = write!(out, "\x1b[{};{}H", y + 1, x + 1);
            }
        }
        self.at = CursorPlace::At(x, y);
    }

    /// Sets the style for an empty cell: only its background matters.
    fn ground(&mut self, cell: &Cell, out: &mut String) {
        if !self.look.bares(cell) {
            let modifier = (self.look.modifier - SEEN) | (cell.modifier & SEEN);
            self.style(CellStyle { bg: cell.bg, modifier, fg: self.look.fg }, out);
        }
    }

    fn look(&mut self, cell: &Cell, out: &mut String) {
        self.style(CellStyle { fg: cell.fg, bg: cell.bg, modifier: cell.modifier }, out);
    }

    fn style(&mut self, want: CellStyle, out: &mut String) {
        if want == self.look {
            return;
        }
        out.push_str("\x1b[");
        let first = out.len();
        if !want.modifier.contains(self.look.modifier) {
            out.push_str("0;");
            self.look = PLAIN;
        }
        for (m, n) in SGR {
            if want.modifier.contains(*m) && !self.look.modifier.contains(*m) {
                let _ = write!(out, "{n};");
            }
        }
        if want.fg != self.look.fg {
            color(want.fg, 30, out);
        }
        if want.bg != self.look.bg {
            color(want.bg, 40, out);
        }
        if out.len() == first {
            out.push('0');
        } else {
            out.pop();
        }
        out.push('m');
        self.look = want;
    }

    /// Moves to the cursor's final position. While text streams in above, that is the same in each frame: from the
    /// second time on the terminal saves and restores it (DECSC, DECRC), which takes two bytes. The style that is saved
    /// with it is the one that the frame began with: the next frame most likely begins with the same text.
    fn back(&mut self, to: (u16, u16), out: &mut String) {
        let again = self.rest.replace(to) == Some(to);
        if !again {
            self.saved = None;
        }
        let there = CursorPlace::At(to.0, to.1);
        if self.at == there {
            return;
        }
        let style = self.first[0].unwrap_or(self.look);
        let save = match self.saved {
            Some(saved) => {
                out.push_str("\x1b8");
                self.at = there;
                self.look = saved;
                // Saved anew, once another text streams.
                saved != style && self.first[1] == Some(style)
            }
            None => {
                self.go(to.0, to.1, out);
                again
            }
        };
        if save {
            self.style(style, out);
            out.push_str("\x1b7");
            self.saved = Some(style);
        }
    }

    fn cursor(&mut self, cursor: Option<Position>, area: Rect, out: &mut String) {
        let cursor = cursor.filter(|p| area.contains(*p));
        if let Some(p) = cursor {
            self.back((p.x, p.y), out);
        }
        if self.shown != Some(cursor.is_some()) {
            out.push_str(if cursor.is_some() { "\x1b[?25h" } else { "\x1b[?25l" });
            self.shown = Some(cursor.is_some());
        }
    }
}

fn color(c: Color, base: u8, out: &mut String) {
    let _ = match c {
        Color::Reset => write!(out, "{};", base + 9),
        Color::Rgb(r, g, b) => write!(out, "{};2;{r};{g};{b};", base + 8),
        Color::Indexed(n) => write!(out, "{};5;{n};", base + 8),
        named => {
            let n = crate::theme::color::number(named);
            if n < 8 { write!(out, "{};", base + n) } else { write!(out, "{};", base + 60 + n - 8) }
        }
    };
}

/// The rows that differ, from the top. Looks only where something was drawn.
fn changes(old: &Buffer, new: &Buffer, drawn: &[Rect]) -> Vec<usize> {
    let width = usize::from(new.area.width);
    let mut rows = Vec::new();
    for r in drawn.iter().map(|r| r.intersection(new.area)) {
        rows.extend((usize::from(r.top())..usize::from(r.bottom())).filter(|y| {
            let cells = y * width + usize::from(r.left())..y * width + usize::from(r.right());
            !old.content[cells.clone()].iter().zip(&new.content[cells]).all(|(a, b)| same(a, b))
        }));
    }
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// The same on the screen. Most symbols are one byte.
fn same(a: &Cell, b: &Cell) -> bool {
    let symbols = match (a.symbol().as_bytes(), b.symbol().as_bytes()) {
        ([a], [b]) => a == b,
        (a, b) => a == b,
    };
    symbols && a.fg == b.fg && a.bg == b.bg && a.modifier == b.modifier
}

/// Columns that a cell covers.
fn columns(cell: &Cell) -> usize {
    let symbol = cell.symbol();
    if symbol.len() == 1 || !safe(symbol) { 1 } else { symbol.width().max(1) }
}

/// The cell is empty and shows only its background.
fn blank(cell: &Cell) -> bool {
    cell.symbol() == " " && !cell.modifier.intersects(SEEN)
}

/// One column wide in every terminal. They disagree on most that is not plain; the lines and blocks of
/// frames are ambiguous by the standard, but a terminal that draws them wide cannot show any screen.
fn narrow(symbol: &str) -> bool {
    symbol.len() == 1 || matches!(symbol.as_bytes(), [0xe2, 0x94 | 0x95, _] | [0xe2, 0x96, 0x80..=0x9f])
}

/// Nothing in the symbol is a control.
fn safe(symbol: &str) -> bool {
    match symbol.as_bytes() {
        [b] => (0x20..0x7f).contains(b),
        [] => false,
        _ => !symbol.chars().any(char::is_control),
    }
}

#[cfg(test)]
#[path = "output_tests.rs"]
pub(crate) mod tests;
