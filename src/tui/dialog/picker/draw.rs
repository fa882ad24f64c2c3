//! How a picker looks: the field with the count, the rows in columns, the preview beside or below them.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use unicode_width::UnicodeWidthStr;

use super::{Item, Picker};
use crate::model::Model;
use crate::panel::{DrawCx, Placement};
use crate::text::line::{Line, Look, Wrap};
use crate::text::paint::{self, PaintTarget};
use crate::text::sheet::Sheet;
use crate::theme::Role;
use crate::widget::list::ListLine;
use crate::widget::table::{Cell, Fit};
use crate::widget::{draw, input, sign, surface};

/// Columns from which on a preview stands beside the list.
const WIDE: u16 = 72;
/// Rows of the area from which on a blank row stands below the field.
const TALL: u16 = 7;
/// Columns of a list, and of a table or a list with a preview, with the border and the padding of the dialog.
const LIST: u16 = 76;
const TABLE: u16 = 112;
/// Rows of the dialog besides its list: border, title, field and a blank row.
const AROUND: usize = 5;
/// Fewest rows of the list, and most of them on a small screen.
const FEW: usize = 6;
const MOST: usize = 18;

/// Where the parts of a picker lie.
pub(super) struct Parts {
    field: Rect,
    /// The names of the columns; empty: they have none.
    head: Rect,
    pub(super) list: Rect,
    /// Empty: there is no preview.
    preview: Rect,
}

impl Picker {
    /// Where the text of the preview stands. Below a table it begins where the texts of the rows begin.
    pub(super) fn preview_area(&self, parts: &Parts) -> Rect {
        let area = parts.preview;
        let indent = if self.source.spec().table.is_some() { self.indent() } else { 0 };
        Rect { x: area.x + indent, width: area.width.saturating_sub(indent), ..area }
    }

    /// As high as its rows need, within limits that depend on the screen.
    pub(super) fn size(&self, model: &Model) -> Placement {
        let spec = self.source.spec();
        let wide = self.previews || spec.table.is_some();
        let below = usize::from(spec.table.filter(|_| self.previews).map_or(0, |rows| rows + 1));
        let most = MOST.max(usize::from(model.window.screen.1) * 2 / 3);
        // All rows, not only those that match: the dialog keeps its size while one types.
        let all = self.rows.all().len() + self.headings();
        let rows = all.max(if self.previews && spec.table.is_none() { 2 * FEW } else { FEW }).min(most)
            + below
            + AROUND;
        let head = usize::from(spec.columns.iter().any(|c| c.is_named()));
        let height = u16::try_from(rows + head).unwrap_or(u16::MAX);
        Placement::Center { width: if wide { TABLE } else { LIST }, height }
    }

    /// Lines of the headings of all groups, with the blank lines between them.
    fn headings(&self) -> usize {
        let all = self.rows.all();
        let begins = all.iter().enumerate().filter(|(n, i)| *n == 0 || all[n - 1].group != i.group);
        begins.map(|(n, i)| usize::from(n > 0) + usize::from(!i.group.is_empty())).sum()
    }

    /// Field, names of the columns, list, and the preview beside or below it.
    pub(super) fn split(&self, area: Rect) -> Parts {
        let spec = self.source.spec();
        let field = Rect { height: area.height.min(1), ..area };
        let gap = field.height + u16::from(area.height >= TALL);
        let mut list =
            Rect { y: area.y + gap.min(area.height), height: area.height.saturating_sub(gap), ..area };
        let mut preview = Rect { width: 0, height: 0, ..list };
        if let Some(rows) = spec.table {
            let rows = if self.previews && list.height >= rows + 4 { rows } else { 0 };
            list.height -= rows + u16::from(rows > 0);
            preview = Rect {
                y: list.bottom() + 1,
                height: rows,
                width: if rows > 0 { area.width } else { 0 },
                ..list
            };
        } else if self.previews && area.width >= WIDE {
            // As wide as the rows need, within limits.
            let need = self.widths.natural() as u16 + self.indent() + 2;
            let left = need.clamp(area.width * 2 / 5, area.width * 3 / 5);
            preview = Rect { x: list.x + left + 3, width: area.width - left - 3, ..list };
            list.width = left;
        }
        let named = spec.columns.iter().any(|c| c.is_named()) && list.height > 2;
        let head = Rect { height: u16::from(named), ..list };
        list = Rect { y: list.y + head.height, height: list.height - head.height, ..list };
        Parts { field, head, list, preview }
    }

    /// Columns before the text of a row: the bar of the selected row, a sign, a blank.
    fn indent(&self) -> u16 {
        if self.signs { 4 } else { 2 }
    }

    /// `3 of 41`, or nothing where there is no row.
    fn count(&self) -> String {
        match self.rows.len() {
            0 => String::new(),
            n => format!("{} of {n}", self.list.chosen + 1),
        }
    }

    pub(super) fn paint(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let parts = self.split(area);
        self.paint_field(cx, parts.field, &self.count(), buf);
        self.paint_rows(cx, &parts, buf);
        self.paint_preview(cx, &parts, buf);
    }

    /// The field alone, for a dialog that shows something else while nothing is typed.
    pub(crate) fn draw_field(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        self.paint_field(cx, self.split(area).field, "", buf);
    }

    fn paint_field(&self, cx: &DrawCx<'_>, field: Rect, count: &str, buf: &mut Buffer) {
        if let Some(w) = &self.words {
            let used = draw::text(buf, field, &w.label, cx.theme.style(Role::Strong));
            let room = Rect { x: field.x + used, width: field.width.saturating_sub(used), ..field };
            input::draw(&w.edit, room, buf, cx.theme.style(Role::Text));
        } else {
            draw::text(buf, field, draw::sign(sign::CLOSED), cx.theme.style(Role::Accent));
            let room = self.room(field);
            input::draw(&self.input, room, buf, cx.theme.style(Role::Text));
            if self.input.is_empty() {
                draw::text(buf, room, self.source.spec().prompt, cx.theme.style(Role::Dim));
            }
            let need = (count.width() as u16).min(field.width);
            let right = Rect { x: field.right() - need, width: need, ..field };
            draw::text(buf, right, count, cx.theme.style(Role::Dim));
        }
    }

    /// Where the filter is typed.
    fn room(&self, field: Rect) -> Rect {
        let used = self.count().width() as u16 + 4;
        Rect { x: field.x + 2.min(field.width), width: field.width.saturating_sub(used), ..field }
    }

    /// Where the texts of the rows stand. At the right end the scroll bar has a column of its own.
    fn texts(&self, list: Rect) -> Rect {
        let indent = self.indent();
        Rect { x: list.x + indent, width: list.width.saturating_sub(indent + 2), ..list }
    }

    /// True when the row of a table has room for all of `text`, so that the preview would repeat it.
    pub(super) fn row_says(&self, item: &Item, text: &str, list: Rect) -> bool {
        let fit = self.widths.fit(self.source.spec().columns, usize::from(self.texts(list).width));
        row_line(item, &fit).text().contains(text.trim())
    }

    fn paint_rows(&self, cx: &DrawCx<'_>, parts: &Parts, buf: &mut Buffer) {
        let list = parts.list;
        let room = self.texts(list);
        if self.rows.len() == 0 {
            let words = Line::strict(self.source.spec().empty, Look::of(Role::Dim), Wrap::Word);
            paint_wrapped(cx, vec![words], 0, room, buf);
            return;
        }
        let fit = self.widths.fit(self.source.spec().columns, usize::from(room.width));
        if let Some(head) = fit.head().filter(|_| parts.head.height > 0) {
            paint_line(cx, &head, Rect { y: parts.head.y, height: 1, ..room }, buf);
        }
        for (y, line) in self.list.window(usize::from(list.height)).iter().enumerate() {
            let spot = Rect { y: list.y + y as u16, height: 1, ..room };
            match line {
                ListLine::Blank => {}
                ListLine::Heading(at) => {
                    let group = self.rows.get(*at).map_or("", |i| i.group.as_str());
                    paint_line(cx, &fit.text(group, Look::of(Role::Dim).bold()), spot, buf);
                }
                ListLine::Row(at) => {
                    let Some(item) = self.rows.get(*at) else { continue };
                    let whole = Rect { y: spot.y, height: 1, ..list };
                    self.paint_row(cx, item, &fit, (whole, spot), buf);
                    if *at == self.list.chosen {
                        surface::selected(cx, whole, buf);
                    }
                }
            }
        }
        for y in self.list.thumb(usize::from(list.height)).into_iter().flatten() {
            let bar = draw::lines(cx.ascii).v;
            draw::put(buf, list.right() - 1, list.y + y as u16, bar, cx.theme.style(Role::Dim));
        }
    }

    fn paint_row(
        &self,
        cx: &DrawCx<'_>,
        item: &Item,
        fit: &Fit,
        (whole, spot): (Rect, Rect),
        buf: &mut Buffer,
    ) {
        if let Some((sign, role)) = item.sign {
            draw::put(buf, whole.x + 2, whole.y, sign, cx.theme.style(role));
        }
        paint_line(cx, &row_line(item, fit), spot, buf);
        if item.strong {
            draw::paint(buf, spot, Style::new().add_modifier(Modifier::BOLD));
        }
    }

    fn paint_preview(&self, cx: &DrawCx<'_>, parts: &Parts, buf: &mut Buffer) {
        let area = parts.preview;
        if area.width == 0 {
            return;
        }
        let l = draw::lines(cx.ascii);
        let border = cx.theme.style(Role::Border);
        if self.source.spec().table.is_some() {
            for x in area.left()..area.right() {
                draw::put(buf, x, area.y - 1, l.h, border);
            }
        } else {
            for y in area.top()..area.bottom() {
                draw::put(buf, area.x - 2, y, l.v, border);
            }
        }
        let Some(item) = self.chosen() else { return };
        let Some(text) = self.source.preview(item) else { return };
        if self.source.spec().table.is_some() && self.row_says(item, &text, parts.list) {
            return;
        }
        let area = self.preview_area(parts);
        let mut lines = preview_lines(&text);
        lines.truncate(usize::from(area.height));
        if let (Some(first), Some((from, to))) = (text.lines().next(), item.mark)
            && let (Some(before), Some(found), Some(after)) =
                (first.get(..from), first.get(from..to), first.get(to..))
        {
            let mut line = Line::new(Wrap::Word);
            line.push_strict(before, Look::of(Role::Text));
            line.push_strict(found, Look::of(Role::Match));
            line.push_strict(after, Look::of(Role::Text));
            if let Some(slot) = lines.first_mut() {
                *slot = line;
            }
        }
        paint_wrapped(cx, lines, 0, area, buf);
    }

    pub(super) fn caret(&self, area: Rect) -> Position {
        let field = Rect { height: area.height.min(1), ..area };
        if let Some(w) = &self.words {
            let used = (w.label.width() as u16).min(field.width);
            return input::caret(&w.edit, Rect { x: field.x + used, width: field.width - used, ..field });
        }
        input::caret(&self.input, self.room(field))
    }
}

/// The texts of a row, in columns.
fn row_line(item: &Item, fit: &Fit) -> Line {
    let role = if item.disabled.is_some() { Role::Dim } else { Role::Text };
    let first = Cell::new(item.text.as_str(), role);
    match &item.disabled {
        Some(why) => fit.row_with_reason(&first, why),
        None => {
            let mut cells = Vec::with_capacity(item.cells.len() + 1);
            cells.push(first.marked(item.mark));
            cells.extend(item.cells.iter().cloned());
            fit.row(&cells)
        }
    }
}

/// The lines of a preview.
pub(super) fn preview_lines(text: &str) -> Vec<Line> {
    text.lines().map(|l| Line::strict(l, Look::of(Role::Text), Wrap::Word)).collect()
}

/// Lines that are wrapped to the width of their area, from row `top` on.
pub(super) fn paint_wrapped(cx: &DrawCx<'_>, lines: Vec<Line>, top: usize, area: Rect, buf: &mut Buffer) {
    let sheet = Sheet::new(lines, usize::from(area.width).max(1));
    for (row, y) in sheet.rows.iter().skip(top).zip(area.top()..area.bottom()) {
        let Some(line) = sheet.lines.get(row.line as usize) else { continue };
        paint::row(buf, PaintTarget { x: area.x, y, columns: area.width }, line, *row, cx.theme, &[]);
    }
}

/// A line that was made for this width.
fn paint_line(cx: &DrawCx<'_>, line: &Line, spot: Rect, buf: &mut Buffer) {
    let mut rows = Vec::new();
    crate::text::wrap::wrap(line, 0, usize::from(spot.width).max(1), &mut rows);
    if let Some(row) = rows.first() {
        let place = PaintTarget { x: spot.x, y: spot.y, columns: spot.width };
        paint::row(buf, place, line, *row, cx.theme, &[]);
    }
}
