//! Frames to bytes: only what differs from the frame before, in as few bytes as is simple. Nothing
//! foreign gets through: every symbol is checked once more here.

pub(crate) mod graphics;
mod pen;
mod scroll;
mod sixel;
mod span;
#[cfg(test)]
mod stream_tests;
pub mod writer;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Position, Rect};

use pen::{CellStyle, CursorPlace, Pen};
use span::{Spans, same};

/// Frames shorter than this are drawn by a terminal in one go anyway.
const SYNC_FROM: usize = 256;

/// Restoring the cursor also restores the style that was saved with it. From so many bytes on that it takes to set the
/// present style again, the cursor is moved instead.
const FAR: usize = 24;

/// The last frame that went out, and the state in which the terminal is.
pub struct Encoder {
    prev: Buffer,
    /// The next frame must not trust what is on the screen.
    repaint: bool,
    pen: Pen,
    shown: Option<bool>,
    /// Where the last frame left the cursor.
    rest: Option<(u16, u16)>,
    /// The style with which the last frame ended.
    last: Option<CellStyle>,
    /// The terminal knows synchronised output (mode 2026); `None`: it has not said.
    pub sync: Option<bool>,
    /// The terminal supports left and right margins (mode 69).
    pub sides: bool,
    /// The terminal erases to the background that is set (`bce` of terminfo).
    pub erases: bool,
    /// Columns of the conversation's text, if panels stand beside it.
    pub text: std::ops::Range<u16>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            prev: Buffer::default(),
            repaint: true,
            pen: Pen::new(),
            shown: None,
            rest: None,
            last: None,
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

    /// True when the next frame is drawn whole.
    pub(crate) fn repaints(&self) -> bool {
        self.repaint
    }

    /// A picture of [`graphics::encode`] over the cells from this one on, after a frame. The terminal may leave cursor and
    /// style anywhere.
    pub(crate) fn graphics(&mut self, x: u16, y: u16, bytes: &str, out: &mut String) {
        use std::fmt::Write as _;
        let _ = write!(out, "\x1b[{};{}H{bytes}\x1b[0m", y + 1, x + 1);
        self.pen = Pen::new();
        (self.rest, self.last) = (None, None);
    }

    /// Bytes that turn the last frame into `next`, added to `out`. `drawn`: where it may differ. `cursor`: where it
    /// belongs; `None` hides it. Nothing is added when nothing differs.
    /// Anything that a terminal would act on goes out as `?`.
    pub fn frame(&mut self, next: &Buffer, drawn: &[Rect], cursor: Option<Position>, out: &mut String) {
        let start = out.len();
        let whole = [next.area];
        let mut drawn = drawn;
        if std::mem::take(&mut self.repaint) || self.prev.area != next.area {
            self.prev = Buffer::empty(next.area);
            self.pen = Pen::new();
            (self.shown, self.rest, self.last) = (None, None, None);
            out.push_str("\x1b[0m\x1b[2J");
            drawn = &whole;
        }
        self.text(next, drawn, out);
        self.cursor(cursor, next.area, out);
        if out.len() - start >= SYNC_FROM && self.sync != Some(false) {
            out.insert_str(start, "\x1b[?2026h");
            out.push_str("\x1b[?2026l");
        }
    }

    /// Everything but the cursor.
    fn text(&mut self, next: &Buffer, drawn: &[Rect], out: &mut String) {
        let start = out.len();
        let before = self.pen;
        let mut changed = changes(&self.prev, next, drawn);
        Spans::find(&self.prev, next, &changed, self.erases).write(next, &mut self.pen, out);
        // Typing changes a row or two: a search for moved rows never pays then.
        let inner = self.sides.then(|| usize::from(self.text.start)..usize::from(self.text.end));
        if changed.len() > 2
            && let Some(scroll) = scroll::find(&self.prev, next, inner)
        {
            let written = out.len() - start;
            let mut pen = before;
            // Rows that come in get the background that is set.
            pen.ground(&Cell::EMPTY, out);
            scroll.write(next.area.width, out);
            pen.at = CursorPlace::Unknown;
            scroll.apply(&mut self.prev);
            let rows = changes(&self.prev, next, &[next.area]);
            Spans::find(&self.prev, next, &rows, self.erases).write(next, &mut pen, out);
            // Both stand there: the shorter one stays.
            if out.len() - start - written < written {
                out.replace_range(start..start + written, "");
                self.pen = pen;
            } else {
                out.truncate(start + written);
            }
            changed = rows;
        }
        let width = usize::from(next.area.width);
        for y in changed {
            let row = y * width..(y + 1) * width;
            self.prev.content[row.clone()].clone_from_slice(&next.content[row]);
        }
    }

    /// Moves to the cursor's final position. While text streams in above, that is the same in each frame: the terminal
    /// saves and restores it (DECSC, DECRC), which takes two bytes. The style is saved and restored with it, so the one
    /// of the text that streams is saved: the next frame most likely goes on with it.
    fn back(&mut self, to: (u16, u16), out: &mut String) {
        let again = self.rest.replace(to) == Some(to);
        if !again {
            self.pen.saved = None;
        }
        if self.pen.at == CursorPlace::At(to.0, to.1) {
            return;
        }
        let style = self.pen.style;
        let stays = self.last.replace(style) == Some(style);
        let way = self.pen.way(to.0, to.1);
        match self.pen.saved {
            Some(saved) if saved.style == style => self.pen.restore(out),
            Some(saved) if !stays && 2 < way => {
                let change = Pen { style: saved.style, ..self.pen }.change(style);
                if change < FAR {
                    self.pen.restore(out);
                } else {
                    self.pen.go(to.0, to.1, out);
                }
            }
            _ => {
                self.pen.go(to.0, to.1, out);
                if again {
                    self.pen.save(out);
                }
            }
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

#[cfg(test)]
#[path = "output_tests.rs"]
pub(crate) mod tests;
