//! Rows that only moved: the terminal moves them itself, which is a dozen bytes instead of two thousand.
//!
//! Scrolling regions reach over the whole width, so what stands beside the moved text moves along and is
//! drawn again by the diff that follows; a terminal that knows margins at the sides moves the text alone. Whether
//! that pays is counted in bytes, not assumed. What is wrong here costs bytes only: the diff is exact whatever was
//! moved.

use std::fmt::Write as _;
use std::ops::Range;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::Color;

use super::pen::blank;

/// Bytes that must be saved: moving costs about as many.
const GAIN: isize = 40;

/// How many rows text may have moved from one frame to the next.
const FAR: usize = 12;

/// Cells of a row that are compared as one.
const CHUNK: usize = 8;

/// Bytes for going to a place, shared among the chunks of a row.
const PLACE: isize = 2;

/// Bytes for another colour within a chunk: one of sixteen, or any.
const NAMED: isize = 5;
const COLOR: isize = 16;

/// Bytes for margins at the sides.
const SIDES: isize = 24;

/// Rows `top` up to and without `bottom` move by `by` rows; up when positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowMove {
    top: usize,
    bottom: usize,
    by: isize,
    /// Only these columns.
    columns: Range<usize>,
}

/// Some cells of a row.
#[derive(Clone, Copy)]
struct Chunk {
    /// Equal for equal cells, and hardly ever for others.
    key: u64,
    /// About what it costs to draw.
    bytes: isize,
}

/// The move after which the least is left to draw, if one saves enough. `inner`: columns that the terminal can move
/// alone.
pub(super) fn find(prev: &Buffer, next: &Buffer, inner: Option<Range<usize>>) -> Option<RowMove> {
    let (width, height) = (usize::from(next.area.width), usize::from(next.area.height));
    if width == 0 || prev.area != next.area || prev.content.len() != width * height {
        return None;
    }
    let inner = inner.filter(|c| c.len() > 1 && c.len() < width && c.end <= width);
    let whole = best(prev, next, 0..width);
    let alone = inner.and_then(|c| best(prev, next, c)).map(|(gain, s)| (gain - SIDES, s));
    let (gain, scroll) = whole.into_iter().chain(alone).max_by_key(|(gain, _)| *gain)?;
    (gain >= GAIN).then_some(scroll)
}

/// The best move of these columns, and the bytes that it saves.
fn best(prev: &Buffer, next: &Buffer, columns: Range<usize>) -> Option<(isize, RowMove)> {
    let (width, height) = (usize::from(next.area.width), usize::from(next.area.height));
    let (old, new) = (chunks(prev, width, &columns), chunks(next, width, &columns));
    let many = columns.len().div_ceil(CHUNK);
    let row = |y: usize| y * many..(y + 1) * many;
    // What drawing row `y` costs when row `from` of the last frame stands there.
    let cost = |from: usize, y: usize| -> isize {
        let pairs = old[row(from)].iter().zip(&new[row(y)]);
        pairs.filter(|(a, b)| a.key != b.key).map(|(_, b)| b.bytes).sum()
    };
    let blank = chunk(&[const { Cell::EMPTY }; CHUNK]).key;
    let rows: Vec<isize> = (0..height).map(|y| cost(y, y)).collect();
    let fresh: Vec<isize> =
        (0..height).map(|y| new[row(y)].iter().filter(|c| c.key != blank).map(|c| c.bytes).sum()).collect();
    let mut best: Option<(isize, RowMove)> = None;
    for by in (1..=FAR.min(height.saturating_sub(1))).flat_map(|n| [signed(n), -signed(n)]) {
        let far = by.unsigned_abs();
        // Rows whose old text is inside the screen.
        let (from, to) = if by > 0 { (0, height - far) } else { (far, height) };
        let saved = |y: usize| rows[y] - cost(y.saturating_add_signed(by), y);
        let Some((sum, first, last)) = densest(from, to, saved) else { continue };
        // The rows that come in are blank at first, whatever they were.
        let (top, bottom) = if by > 0 { (first, last + 1 + far) } else { (first - far, last + 1) };
        let lost: isize =
            (if by > 0 { last + 1..bottom } else { top..first }).map(|y| fresh[y] - rows[y]).sum();
        let gain = sum - lost;
        if best.as_ref().is_none_or(|(g, _)| gain > *g) {
            best = Some((gain, RowMove { top, bottom, by, columns: columns.clone() }));
        }
    }
    best
}

fn chunks(buf: &Buffer, width: usize, columns: &Range<usize>) -> Vec<Chunk> {
    buf.content.chunks(width).flat_map(|row| row[columns.clone()].chunks(CHUNK)).map(chunk).collect()
}

fn chunk(cells: &[Cell]) -> Chunk {
    // Multiply and rotate, as in FxHash.
    const BY: u64 = 0x517c_c1b7_2722_0a95;
    let mut key = cells.len() as u64;
    let mut mix = |word: u64| key = (key.rotate_left(5) ^ word).wrapping_mul(BY);
    let mut bytes = PLACE;
    let mut before: Option<&Cell> = None;
    for cell in cells {
        let empty = blank(cell);
        // Of an empty cell only the background is seen.
        let look = if empty { 0 } else { u64::from(number(cell.fg)) << 34 };
        let modifier = if empty { 0 } else { u64::from(cell.modifier.bits()).rotate_right(14) };
        let look = look ^ u64::from(number(cell.bg)) << 8 ^ modifier;
        match cell.symbol().as_bytes() {
            [b] => {
                mix(look ^ u64::from(*b));
                bytes += isize::from(!empty);
            }
            symbol => {
                mix(look);
                symbol.chunks(8).for_each(|part| mix(part.iter().fold(0, |all, b| all << 8 | u64::from(*b))));
                bytes += signed(symbol.len());
            }
        }
        if !empty {
            if before.is_some_and(|b| (b.fg, b.bg, b.modifier) != (cell.fg, cell.bg, cell.modifier)) {
                bytes += if matches!(cell.fg, Color::Rgb(..)) { COLOR } else { NAMED };
            }
            before = Some(cell);
        }
    }
    Chunk { key, bytes }
}

fn number(c: Color) -> u32 {
    match c {
        Color::Reset => 0,
        Color::Rgb(r, g, b) => 1 << 24 | u32::from_be_bytes([0, r, g, b]),
        Color::Indexed(n) => 2 << 24 | u32::from(n),
        named => 3 << 24 | u32::from(crate::theme::color::number(named)),
    }
}

/// The run of rows with the greatest sum: the sum, its first and its last row.
fn densest(from: usize, to: usize, value: impl Fn(usize) -> isize) -> Option<(isize, usize, usize)> {
    let mut best: Option<(isize, usize, usize)> = None;
    let (mut sum, mut first) = (0, from);
    for y in from..to {
        if sum <= 0 {
            (sum, first) = (0, y);
        }
        sum += value(y);
        if sum > 0 && best.is_none_or(|(b, ..)| sum > b) {
            best = Some((sum, first, y));
        }
    }
    best
}

fn signed(n: usize) -> isize {
    isize::try_from(n).unwrap_or(isize::MAX)
}

impl RowMove {
    /// The bytes. Deleting and inserting lines within margins is older than scrolling sequences, works
    /// everywhere, and never puts a line into the terminal's own history. The cursor's place is lost. Margins at the
    /// sides hold for this move only, so that the next writer finds a terminal without any.
    pub(super) fn write(&self, width: u16, out: &mut String) {
        let (n, how) = (self.by.unsigned_abs(), if self.by > 0 { 'M' } else { 'L' });
        let (top, bottom) = (self.top + 1, self.bottom);
        let (left, right) = (self.columns.start + 1, self.columns.end);
        let _ = if self.columns.len() == usize::from(width) {
            write!(out, "\x1b[{top};{bottom}r\x1b[{top}H\x1b[{n}{how}\x1b[r")
        } else {
            let sides = format_args!("\x1b[?69h\x1b[{left};{right}s");
            write!(out, "{sides}\x1b[{top};{bottom}r\x1b[{top};{left}H\x1b[{n}{how}\x1b[r\x1b[?69l")
        };
    }

    /// Does to the last frame what the terminal did to the screen.
    pub(super) fn apply(&self, prev: &mut Buffer) {
        let width = usize::from(prev.area.width);
        let mut moved = |y: usize| {
            let from = y.checked_add_signed(self.by).filter(|from| (self.top..self.bottom).contains(from));
            for x in self.columns.clone() {
                prev.content[y * width + x] = from
                    .map_or_else(Cell::default, |from| std::mem::take(&mut prev.content[from * width + x]));
            }
        };
        // Each row is read before it is overwritten.
        if self.by > 0 {
            (self.top..self.bottom).for_each(&mut moved);
        } else {
            (self.top..self.bottom).rev().for_each(&mut moved);
        }
    }
}

#[cfg(test)]
#[path = "scroll_tests.rs"]
mod tests;
