//! A list of lines, each of which may wrap to several rows: one is chosen, and words can be searched for. Tables of figures
//! are lines that [`crate::widget::table`] made.

use crossterm::event::{KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use crate::input::escape::EscapeStep;
use crate::panel::find::Find;
use crate::panel::{DrawCx, Hint};
use crate::text::line::Line;
use crate::text::paint;
use crate::text::sheet::Sheet;
use crate::theme::Role;
use crate::widget::list::ListState;
use crate::widget::{draw, surface};

/// The lines and which of them is chosen.
#[derive(Debug, Default)]
pub(crate) struct LineList {
    sheet: Sheet,
    /// Number of the chosen line.
    pub(crate) chosen: usize,
    /// First row that is shown.
    top: usize,
    page: usize,
    /// The words that are searched for, with its line at the bottom.
    find: Option<Find>,
}

/// The list without the line of the search, and that line.
fn split(area: Rect, find: bool) -> (Rect, Rect) {
    let line = u16::from(find).min(area.height);
    let list = Rect { height: area.height - line, ..area };
    (list, Rect { y: list.bottom(), height: line, ..area })
}

impl LineList {
    /// Takes the lines for an area, and shows the chosen one.
    pub(crate) fn set(&mut self, lines: Vec<Line>, area: Rect) {
        self.sheet = Sheet::new(lines, usize::from(area.width).max(1));
        let (list, _) = split(area, self.find.is_some());
        let page = usize::from(list.height).max(1);
        // A window that grows shows more at its top first.
        self.top = self.top.saturating_sub(page.saturating_sub(self.page));
        self.page = page;
        if let Some(find) = &mut self.find {
            find.look(&self.sheet.lines);
        }
        self.show();
    }

    /// How many rows lines need at a width.
    pub(crate) fn height(lines: Vec<Line>, columns: u16) -> u16 {
        u16::try_from(Sheet::new(lines, usize::from(columns).max(1)).rows.len()).unwrap_or(u16::MAX)
    }

    fn show(&mut self) {
        self.chosen = self.chosen.min(self.sheet.lines.len().saturating_sub(1));
        let (from, to) = self.span();
        let all = self.sheet.rows.len();
        self.top = self.top.min(all.saturating_sub(self.page)).min(from);
        if to > self.top + self.visible(self.page) {
            // Unless it is the last one, a row below it says how many follow.
            let below = usize::from(to < all && self.page > 1);
            self.top = (to + below).saturating_sub(self.page).min(from);
        }
    }

    /// How many rows are shown in a window of `height` rows: where some follow, its last row says how many.
    fn visible(&self, height: usize) -> usize {
        let follow = self.sheet.rows.len() > self.top + height && height > 1;
        height - usize::from(follow)
    }

    /// LineList of the chosen line.
    fn span(&self) -> (usize, usize) {
        let n = self.chosen as u32;
        let from = self.sheet.rows.partition_point(|r| r.line < n);
        (from, self.sheet.rows.partition_point(|r| r.line <= n).max(from + 1))
    }

    /// Words to search for are being typed: the panel's keys are `input` then.
    pub(crate) fn typing(&self) -> bool {
        self.find.as_ref().is_some_and(|f| f.typing)
    }

    /// Returns what Escape ends here.
    pub(crate) fn escape_step(&self) -> Option<EscapeStep> {
        self.find.as_ref().map(|_| EscapeStep::Search)
    }

    /// Ends the search.
    pub(crate) fn end_find(&mut self) {
        self.find = None;
    }

    /// Takes a key of the search; `false` when nothing is being typed.
    pub(crate) fn key(&mut self, key: &KeyEvent) -> bool {
        let Some(find) = self.find.as_mut().filter(|f| f.typing) else { return false };
        if find.key(key) {
            find.look(&self.sheet.lines);
            self.chosen = find.from(self.chosen).unwrap_or(self.chosen);
            self.show();
        }
        true
    }

    /// Hints of a search, when there is one.
    pub(crate) fn find_hints(&self) -> Option<Vec<Hint>> {
        let find = self.find.as_ref()?;
        Some(if find.typing {
            vec![Hint::as_("input.done", "find")]
        } else {
            vec![Hint::of("list.next"), Hint::of("list.previous")]
        })
    }

    /// Searches: `list.search`, `list.next`, `list.previous`, and editing while words are typed.
    fn search(&mut self, id: &str) -> bool {
        match (id, &mut self.find) {
            (id, Some(find)) if find.typing => {
                let done = find.edit.act(id);
                find.look(&self.sheet.lines);
                return done;
            }
            ("list.search", _) => self.find = Some(Find::default()),
            ("list.next" | "list.previous", Some(find)) => {
                self.chosen = find.step(self.chosen, id == "list.next").unwrap_or(self.chosen);
            }
            _ => return false,
        }
        self.show();
        true
    }

    /// Does one of the moving or searching `list.*` actions; `false` when it is none of them.
    pub(crate) fn act(&mut self, id: &str) -> bool {
        if self.search(id) {
            return true;
        }
        if self.typing() {
            return false;
        }
        let mut list = ListState { chosen: self.chosen, top: 0 };
        let moved = list.act(id, self.sheet.lines.len(), self.page);
        self.chosen = list.chosen;
        self.show();
        moved
    }

    /// A click chooses; a second one on the same line is `true`: open it.
    pub(crate) fn mouse(&mut self, event: &MouseEvent, area: Rect) -> bool {
        match event.kind {
            MouseEventKind::ScrollDown => self.chosen += 3,
            MouseEventKind::ScrollUp => self.chosen = self.chosen.saturating_sub(3),
            MouseEventKind::Down(MouseButton::Left) => {
                let row = self.top + usize::from(event.row.saturating_sub(area.y));
                if let Some(r) = self.sheet.rows.get(row) {
                    let again = self.chosen == r.line as usize;
                    self.chosen = r.line as usize;
                    return again;
                }
            }
            _ => {}
        }
        self.show();
        false
    }

    /// Draws; the chosen line stands out when the panel has the focus.
    pub(crate) fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let (area, line) = split(area, self.find.is_some());
        if let Some(find) = &self.find {
            find.draw(cx, line, self.chosen, buf);
        }
        let chosen = self.span();
        let visible = self.visible(usize::from(area.height));
        for (n, row) in self.sheet.rows.iter().enumerate().skip(self.top).take(visible) {
            let y = area.y + (n - self.top) as u16;
            let Some(line) = self.sheet.lines.get(row.line as usize) else { continue };
            paint::row(
                buf,
                paint::PaintTarget { x: area.x, y, columns: area.width },
                line,
                *row,
                cx.theme,
                &[],
            );
            if cx.focus && (chosen.0..chosen.1).contains(&n) {
                surface::chosen(cx, Rect { y, height: 1, ..area }, buf);
            }
        }
        let below = self.sheet.rows.len().saturating_sub(self.top + visible);
        if below > 0 && visible < usize::from(area.height) {
            let spot = Rect { y: area.y + visible as u16, height: 1, ..area };
            draw::text(buf, spot, &draw::below(below), cx.theme.style(Role::Dim));
        }
    }

    /// Where the cursor belongs.
    pub(crate) fn cursor(&self, area: Rect) -> Option<Position> {
        let (area, line) = split(area, self.find.is_some());
        if let Some(find) = self.find.as_ref().filter(|f| f.typing) {
            return Some(find.caret(line));
        }
        let row = self.span().0.checked_sub(self.top)? as u16;
        (row < area.height).then(|| Position::new(area.x, area.y + row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::line::{Look, Wrap};

    fn rows(count: usize, height: u16) -> LineList {
        let mut rows = LineList::default();
        let lines = (0..count).map(|n| Line::strict(&format!("row {n}"), Look::of(Role::Text), Wrap::Cut));
        rows.set(lines.collect(), Rect::new(0, 0, 20, height));
        rows
    }

    #[test]
    fn the_row_that_counts_what_follows_covers_no_other() {
        let mut list = rows(9, 4);
        assert_eq!((list.top, list.visible(4)), (0, 3), "three rows, and the count");
        for chosen in 0..9 {
            list.act("list.down");
            let (from, to) = (list.top, list.top + list.visible(4));
            let chosen = (chosen + 1).min(8);
            assert!((from..to).contains(&chosen), "{chosen} in {from}..{to}");
        }
        assert_eq!((list.top, list.visible(4)), (5, 4), "at the end nothing is counted");
        assert_eq!(rows(4, 4).visible(4), 4);
        assert_eq!(rows(9, 1).visible(1), 1, "a single row is a row");
    }

    #[test]
    fn a_window_that_grows_shows_the_rows_above_again() {
        let mut list = rows(4, 2);
        list.act("list.down");
        assert_eq!(list.top, 1);
        let lines = (0..4).map(|n| Line::strict(&format!("row {n}"), Look::of(Role::Text), Wrap::Cut));
        list.set(lines.collect(), Rect::new(0, 0, 20, 3));
        assert_eq!(list.top, 0);
    }
}
