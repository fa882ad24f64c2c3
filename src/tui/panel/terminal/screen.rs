//! The last received screen of a program, row by row, and how its cells are drawn: character by character, so
//! that no sequence of them is more to our terminal than what is seen.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use tiller_protocol::{GridRun, ScreenView};
use unicode_width::UnicodeWidthChar;

use crate::theme::{Theme, grid};

/// Marks on one base that are drawn.
const MARKS: usize = 4;
/// Most columns and rows that are kept of a screen, whatever size arrives.
const MOST: u16 = 1_000;

/// The received screen.
#[derive(Default)]
pub(super) struct ProgramScreen {
    /// 0: nothing yet.
    pub(super) rev: u64,
    pub(super) cols: u16,
    pub(super) rows: Vec<Vec<GridRun>>,
    pub(super) cursor: Option<(u16, u16)>,
    pub(super) mouse: bool,
    pub(super) ended: bool,
}

impl ProgramScreen {
    /// Takes what changed.
    pub(super) fn take(&mut self, view: &ScreenView) {
        self.ended = view.ended;
        if view.height == 0 {
            // It has ended: what it showed last stays.
            return;
        }
        (self.rev, self.cols, self.cursor, self.mouse) = (view.rev, view.cols, view.cursor, view.mouse);
        self.rows.resize(view.height.min(MOST).into(), Vec::new());
        for (at, row) in &view.rows {
            if let Some(kept) = self.rows.get_mut(usize::from(*at)) {
                kept.clone_from(row);
            }
        }
    }

    /// The text of the screen, without blank lines at the end.
    pub(super) fn text(&self) -> String {
        let lines: Vec<String> = self.rows.iter().map(|row| text(row)).collect();
        lines.join("\n").trim_end().to_owned()
    }
}

/// The text of a row.
pub(super) fn text(row: &[GridRun]) -> String {
    let whole: String = row.iter().flat_map(|run| run.text.chars()).filter(|c| harmless(*c)).collect();
    whole.trim_end().to_owned()
}

/// Neither a control character nor a character that changes how its neighbours are read: direction marks, joiners,
/// selectors of a picture form (their width differs from terminal to terminal), tags.
fn harmless(c: char) -> bool {
    !c.is_control()
        && !matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Draws a row's cells at the start of `area`'s row `y`; `over`: laid over the columns from, to.
pub(super) fn draw_row(
    buf: &mut Buffer,
    theme: &Theme,
    area: Rect,
    y: u16,
    row: &[GridRun],
    over: Option<(u16, u16, Style)>,
) {
    let mut x = 0_u16;
    let mut base: Option<u16> = None;
    let mut marks = 0;
    for run in row {
        let style = grid::style(theme, run.style);
        for c in run.text.chars().filter(|c| harmless(*c)) {
            let width = c.width().unwrap_or(0) as u16;
            if width == 0 {
                // It belongs to the cell before.
                marks += 1;
                if let Some(cell) =
                    base.filter(|_| marks <= MARKS).and_then(|x| buf.cell_mut((x, area.y + y)))
                {
                    let joined = format!("{}{c}", cell.symbol());
                    cell.set_symbol(&joined);
                }
                continue;
            }
            if x + width > area.width {
                return;
            }
            let at = area.x + x;
            (base, marks) = (Some(at), 0);
            if let Some(cell) = buf.cell_mut((at, area.y + y)) {
                cell.set_char(c).set_style(style);
            }
            for more in 1..width {
                if let Some(cell) = buf.cell_mut((at + more, area.y + y)) {
                    cell.reset();
                    cell.set_style(style);
                }
            }
            x += width;
        }
    }
    if let Some((from, to, style)) = over {
        let from = from.min(area.width);
        let width = to.min(area.width).saturating_sub(from);
        buf.set_style(Rect { x: area.x + from, y: area.y + y, width, height: 1 }, style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiller_protocol::GridStyle;

    fn run(text: &str) -> GridRun {
        GridRun { text: text.into(), style: GridStyle::default() }
    }

    fn drawn(text: &str, width: u16) -> Vec<String> {
        let area = Rect::new(0, 0, width, 1);
        let mut buf = Buffer::empty(area);
        draw_row(&mut buf, &Theme::default(), area, 0, &[run(text)], None);
        buf.content.iter().map(|c| c.symbol().to_owned()).collect()
    }

    #[test]
    fn u8_nothing_of_a_row_is_more_than_what_is_seen() {
        assert_eq!(drawn("a\u{1b}[2Jb\u{9b}c", 8), ["a", "[", "2", "J", "b", "c", " ", " "]);
        assert_eq!(drawn("x\u{202e}y\u{200d}z\u{feff}", 4), ["x", "y", "z", " "]);
        // A wide character takes two cells, and is not cut in half.
        assert_eq!(drawn("漢字", 3), ["漢", " ", " "]);
        // Marks stay with their base, and do not pile up.
        assert_eq!(drawn(&format!("e{}f", "\u{301}".repeat(50)), 3)[0].chars().count(), 1 + MARKS);
        assert_eq!(drawn("❤\u{fe0f}x", 3), ["❤", "x", " "]);
        assert!(drawn(&"\u{301}".repeat(9), 2).iter().all(|s| s == " "), "a mark without a base");
    }

    #[test]
    fn told_rows_make_up_the_screen_and_the_last_one_stays() {
        let mut s = ProgramScreen::default();
        let row = |at, t: &str| (at, vec![run(t)]);
        let whole = ScreenView {
            rev: 5,
            cols: 9,
            height: 3,
            rows: vec![row(0, "a"), row(2, "c ")],
            ..Default::default()
        };
        s.take(&whole);
        s.take(&ScreenView { rev: 6, rows: vec![row(1, "b"), row(700, "no")], ..whole.clone() });
        assert_eq!((s.text().as_str(), s.rev), ("a\nb\nc", 6));
        s.take(&ScreenView { rev: 6, ended: true, ..ScreenView::default() });
        assert_eq!((s.text().as_str(), s.ended), ("a\nb\nc", true));
    }
}
