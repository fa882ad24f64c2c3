//! Rows into cells.

use ratatui::buffer::{Buffer, CellDiffOption};
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::text::highlight;
use crate::text::line::{Line, Look};
use crate::text::sheet::Sheet;
use crate::text::width::{grapheme, width};
use crate::text::wrap::Row;
use crate::theme::{Role, Theme};

/// A style over bytes `start..end` of a line: a search hit, the selection.
#[derive(Clone, Copy, Debug)]
pub struct StyleRange {
    pub start: u32,
    pub end: u32,
    pub style: Style,
}

/// Position and width of a row to paint.
#[derive(Clone, Copy, Debug)]
pub struct PaintTarget {
    pub x: u16,
    pub y: u16,
    /// Columns; nothing is painted beyond.
    pub columns: u16,
}

/// Paints the rows of a sheet that fit into `area`. Returns how many.
pub fn sheet(buf: &mut Buffer, area: Rect, sheet: &Sheet, theme: &Theme) -> u16 {
    let mut used = 0;
    for (part, y) in sheet.rows.iter().zip(area.top()..area.bottom()) {
        let Some(line) = sheet.lines.get(part.line as usize) else { continue };
        row(buf, PaintTarget { x: area.x, y, columns: area.width }, line, *part, theme, &[]);
        used += 1;
    }
    used
}

/// Paints one row of `line`, gutter and all. Returns the columns used.
pub fn row(
    buf: &mut Buffer,
    place: PaintTarget,
    line: &Line,
    row: Row,
    theme: &Theme,
    over: &[StyleRange],
) -> u16 {
    let gutter = if row.is_first() { &line.first } else { &line.rest };
    if let Some(band) = line.band {
        let whole = Rect { x: place.x, y: place.y, width: place.columns, height: 1 };
        buf.set_style(whole.intersection(*buf.area()), theme.style(band));
    }
    let mut pen = Painter { buf, x: place.x, end: place.x.saturating_add(place.columns), y: place.y };
    match gutter.then {
        Some((from, look)) if gutter.text.is_char_boundary(from as usize) => {
            pen.text(&gutter.text[..from as usize], resolve(gutter.look, theme));
            pen.text(&gutter.text[from as usize..], resolve(look, theme));
        }
        _ => pen.text(&gutter.text, resolve(gutter.look, theme)),
    }
    let (start, stop) = (row.start as usize, row.end as usize);
    let mut at = start;
    for run in line.runs() {
        let end = (run.end as usize).min(stop);
        if end <= at {
            continue;
        }
        let style = resolve(run.look, theme);
        if over.is_empty() {
            pen.text(&line.text()[at..end], style);
        } else {
            pen.text_over(&line.text()[at..end], at as u32, style, over);
        }
        at = end;
        if at >= stop {
            break;
        }
    }
    let used = pen.x - place.x;
    if let Some(right) = line.right.as_deref().filter(|_| row.is_first()) {
        let columns = width(&right.text) as u16;
        if used + columns < place.columns {
            let x = place.x + place.columns - columns;
            text(buf, PaintTarget { x, columns, ..place }, &right.text, resolve(right.look, theme));
        }
    }
    used
}

/// Paints clean text of one style. Returns the columns used.
pub fn text(buf: &mut Buffer, place: PaintTarget, text: &str, style: Style) -> u16 {
    let mut pen = Painter { buf, x: place.x, end: place.x.saturating_add(place.columns), y: place.y };
    pen.text(text, style);
    pen.x - place.x
}

/// The theme's style for a look, syntax colours included. Changed words of a diff are drawn in their own colour: on their
/// background not every colour of code could be read.
pub fn resolve(look: Look, theme: &Theme) -> Style {
    let words = [Some(Role::AddedWord), Some(Role::RemovedWord)].contains(&look.ground);
    if words && look.role != Role::Hostile {
        return look.ground.map_or_else(Style::new, |ground| theme.look(look.role(ground)));
    }
    let mut style = theme.look(look);
    if look.class != 0 {
        style = style.patch(highlight::style(look.class, theme));
    }
    look.ground.map_or(style, |ground| theme.on(ground, style))
}

/// Column of byte `byte` of `line` within `row`, its gutter included.
pub fn column_of(line: &Line, row: Row, byte: u32) -> usize {
    let gutter = if row.is_first() { &line.first } else { &line.rest };
    let end = byte.clamp(row.start, row.end) as usize;
    width(&gutter.text) + width(&line.text()[row.start as usize..end])
}

/// Byte of `line` under column `column` of `row`: the start of that grapheme, or the row's end.
pub fn byte_at(line: &Line, row: Row, column: usize) -> u32 {
    let gutter = if row.is_first() { &line.first } else { &line.rest };
    let mut x = width(&gutter.text);
    for (at, g) in line.text()[row.start as usize..row.end as usize].grapheme_indices(true) {
        x += grapheme(g);
        if column < x {
            return row.start + at as u32;
        }
    }
    row.end
}

#[cfg(test)]
thread_local! {
    /// Texts that found no room and were cut without a mark, for the test of all scenes.
    pub(crate) static CLIPPED: std::cell::RefCell<Vec<String>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Notes, in tests, that the rest of a text is not painted.
fn clipped(text: &str, from: usize) {
    #[cfg(test)]
    if !text[from..].trim().is_empty() {
        CLIPPED.with_borrow_mut(|all| all.push(text.to_owned()));
    }
    let _ = (text, from);
}

struct Painter<'a> {
    buf: &'a mut Buffer,
    x: u16,
    end: u16,
    y: u16,
}

impl Painter<'_> {
    /// Underlines end where the words end, not where the padding does.
    fn text(&mut self, text: &str, style: Style) {
        let words = text.trim_matches(' ');
        if words.len() == text.len() || !style.add_modifier.contains(Modifier::UNDERLINED) {
            return self.graphemes(text, style);
        }
        let start = text.len() - text.trim_start_matches(' ').len();
        let blank = style.remove_modifier(Modifier::UNDERLINED);
        self.graphemes(&text[..start], blank);
        self.graphemes(words, style);
        self.graphemes(&text[start + words.len()..], blank);
    }

    fn graphemes(&mut self, text: &str, style: Style) {
        if text.is_ascii() {
            let mut utf8 = [0; 4];
            for (at, b) in text.bytes().enumerate() {
                if !self.put(char::from(b).encode_utf8(&mut utf8), 1, style) {
                    return clipped(text, at);
                }
            }
            return;
        }
        for (at, g) in text.grapheme_indices(true) {
            if !self.put(g, grapheme(g), style) {
                return clipped(text, at);
            }
        }
    }

    fn text_over(&mut self, text: &str, offset: u32, style: Style, over: &[StyleRange]) {
        for (at, g) in text.grapheme_indices(true) {
            let byte = offset + at as u32;
            let style =
                over.iter().filter(|o| (o.start..o.end).contains(&byte)).fold(style, |s, o| s.patch(o.style));
            if !self.put(g, grapheme(g), style) {
                return clipped(text, at);
            }
        }
    }

    /// Puts one grapheme; `false` when there is no more room.
    fn put(&mut self, g: &str, cells: usize, style: Style) -> bool {
        let cells = cells as u16;
        if self.x + cells > self.end {
            return false;
        }
        if cells == 0 {
            return true; // nothing to see alone
        }
        let Some(cell) = self.buf.cell_mut((self.x, self.y)) else { return false };
        cell.set_symbol(g).set_style(style);
        for x in self.x + 1..self.x + cells {
            if let Some(cell) = self.buf.cell_mut((x, self.y)) {
                let below = cell.bg;
                cell.reset();
                cell.set_bg(below).set_style(style);
                // A character that only this terminal draws wide: the library would print over its
                // second half.
                if g.width() < cells as usize {
                    cell.set_diff_option(CellDiffOption::Skip);
                }
            }
        }
        self.x += cells;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn underlines_end_where_the_words_end() {
        let area = Rect { width: 16, height: 1, ..Rect::default() };
        let underlined = |paint: &dyn Fn(&mut Buffer)| -> String {
            let mut buf = Buffer::empty(area);
            paint(&mut buf);
            let mark = |cell: &ratatui::buffer::Cell| {
                if cell.modifier.contains(Modifier::UNDERLINED) { '_' } else { '.' }
            };
            buf.content.iter().map(mark).collect()
        };
        let style = Style::new().add_modifier(Modifier::UNDERLINED);
        let place = PaintTarget { x: 0, y: 0, columns: 16 };
        let of = |words: &'static str| underlined(&move |buf| _ = text(buf, place, words, style));
        assert_eq!(of("  not now   "), ".._______.......");
        assert_eq!(of("   "), "................");
        assert_eq!(of(" über "), ".____...........");
        let bar = underlined(&|buf| crate::widget::draw::put(buf, 0, 0, "▌", style));
        assert_eq!(bar, "................");
    }
}
