//! Scrolled lines, and how much of them has been on the screen.

use crossterm::event::{MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::text::line::Line;
use crate::text::paint;
use crate::text::sheet::Sheet;
use crate::theme::{Role, Theme};
use crate::widget::draw;

/// Scrolled lines.
#[derive(Clone, Debug, Default)]
pub struct Scroll {
    sheet: Sheet,
    columns: usize,
    page: usize,
    top: usize,
    /// Rows from the first on that have been on the screen without a gap.
    seen: usize,
    /// The last row has been on the screen.
    end: bool,
    /// From this row on to the end all have been on the screen without a gap; `None`: the last one has not.
    tail: Option<usize>,
}

impl Scroll {
    /// Other content: nothing of it has been seen.
    pub fn set(&mut self, lines: Vec<Line>) {
        *self =
            Self { sheet: Sheet::new(lines, self.columns.max(1)), columns: self.columns, ..Self::default() };
    }

    /// Cuts for a width. The window stays where it is: how many rows it has is not known yet.
    pub(crate) fn fit(&mut self, columns: usize) {
        let columns = columns.max(1);
        if columns != self.columns {
            let all = !self.sheet.rows.is_empty() && self.seen >= self.sheet.rows.len();
            // Whole lines that were seen stay seen; what was seen of the next one does not count.
            let lines = self.sheet.rows.get(self.seen).map_or(0, |r| r.line);
            let at = self.sheet.rows.get(self.top).map_or(0, |r| r.line);
            self.sheet = Sheet::new(std::mem::take(&mut self.sheet.lines), columns);
            self.columns = columns;
            let row = |line: u32| self.sheet.rows.partition_point(|r| r.line < line);
            self.seen = if all { self.sheet.rows.len() } else { row(lines) };
            self.tail = all.then_some(0);
            self.top = row(at);
        }
    }

    /// Cuts for a size. `visible`: it is about to be drawn with nothing over it.
    pub fn measure(&mut self, columns: usize, page: usize, visible: bool) {
        self.fit(columns);
        self.page = page;
        self.top = self.top.min(self.last());
        if visible && page > 0 {
            if self.top <= self.seen {
                self.seen = self.seen.max((self.top + page).min(self.rows()));
            }
            let end = self.top + page >= self.rows();
            self.end |= end;
            if end || self.tail.is_some_and(|tail| self.top + page >= tail) {
                self.tail = Some(self.tail.map_or(self.top, |tail| tail.min(self.top)));
            }
        }
    }

    fn last(&self) -> usize {
        self.rows().saturating_sub(self.page.max(1))
    }

    /// The lines, whole.
    pub(crate) fn lines(&self) -> &[Line] {
        &self.sheet.lines
    }

    /// Number of the first line in the window.
    pub(crate) fn first(&self) -> usize {
        self.sheet.rows.get(self.top).map_or(0, |r| r.line as usize)
    }

    /// Brings this line to the top of the window. What lies between counts as not seen.
    pub(crate) fn go(&mut self, line: usize) {
        self.top = self.sheet.rows.partition_point(|r| (r.line as usize) < line).min(self.last());
    }

    /// How many rows there are at this width.
    pub fn rows(&self) -> usize {
        self.sheet.rows.len()
    }

    /// Rows below the window.
    pub fn below(&self) -> usize {
        self.rows().saturating_sub(self.top + self.page)
    }

    /// True when the first `lines` lines have all been on the screen, and the end as well.
    pub fn read(&self, lines: usize) -> bool {
        let must = self.sheet.rows.partition_point(|r| (r.line as usize) < lines);
        self.end && self.seen >= must
    }

    /// True when the first `head` lines have all been on the screen, and all from line number `tail` on.
    pub fn read_around(&self, head: usize, tail: usize) -> bool {
        let first = self.sheet.rows.partition_point(|r| (r.line as usize) < tail);
        self.read(head) && self.tail.is_some_and(|tail| tail <= first.max(self.seen))
    }

    /// The same lines in other colours: what was seen stays seen.
    pub fn recolour(&mut self, lines: Vec<Line>) {
        let same = |(a, b): (&Line, &Line)| a.text() == b.text() && a.first.text == b.first.text;
        if lines.len() == self.sheet.lines.len() && lines.iter().zip(&self.sheet.lines).all(same) {
            self.sheet.lines = lines;
        } else {
            self.set(lines);
        }
    }

    /// Does one of the moving `list.*` actions; `false` when it is none of them.
    pub fn act(&mut self, id: &str) -> bool {
        let page = self.page.saturating_sub(1).max(1);
        self.top = match id {
            "list.down" => self.top + 1,
            "list.up" => self.top.saturating_sub(1),
            "list.page_down" => self.top + page,
            "list.page_up" => self.top.saturating_sub(page),
            "list.first" => 0,
            "list.last" => self.last(),
            _ => return false,
        }
        .min(self.last());
        true
    }

    /// Three rows by the wheel.
    pub fn wheel(&mut self, down: bool) {
        self.top = if down { (self.top + 3).min(self.last()) } else { self.top.saturating_sub(3) };
    }

    /// Takes the wheel; `false`: it was something else.
    pub fn mouse(&mut self, event: &MouseEvent) -> bool {
        match event.kind {
            MouseEventKind::ScrollDown => self.wheel(true),
            MouseEventKind::ScrollUp => self.wheel(false),
            _ => return false,
        }
        true
    }

    /// As [`Self::measure`] of what is visible, for [`Self::draw_counted`].
    pub(crate) fn measure_counted(&mut self, columns: usize, page: usize) {
        let count = usize::from(page > 1);
        self.measure(columns, page.saturating_sub(count), true);
        if self.rows() <= page {
            self.measure(columns, page, true);
        }
    }

    /// Draws the window; where it is longer than `area`, the last row is for how many rows follow.
    pub(crate) fn draw_counted(&self, area: Rect, buf: &mut Buffer, theme: &Theme) {
        let page = area.height.min(u16::try_from(self.page).unwrap_or(u16::MAX));
        self.draw(Rect { height: page, ..area }, buf, theme);
        if page < area.height && self.below() > 0 {
            let last = Rect { y: area.bottom() - 1, height: 1, ..area };
            draw::text(buf, last, &draw::below(self.below()), theme.style(Role::Dim));
        }
    }

    /// Draws the window into `area`, which must have the size that [`Scroll::measure`] received.
    pub fn draw(&self, area: Rect, buf: &mut Buffer, theme: &Theme) {
        for (n, row) in self.sheet.rows.iter().skip(self.top).take(usize::from(area.height)).enumerate() {
            let place = paint::PaintTarget { x: area.x, y: area.y + n as u16, columns: area.width };
            if let Some(line) = self.sheet.lines.get(row.line as usize) {
                paint::row(buf, place, line, *row, theme, &[]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::line::{Look, Wrap};
    use crate::theme::Role;

    fn lines(n: usize) -> Vec<Line> {
        (0..n).map(|i| Line::strict(&format!("line {i}"), Look::of(Role::Text), Wrap::Hard)).collect()
    }

    #[test]
    fn a_jump_to_the_end_does_not_count_as_reading() {
        let mut s = Scroll::default();
        s.set(lines(30));
        s.measure(20, 10, true);
        assert!(!s.read(30));
        s.act("list.last");
        s.measure(20, 10, true);
        assert!(!s.read(30), "the middle was never seen");
        assert!(s.read(5), "but the first five and the end were");
        s.act("list.first");
        for _ in 0..3 {
            s.act("list.page_down");
            s.measure(20, 10, true);
        }
        assert!(s.read(30));
        s.measure(4, 10, true);
        assert!(s.read(30), "a narrower window takes nothing back");
    }

    #[test]
    fn the_lines_at_the_end_must_all_have_been_seen() {
        let mut s = Scroll::default();
        s.set(lines(30));
        s.measure(20, 4, true);
        s.act("list.last");
        s.measure(20, 4, true);
        assert!(s.read_around(4, 26) && s.read_around(4, 30));
        assert!(!s.read_around(4, 22), "four of the last eight were never seen");
        s.act("list.up");
        s.measure(20, 4, true);
        assert!(s.read_around(4, 25) && !s.read_around(4, 24));
        // A gap: rows that were seen before the end was are no part of the end.
        s.act("list.first");
        s.measure(20, 4, true);
        assert!(!s.read_around(4, 0));
        for _ in 0..10 {
            s.act("list.page_down");
            s.measure(20, 4, true);
        }
        assert!(s.read_around(30, 0));
        // Other colours take nothing back, other text does.
        s.recolour(lines(30));
        assert!(s.read_around(30, 0));
        s.recolour(lines(31));
        assert!(!s.read_around(30, 30));
    }

    #[test]
    fn what_is_covered_is_not_seen() {
        let mut s = Scroll::default();
        s.set(lines(3));
        s.measure(20, 10, false);
        assert!(!s.read(3));
        s.measure(20, 0, true);
        assert!(!s.read(3), "no room is no view");
        s.measure(20, 3, true);
        assert!(s.read(3));
    }
}
