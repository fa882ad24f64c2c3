//! Text and styles on cells, and cutting with a mark.

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::text::clean;

pub use tiller_text::sign::lines;

thread_local! {
    /// True when marks are ASCII. It is a thread-local, because text is cut far below the owner of the settings, and one
    /// thread draws.
    static ASCII: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Set before each frame.
pub(crate) fn set_ascii(ascii: bool) {
    ASCII.set(ascii);
}

/// True when marks are ASCII in the frame that is being drawn.
pub(crate) fn ascii() -> bool {
    ASCII.get()
}

/// That rows follow below, and how many.
pub(crate) fn below(rows: usize) -> String {
    format!("{} {rows} more {}", sign(tiller_text::sign::DOWN), if rows == 1 { "row" } else { "rows" })
}

/// A sign in the frame that is being drawn.
pub(crate) fn sign(sign: tiller_text::sign::Sign) -> &'static str {
    sign.text(ascii())
}

/// Writes `text` into `area`'s first row, cleaned, and cut with a mark when it is too long. Returns the
/// columns used.
pub fn text(buf: &mut Buffer, area: Rect, text: &str, style: Style) -> u16 {
    if area.width == 0 || area.height == 0 {
        return 0;
    }
    let shown = cut(text, usize::from(area.width));
    let width = shown.width() as u16;
    buf.set_stringn(area.x, area.y, &shown, usize::from(area.width), style);
    width
}

/// Returns what stands where a text was cut.
pub fn ellipsis() -> &'static str {
    crate::text::shorten::ellipsis(ascii())
}

/// `text` in at most `width` columns, with `…` where something was cut, and without control characters.
pub fn cut(text: &str, width: usize) -> String {
    let clean = clean(text);
    if clean.width() <= width {
        return clean;
    }
    let mark = ellipsis();
    let need = mark.width().min(width);
    let mut out = String::new();
    let mut used = 0;
    for g in clean.graphemes(true) {
        let w = g.width();
        if used + w + need > width {
            break;
        }
        out.push_str(g);
        used += w;
    }
    out.extend(mark.chars().take(need));
    out
}

/// A path in at most `width` columns, shortened in the middle.
pub fn cut_middle(text: &str, width: usize) -> String {
    crate::text::shorten_middle(&clean(text), width, ascii())
}

/// One line without anything that a terminal would act on: see [`crate::text::clean`].
pub fn clean(text: &str) -> String {
    if clean::is_plain(text) {
        return text.to_owned();
    }
    clean::plain(&text.replace(['\t', '\n', '\r'], " ")).into_owned()
}

/// Blanks `area` in `style`.
pub fn clear(buf: &mut Buffer, area: Rect, style: Style) {
    let area = area.intersection(buf.area);
    if area == buf.area {
        let mut blank = Cell::EMPTY;
        blank.set_style(style);
        buf.content.fill(blank);
        return;
    }
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            if let Some(c) = buf.cell_mut((x, y)) {
                c.reset();
                c.set_style(style);
            }
        }
    }
}

/// One symbol, if it is on the screen: a sign, a bar, a piece of a line. None is underlined: that belongs to words.
pub fn put(buf: &mut Buffer, x: u16, y: u16, symbol: &str, style: Style) {
    if let Some(c) = buf.cell_mut((x, y)) {
        c.set_symbol(symbol).set_style(style.remove_modifier(Modifier::UNDERLINED));
    }
}

/// Puts a style over an area without touching the text. Where the style reverses, the text loses its colours and is not
/// dimmed: both would show as spots in the ground, or could not be read on it.
pub fn paint(buf: &mut Buffer, area: Rect, style: Style) {
    let area = area.intersection(buf.area);
    if style.add_modifier.contains(Modifier::REVERSED) {
        let plain = Style::new().fg(Color::Reset).bg(Color::Reset).remove_modifier(Modifier::DIM);
        buf.set_style(area, plain);
    }
    buf.set_style(area, style);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reversed_area_has_one_pair_of_colours() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 4, 1));
        text(&mut buf, Rect::new(0, 0, 2, 1), "ab", Style::new().fg(Color::Blue).add_modifier(Modifier::DIM));
        let area = buf.area;
        paint(&mut buf, area, Style::new().add_modifier(Modifier::REVERSED));
        for cell in &buf.content {
            assert_eq!((cell.fg, cell.bg, cell.modifier), (Color::Reset, Color::Reset, Modifier::REVERSED));
        }
        paint(&mut buf, area, Style::new().bg(Color::Green));
        assert_eq!(buf.content[0].bg, Color::Green);
    }

    #[test]
    fn cutting_leaves_a_mark_and_never_a_control() {
        assert_eq!(cut("hello world", 6), "hello…");
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut("a\u{1b}[2J", 20), "a\\x1b[2J");
        assert_eq!(cut("one\ntwo", 20), "one two");
        assert_eq!(cut("x", 0), "");
    }
}
