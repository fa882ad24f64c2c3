//! The signs of the screen: one table, with an ASCII form of the same width for each, one spinner and one gauge.

use std::time::Duration;

/// A sign of one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sign {
    unicode: &'static str,
    ascii: &'static str,
}

impl Sign {
    const fn new(unicode: &'static str, ascii: &'static str) -> Self {
        Self { unicode, ascii }
    }

    /// What is drawn. `ascii`: the terminal or the person wants nothing but ASCII.
    pub const fn text(self, ascii: bool) -> &'static str {
        if ascii { self.ascii } else { self.unicode }
    }
}

/// Done, passed.
pub const OK: Sign = Sign::new("✓", "v");
/// Failed, denied.
pub const FAILED: Sign = Sign::new("✗", "x");
/// Active, current, ready.
pub const FULL: Sign = Sign::new("●", "*");
/// Waiting for its turn, empty, off.
pub const EMPTY: Sign = Sign::new("○", "o");
/// Half way: paused, in part.
pub const HALF: Sign = Sign::new("◐", "-");
/// Needs the person.
pub const ATTENTION: Sign = Sign::new("▲", "!");
/// Folded; also the cursor of a list.
pub const CLOSED: Sign = Sign::new("▸", ">");
/// Unfolded.
pub const OPEN: Sign = Sign::new("▾", "v");
/// Belongs to the line above.
pub const CHILD: Sign = Sign::new("↳", "`");
/// A long line goes on here.
pub const WRAPPED: Sign = Sign::new("↪", "\\");
/// Between words of one line.
pub const DOT: Sign = Sign::new("·", "-");
/// The bar at the left of messages, questions and the composer.
pub const BAR: Sign = Sign::new("▌", "|");
/// The bar at the left of the selected row of a list.
pub const SELECTED: Sign = Sign::new("▌", ">");
/// A thin bar: quotes, output of a call.
pub const QUOTE: Sign = Sign::new("▏", "|");
/// Before a count of removed lines.
pub const MINUS: Sign = Sign::new("−", "-");
/// Up: sent to the model.
pub const UP: Sign = Sign::new("↑", "^");
/// Down: received from the model; more below.
pub const DOWN: Sign = Sign::new("↓", "v");
/// Lines of a file that a diff leaves out.
pub const LEFT_OUT: Sign = Sign::new("⋯", ":");
/// Between the first and the last number of a range.
pub const RANGE: Sign = Sign::new("–", "-");
/// A part of a horizontal line.
pub const RULE: Sign = Sign::new("─", "-");
/// A part of a vertical line.
pub const COLUMN: Sign = Sign::new("│", "|");
/// A checkpoint: the files of a moment, kept.
pub const SAVED: Sign = Sign::new("▰", "#");
/// A filled cell of a gauge.
const FILLED: Sign = Sign::new("▰", "#");
/// An empty cell of a gauge.
const FREE: Sign = Sign::new("▱", ".");

/// Every sign, for tests and documentation.
pub const ALL: &[Sign] = &[
    OK, FAILED, FULL, EMPTY, HALF, ATTENTION, CLOSED, OPEN, CHILD, WRAPPED, DOT, BAR, SELECTED, QUOTE, MINUS,
    UP, DOWN, LEFT_OUT, RANGE, RULE, COLUMN, SAVED, FILLED, FREE,
];

/// The mark of a text that was cut: one column, two in ASCII.
pub const fn cut(ascii: bool) -> &'static str {
    if ascii { ".." } else { "…" }
}

/// The parts of boxes and of the lines of a tree.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    pub h: &'static str,
    pub v: &'static str,
    /// Top left, top right, bottom left, bottom right.
    pub corners: [&'static str; 4],
    /// Tees: open to right, left, down, up; and the cross.
    pub tees: [&'static str; 5],
}

/// The parts of boxes and trees in Unicode or ASCII.
pub const fn lines(ascii: bool) -> Lines {
    let (corners, tees) = if ascii {
        (["+"; 4], ["+"; 5])
    } else {
        (["┌", "┐", "└", "┘"], ["├", "┤", "┬", "┴", "┼"])
    };
    Lines { h: RULE.text(ascii), v: COLUMN.text(ascii), corners, tees }
}

/// How long one frame of the spinner stays.
pub const SPINNER_FRAME: Duration = Duration::from_millis(125);

/// The spinner's cell, so long after it began.
pub fn spinner(since: Duration, ascii: bool) -> &'static str {
    const BRAILLE: [&str; 8] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧"];
    const LETTERS: [&str; 4] = ["|", "/", "-", "\\"];
    let frames: &[&str] = if ascii { &LETTERS } else { &BRAILLE };
    let frame = since.as_millis() / SPINNER_FRAME.as_millis();
    frames[(frame % frames.len() as u128) as usize]
}

/// A gauge of `cells` columns. Something used is at least one cell, and only what is used up fills the last one.
pub fn gauge(used: u64, limit: u64, cells: usize, ascii: bool) -> String {
    let exact = if limit == 0 { 0 } else { u128::from(used.min(limit)) * cells as u128 / u128::from(limit) };
    let mut filled = exact as usize;
    if used > 0 && limit > 0 {
        filled = filled.max(1);
    }
    let filled = filled.min(cells);
    FILLED.text(ascii).repeat(filled) + &FREE.text(ascii).repeat(cells - filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::width;

    #[test]
    fn every_sign_is_one_column_and_has_an_ascii_form() {
        for s in ALL {
            assert_eq!((width(s.unicode), width(s.ascii)), (1, 1), "{s:?}");
            assert!(s.ascii.is_ascii() && !s.unicode.is_ascii(), "{s:?}");
        }
    }

    #[test]
    fn the_spinner_turns_eight_times_a_second() {
        let at = |ms| spinner(Duration::from_millis(ms), false);
        assert_eq!(at(0), at(124));
        assert_ne!(at(0), at(125));
        assert_eq!(at(0), at(1000), "eight frames");
        for ms in (0..2000).step_by(125) {
            let c = spinner(Duration::from_millis(ms), true);
            assert!(c.is_ascii() && width(c) == 1);
            assert_eq!(width(at(ms)), 1);
        }
    }

    #[test]
    fn a_gauge_says_something_and_everything() {
        assert_eq!(gauge(0, 100, 5, false), "▱▱▱▱▱");
        assert_eq!(gauge(1, 100, 5, false), "▰▱▱▱▱");
        assert_eq!(gauge(99, 100, 5, false), "▰▰▰▰▱");
        assert_eq!(gauge(100, 100, 5, false), "▰▰▰▰▰");
        assert_eq!(gauge(900, 100, 5, true), "#####");
        assert_eq!(gauge(u64::MAX, u64::MAX, 3, true), "###");
        assert_eq!(gauge(3, 0, 3, true), "...");
    }
}
