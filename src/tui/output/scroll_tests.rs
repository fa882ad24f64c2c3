//! The emulator of the other tests knows no margins at the sides, so a terminal that does is imitated here.

use ratatui::style::Style;

use super::*;
use crate::output::Encoder;

/// A screen that knows what [`RowMove::write`] says, and text at a place.
struct Screen {
    cells: Vec<Vec<char>>,
    rows: Range<usize>,
    columns: Range<usize>,
    sides: bool,
    at: (usize, usize),
}

impl Screen {
    fn new(width: usize, height: usize) -> Self {
        let cells = vec![vec![' '; width]; height];
        Self { cells, rows: 0..height, columns: 0..width, sides: false, at: (0, 0) }
    }

    fn take(&mut self, out: &str) {
        let (width, height) = (self.cells[0].len(), self.cells.len());
        let mut rest = out;
        while let Some(c) = rest.chars().next() {
            if c == '\r' || c == '\n' {
                self.at = if c == '\r' { (self.at.0, 0) } else { (self.at.0 + 1, self.at.1) };
                rest = &rest[1..];
                continue;
            }
            let Some(body) = rest.strip_prefix("\x1b[") else {
                let (y, x) = self.at;
                self.cells[y][x] = c;
                self.at.1 += 1;
                rest = &rest[c.len_utf8()..];
                continue;
            };
            let end = body.find(|c: char| ('\x40'..='\x7e').contains(&c)).unwrap();
            let (params, last) = (&body[..end], &body[end..=end]);
            let n: Vec<usize> = params.split(';').filter_map(|p| p.parse().ok()).collect();
            let all = params.is_empty();
            match last {
                "h" | "l" if params == "?69" => {
                    self.sides = last == "h";
                    self.columns = 0..width;
                }
                "r" => {
                    self.rows = if all { 0..height } else { n[0] - 1..n[1] };
                    self.at = (0, 0);
                }
                "s" => {
                    assert!(self.sides, "without the mode it saves the cursor");
                    self.columns = n[0] - 1..n[1];
                }
                "H" => self.at = (n.first().unwrap_or(&1) - 1, n.get(1).unwrap_or(&1) - 1),
                "B" => self.at.0 += n.first().unwrap_or(&1),
                "C" => self.at.1 += n.first().unwrap_or(&1),
                "G" => self.at.1 = n[0] - 1,
                "K" => {
                    let (y, x) = self.at;
                    self.cells[y][x..].fill(' ');
                }
                "X" => {
                    let (y, x) = self.at;
                    self.cells[y][x..x + n[0]].fill(' ');
                }
                "M" | "L" => self.shift(n[0], last == "M"),
                "J" => self.cells.iter_mut().for_each(|r| r.fill(' ')),
                "m" | "h" | "l" => {}
                other => panic!("ESC [ {params}{other}"),
            }
            rest = &body[end + 1..];
        }
    }

    fn shift(&mut self, by: usize, up: bool) {
        assert!(
            self.rows.contains(&self.at.0) && self.columns.contains(&self.at.1),
            "outside of the margins"
        );
        let rows = self.at.0..self.rows.end;
        for _ in 0..by {
            for step in 1..=rows.len() {
                let y = if up { rows.start + step - 1 } else { rows.end - step };
                let from = if up { y + 1 } else { y.wrapping_sub(1) };
                for x in self.columns.clone() {
                    self.cells[y][x] = if rows.contains(&from) { self.cells[from][x] } else { ' ' };
                }
            }
        }
    }

    fn shows(&self, buf: &Buffer) {
        for (y, row) in self.cells.iter().enumerate() {
            for (x, c) in row.iter().enumerate() {
                let want = buf.cell((x as u16, y as u16)).unwrap().symbol();
                assert_eq!(c.to_string(), want, "{x},{y}");
            }
        }
    }
}

/// A conversation from line `first` on, with a panel beside it.
fn page(first: usize) -> Buffer {
    let mut buf = Buffer::empty(ratatui::layout::Rect::new(0, 0, 60, 20));
    for y in 0..18_u16 {
        let line = first + usize::from(y);
        buf.set_string(0, y, "|", Style::new());
        buf.set_string(1, y, format!("{line} {}", "some words ".repeat(1 + line % 3)), Style::new());
        buf.set_string(40, y, "|", Style::new());
        buf.set_string(41, y, format!("panel row {y} {}|", "-".repeat(7)), Style::new());
    }
    buf.set_string(0, 19, "footer", Style::new());
    buf
}

#[test]
fn a_terminal_with_margins_at_the_sides_moves_the_text_alone() {
    let mut bytes = Vec::new();
    for sides in [false, true] {
        let mut encoder = Encoder { sides, text: 1..40, ..Encoder::default() };
        let mut screen = Screen::new(60, 20);
        let mut sum = 0;
        // On by one and more, back, a jump, and on again.
        for first in [50, 51, 52, 55, 54, 50, 500, 501, 502] {
            let page = page(first);
            let mut out = String::new();
            encoder.frame(&page, &[page.area], None, &mut out);
            assert!(sides || !out.contains("\x1b[?69"), "it has not said that it knows them");
            screen.take(&out);
            screen.shows(&page);
            assert!(
                !screen.sides && screen.columns == (0..60) && screen.rows == (0..20),
                "nothing is left set"
            );
            sum += if first == 51 || first == 501 { out.len() } else { 0 };
        }
        bytes.push(sum);
    }
    assert!(bytes[1] * 2 < bytes[0], "{bytes:?}");
}

#[test]
fn the_last_frame_is_moved_as_the_screen_is() {
    for (by, columns) in [(1, 0..60), (3, 1..40), (-2, 0..60), (-1, 1..40)] {
        let scroll = RowMove { top: 2, bottom: 15, by, columns };
        let mut screen = Screen::new(60, 20);
        let mut encoder = Encoder::default();
        let (mut frame, mut out) = (page(7), String::new());
        encoder.frame(&frame, &[frame.area], None, &mut out);
        scroll.write(60, &mut out);
        screen.take(&out);
        scroll.apply(&mut frame);
        screen.shows(&frame);
    }
}
