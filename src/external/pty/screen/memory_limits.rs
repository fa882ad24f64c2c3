//! Bounds the emulator's memory. The parser stores a control string up to its end, and a cell stores every combining
//! mark; both are unbounded by themselves.

use std::borrow::Cow;

use alacritty_terminal::Term;
use alacritty_terminal::event::EventListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::Cell;

/// Maximum bytes of one control string; the rest is dropped.
const STRING: usize = 64 << 10;
/// Maximum number of combining marks on one character.
const MARKS: usize = 16;
/// Bytes that are parsed between two checks of the marks.
pub(super) const PIECE: usize = 8 << 10;

/// Position relative to a control string.
#[derive(Debug, Default)]
pub(super) enum ControlStrings {
    #[default]
    Text,
    Escape,
    /// Within one, after this many bytes.
    Inside(usize),
}

impl ControlStrings {
    /// The bytes to parse: `bytes` without the excess of control strings.
    pub(super) fn short<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if matches!(self, Self::Text) && !bytes.contains(&0x1b) {
            return Cow::Borrowed(bytes);
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some((first, after)) = rest.split_first() {
            let mut keep = true;
            match (&mut *self, first) {
                (Self::Text, _) => {
                    let n = rest.iter().position(|b| *b == 0x1b).unwrap_or(rest.len());
                    out.extend_from_slice(&rest[..n]);
                    rest = &rest[n..];
                    *self = if rest.is_empty() { Self::Text } else { Self::Escape };
                    out.extend(rest.first());
                    rest = rest.get(1..).unwrap_or_default();
                    continue;
                }
                (Self::Escape, b']') => *self = Self::Inside(0),
                // An escape ends the other sequence.
                (Self::Escape | Self::Inside(_), 0x1b) => *self = Self::Escape,
                (Self::Escape, _) | (Self::Inside(_), 0x07 | 0x18 | 0x1a) => *self = Self::Text,
                (Self::Inside(n), _) => {
                    keep = *n < STRING;
                    *n = n.saturating_add(1);
                }
            }
            if keep {
                out.push(*first);
            }
            rest = after;
        }
        Cow::Owned(out)
    }
}

/// Removes excess marks from characters.
pub(super) fn marks<T: EventListener>(term: &mut Term<T>) {
    let (lines, columns) = (term.screen_lines(), term.columns());
    for line in (0..lines).map(|l| Line(i32::try_from(l).unwrap_or(0))) {
        for column in (0..columns).map(Column) {
            let over = |cell: &Cell| cell.zerowidth().is_some_and(|z| z.len() > MARKS);
            if over(&term.grid()[line][column]) {
                thin(&mut term.grid_mut()[line][column]);
            }
        }
    }
}

fn thin(cell: &mut Cell) {
    let kept: Vec<char> = cell.zerowidth().into_iter().flatten().take(MARKS).copied().collect();
    let (color, link) = (cell.underline_color(), cell.hyperlink());
    cell.extra = None;
    cell.set_underline_color(color);
    cell.set_hyperlink(link);
    kept.into_iter().for_each(|c| cell.push_zerowidth(c));
}

#[cfg(test)]
mod tests {
    use super::super::emulator::Emulator;
    use super::*;

    #[test]
    fn a_string_without_end_is_cut_and_what_follows_is_whole() {
        let mut strings = ControlStrings::default();
        let mut passed = Vec::new();
        let endless = [b"text \x1b]0;".as_slice(), &vec![b'x'; 3 * STRING]].concat();
        for piece in endless.chunks(1000).chain([&b"xx\x07after\x1b[1m\x1b]0;short\x1b\\"[..]]) {
            passed.extend_from_slice(&strings.short(piece));
        }
        assert!(passed.len() < STRING + 100, "{}", passed.len());
        assert!(passed.ends_with(b"x\x07after\x1b[1m\x1b]0;short\x1b\\"), "its end and all that follows");
        for text in [&b"plain"[..], b"\x1b[31mred\x1b[0m", b"\x1b\x1b]8;;u\x1b\\l", "é\u{9d}x".as_bytes()] {
            assert_eq!(&*ControlStrings::default().short(text), text);
        }
    }

    #[test]
    fn a_character_has_so_many_marks_and_no_more() {
        let mut e = Emulator::new(20, 5);
        e.feed("e\u{301}\r\na".as_bytes());
        for _ in 0..100 {
            e.feed("\u{301}".repeat(1000).as_bytes());
        }
        e.feed(b"b\r\n");
        let lines = e.lines(10);
        assert_eq!(lines[0], "e\u{301}");
        assert_eq!(lines[1].chars().count(), 2 + MARKS);
        assert!(lines[1].ends_with('b'));
    }
}
