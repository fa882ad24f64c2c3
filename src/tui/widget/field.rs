//! A text field of several rows. What is in it may be foreign (a command to be changed): it is drawn
//! through [`crate::text::clean`], so marks stand for what cannot be seen.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::edit::Edit;
use crate::text::line::{Line, Look, Wrap};
use crate::text::sheet::Sheet;
use crate::text::{clean, paint};
use crate::theme::{Role, Theme};

fn sheet(edit: &Edit, columns: usize) -> Sheet {
    let lines = edit.text().split('\n').map(|l| Line::strict(l, Look::of(Role::Text), Wrap::Hard)).collect();
    Sheet::new(lines, columns.max(1))
}

/// Rows that it needs, one for the caret behind the last character included.
pub fn rows(edit: &Edit, columns: u16) -> u16 {
    let last = edit.text().split('\n').map(|l| clean::plain(l).chars().count()).max().unwrap_or(0);
    let full = u16::from(columns > 0 && last > 0 && last.is_multiple_of(usize::from(columns)));
    (sheet(edit, usize::from(columns)).rows.len() as u16).saturating_add(full)
}

/// Row and column of the caret within the whole text.
fn place(edit: &Edit, sheet: &Sheet, columns: usize) -> (usize, usize) {
    let before = &edit.text()[..edit.caret()];
    let number = before.matches('\n').count() as u32;
    let start = before.rfind('\n').map_or(0, |i| i + 1);
    let byte = Line::strict(&before[start..], Look::of(Role::Text), Wrap::Hard).text().len() as u32;
    let at = sheet.rows.iter().rposition(|r| r.line == number && r.start <= byte).unwrap_or(0);
    let Some((row, line)) = sheet.rows.get(at).and_then(|r| Some((r, sheet.lines.get(r.line as usize)?)))
    else {
        return (0, 0);
    };
    let column = paint::column_of(line, *row, byte);
    // Behind the last character of a full row: the next one.
    if column >= columns { (at + 1, 0) } else { (at, column) }
}

/// First row that is shown so that the caret is.
fn top(row: usize, area: Rect) -> usize {
    (row + 1).saturating_sub(usize::from(area.height))
}

/// Draws it.
pub fn draw(edit: &Edit, area: Rect, buf: &mut Buffer, theme: &Theme) {
    let sheet = sheet(edit, usize::from(area.width));
    let top = top(place(edit, &sheet, usize::from(area.width)).0, area);
    for (n, row) in sheet.rows.iter().skip(top).take(usize::from(area.height)).enumerate() {
        let place = paint::PaintTarget { x: area.x, y: area.y + n as u16, columns: area.width };
        if let Some(line) = sheet.lines.get(row.line as usize) {
            paint::row(buf, place, line, *row, theme, &[]);
        }
    }
}

/// Where the caret is.
pub fn caret(edit: &Edit, area: Rect) -> Position {
    let sheet = sheet(edit, usize::from(area.width));
    let (row, column) = place(edit, &sheet, usize::from(area.width));
    Position::new(area.x + column as u16, area.y + (row - top(row, area)) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_counts_marks_and_rows() {
        let area = Rect::new(2, 3, 10, 2);
        let mut e = Edit::with("ab\u{202e}c");
        assert_eq!(caret(&e, area), Position::new(3, 4), "the mark takes eight columns: the second row");
        e.set("one\ntwo\nthree");
        assert_eq!(caret(&e, area), Position::new(7, 4), "the last row is in view");
        e.set("0123456789");
        assert_eq!(caret(&e, area), Position::new(2, 4), "behind a full row");
        assert_eq!(rows(&e, 10), 2);
    }
}
