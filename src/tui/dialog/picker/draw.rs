//! How a picker looks: the field, the rows, the preview beside them.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use unicode_width::UnicodeWidthStr;

use super::{Item, Picker};
use crate::panel::DrawCx;
use crate::text::line::{Line, Look, Wrap};
use crate::text::wrap::wrap;
use crate::theme::Role;
use crate::widget::{draw, input};

impl Picker {
    /// List and preview side by side, or one below the other, when there is a preview and room for it.
    pub(super) fn split(&self, area: Rect) -> (Rect, Rect, Rect) {
        let field = Rect { height: area.height.min(1), ..area };
        let rest = Rect { y: area.y + field.height, height: area.height - field.height, ..area };
        if let Some(rows) = self.source.spec().table {
            let rows = if rest.height >= rows + 4 { rows } else { 0 };
            let list = Rect { height: rest.height - rows - u16::from(rows > 0), ..rest };
            let below = if rows > 0 { rest.width } else { 0 };
            return (field, list, Rect { y: list.bottom() + 1, height: rows, width: below, ..rest });
        }
        let wants = self.chosen().is_some_and(|i| self.source.preview(i).is_some());
        if !wants || area.width < 72 {
            return (field, rest, Rect { width: 0, ..rest });
        }
        let left = rest.width * 2 / 5;
        let list = Rect { width: left, ..rest };
        (field, list, Rect { x: rest.x + left + 1, width: rest.width - left - 1, ..rest })
    }

    fn row(&self, item: &Item, chosen: bool, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let mut style = cx.theme.style(if item.disabled.is_some() { Role::Dim } else { Role::Text });
        let mut dim = cx.theme.style(Role::Dim);
        let mut mark = "  ";
        if chosen {
            draw::paint(buf, area, cx.theme.style(Role::Selection));
            style = style.patch(cx.theme.style(Role::Selection));
            dim = dim.patch(cx.theme.style(Role::Selection));
            mark = "> ";
        }
        draw::text(buf, area, mark, style);
        let area = Rect { x: area.x + 2, width: area.width.saturating_sub(3), ..area };
        let right = match &item.disabled {
            Some(why) => format!("({why})"),
            None => item.detail.clone(),
        };
        // What the text on the left leaves free belongs to the right, which is short of room otherwise.
        let free = area.width.saturating_sub(item.text.width() as u16 + 1);
        let most =
            if self.source.spec().table.is_some() { area.width * 2 / 3 } else { area.width / 2 }.max(free);
        let need = (right.width() as u16).min(most);
        let left = Rect { width: area.width - need - u16::from(need > 0), ..area };
        draw::text(buf, left, &item.text, style);
        if need > 0 {
            draw::text(buf, Rect { x: area.right() - need, width: need, ..area }, &right, dim);
        }
    }

    pub(super) fn paint(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        let (field, list, preview) = self.split(area);
        if let Some(w) = &self.words {
            let used = draw::text(buf, field, &w.label, cx.theme.style(Role::Strong));
            let room = Rect { x: field.x + used, width: field.width.saturating_sub(used), ..field };
            input::draw(&w.edit, room, buf, cx.theme.style(Role::Text));
            return self.paint_rows(cx, list, preview, buf);
        }
        draw::text(buf, field, "> ", cx.theme.style(Role::Accent));
        let count = format!("{}/{}", self.rows.len(), self.rows.all().len());
        let need = count.width() as u16 + 1;
        let room = Rect { x: field.x + 2, width: field.width.saturating_sub(2 + need), ..field };
        input::draw(&self.input, room, buf, cx.theme.style(Role::Text));
        let right = Rect { x: field.right().saturating_sub(need), width: need, ..field };
        draw::text(buf, right, &count, cx.theme.style(Role::Dim));
        self.paint_rows(cx, list, preview, buf);
    }

    fn paint_rows(&self, cx: &DrawCx<'_>, list: Rect, preview: Rect, buf: &mut Buffer) {
        if self.rows.len() == 0 {
            let row = Rect {
                x: list.x + 2,
                width: list.width.saturating_sub(2),
                height: list.height.min(1),
                ..list
            };
            draw::text(buf, row, self.source.spec().empty, cx.theme.style(Role::Dim));
        }
        for (y, at) in self.list.window(self.rows.len(), usize::from(list.height)).enumerate() {
            let row = Rect { y: list.y + y as u16, height: 1, ..list };
            if let Some(item) = self.rows.get(at) {
                self.row(item, at == self.list.chosen, cx, row, buf);
            }
        }
        if preview.width > 0
            && let Some(text) = self.chosen().and_then(|i| self.source.preview(i))
        {
            let l = draw::lines(cx.ascii);
            let border = cx.theme.style(Role::Border);
            if self.source.spec().table.is_some() {
                for x in preview.left()..preview.right() {
                    draw::put(buf, x, preview.y - 1, l.h, border);
                }
            } else {
                for y in preview.top()..preview.bottom() {
                    draw::put(buf, preview.x - 1, y, l.v, border);
                }
            }
            let room = Rect { x: preview.x + 1, width: preview.width - 1, ..preview };
            let lines: Vec<Line> = text
                .lines()
                .take(usize::from(room.height))
                .map(|l| Line::strict(l, Look::of(Role::Text), Wrap::Word))
                .collect();
            let mut rows = Vec::new();
            for (n, line) in lines.iter().enumerate() {
                wrap(line, n, usize::from(room.width), &mut rows);
            }
            for (row, y) in rows.iter().zip(room.top()..room.bottom()) {
                let words = &lines[row.line as usize].text()[row.start as usize..row.end as usize];
                draw::text(buf, Rect { y, height: 1, ..room }, words, cx.theme.style(Role::Text));
            }
        }
    }

    pub(super) fn caret(&self, area: Rect) -> Position {
        let field = Rect { height: area.height.min(1), ..area };
        if let Some(w) = &self.words {
            let used = (w.label.width() as u16).min(field.width);
            return input::caret(&w.edit, Rect { x: field.x + used, width: field.width - used, ..field });
        }
        let count = format!("{}/{}", self.rows.len(), self.rows.all().len()).width() as u16 + 1;
        let room = Rect { x: field.x + 2, width: field.width.saturating_sub(2 + count), ..field };
        input::caret(&self.input, room)
    }
}
