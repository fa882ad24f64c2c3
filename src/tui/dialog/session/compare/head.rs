//! The head of a comparison: which view is shown, and the figures of both sides.
//!
//! Above the files the sides stand one below the other, so that their figures can be compared, each with the sign that
//! its lines have in the difference. Above messages and output each stands over its column.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::compare::{ComparedSide, Comparison};

use super::draw::CompareAreas;
use super::{Compare, CompareTab};
use crate::cell::thousands;
use crate::panel::DrawCx;
use crate::text::line::Line;
use crate::text::paint::{self, PaintTarget};
use crate::text::{Row, clean, shorten_end, width};
use crate::theme::Role;
use crate::view::words::money;
use crate::widget::table::{Cell, Column, Widths};
use crate::widget::{draw, sign};

/// Rows from which on blank rows stand around the figures.
const AIRY: u16 = 24;
/// Columns of the sign before a side's name.
const SIGN: u16 = 2;

/// Parts of the head.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadAreas {
    /// The views; at the right since when they differ.
    tabs: Rect,
    /// Two rows for the sides.
    pub(super) sides: Rect,
}

/// The head, and what is left below it.
pub(super) fn split(area: Rect) -> (HeadAreas, Rect) {
    let air = u16::from(area.height >= AIRY);
    let row = |y: u16, height: u16| {
        let y = y.min(area.height);
        Rect { y: area.y + y, height: height.min(area.height - y), ..area }
    };
    (HeadAreas { tabs: row(0, 1), sides: row(1 + air, 2) }, row(3 + 2 * air, u16::MAX))
}

/// The figures of the sides: name, entries, agents, tokens, cost, files.
const COLUMNS: &[Column] = &[
    Column::text("").grows(),
    Column::number("").rank(3),
    Column::number("").rank(4),
    Column::number("").rank(2),
    Column::number("").rank(1),
    Column::number("").rank(5),
];

/// One row of [`COLUMNS`].
fn cells(side: &ComparedSide, ascii: bool) -> Vec<Cell> {
    let mut cells = vec![Cell::new(clean::plain(&side.name).into_owned(), Role::Strong)];
    cells.extend(figures(side, ascii).into_iter().map(Cell::dim));
    cells
}

/// `14 entries`, `1 agent`, `↑38k ↓4k`, `$0.31`, `2 files`; empty where there is nothing to say.
fn figures(side: &ComparedSide, ascii: bool) -> [String; 5] {
    let count =
        |n: u64, one: &str, many: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {many}") };
    let (up, down) = (sign::UP.text(ascii), sign::DOWN.text(ascii));
    let (sent, received) = (thousands(side.usage.context()), thousands(side.usage.output));
    [
        count(side.entries, "entry", "entries"),
        if side.agents == 0 { String::new() } else { count(u64::from(side.agents), "agent", "agents") },
        format!("{up}{sent} {down}{received}"),
        side.cost.map_or(String::new(), |c| money(c.usd())),
        count(side.files.len() as u64, "file", "files"),
    ]
}

impl Compare {
    pub(super) fn paint_head(
        &self,
        cx: &DrawCx<'_>,
        compared: &Comparison,
        parts: &CompareAreas,
        buf: &mut Buffer,
    ) {
        self.paint_tabs(cx, compared, parts.head.tabs, buf);
        let sides = [&compared.left, &compared.right];
        let area = parts.head.sides;
        if parts.wide && self.view != CompareTab::Files {
            for (right, column) in [(false, parts.left), (true, parts.right)] {
                let place = Rect { y: area.y, height: area.height, ..column };
                self.paint_over_column(cx, sides[usize::from(right)], right, place, buf);
            }
            return;
        }
        let rows = sides.map(|side| cells(side, cx.ascii));
        let room = area.width.saturating_sub(SIGN);
        let widths = Widths::of(rows.iter().map(Vec::as_slice));
        // The figures stand close to the names.
        let fit = widths.fit(COLUMNS, widths.natural().min(room.into()));
        for (row, (n, y)) in rows.iter().zip((0..).zip(area.top()..area.bottom())) {
            let (mark, role) = match (self.view, n) {
                (CompareTab::Files, 0) => (sign::MINUS.text(cx.ascii), Role::Removed),
                (CompareTab::Files, _) => ("+", Role::Added),
                _ => self.mark(cx, n == 1),
            };
            let place = Rect { y, height: 1, ..area };
            draw::text(buf, place, mark, cx.theme.style(role));
            let line = fit.row(row);
            let place = Rect { x: area.x + SIGN.min(area.width), width: room, ..place };
            paint_line(cx, &line, place, buf);
        }
    }

    /// Marks the side that is scrolled, and shown where there is room for one only.
    fn mark(&self, cx: &DrawCx<'_>, right: bool) -> (&'static str, Role) {
        (if self.right == right { sign::CLOSED.text(cx.ascii) } else { " " }, Role::Accent)
    }

    fn paint_tabs(&self, cx: &DrawCx<'_>, compared: &Comparison, area: Rect, buf: &mut Buffer) {
        let files = compared.files.len();
        let all = [
            (CompareTab::Files, if files == 0 { " Files ".to_owned() } else { format!(" Files {files} ") }),
            (CompareTab::Talk, " Messages ".to_owned()),
            (CompareTab::Run, " Command ".to_owned()),
        ];
        let mut x = area.x;
        for (view, name) in all {
            let role = if view == self.view { Role::Selection } else { Role::Dim };
            let room = Rect { x, width: area.right().saturating_sub(x), ..area };
            x += draw::text(buf, room, &name, cx.theme.style(role)) + 1;
        }
        let base = clean::plain(&compared.base_line);
        let note = match compared.notes.first() {
            Some(note) => note.clone(),
            None if base.is_empty() => String::new(),
            None => format!("since \"{base}\""),
        };
        let more = match compared.more {
            0 => String::new(),
            n => format!("{n} more files are not listed  "),
        };
        let room = area.right().saturating_sub(x + 1);
        let note = shorten_end(&draw::clean(&format!("{more}{note}")), room.into(), cx.ascii);
        let need = width(&note) as u16;
        let right = Rect { x: area.right().saturating_sub(need), width: need, ..area };
        draw::text(buf, right, &note, cx.theme.style(Role::Dim));
    }

    /// The name of a side, and below it its figures.
    fn paint_over_column(
        &self,
        cx: &DrawCx<'_>,
        side: &ComparedSide,
        right: bool,
        area: Rect,
        buf: &mut Buffer,
    ) {
        let (mark, role) = self.mark(cx, right);
        draw::text(buf, area, mark, cx.theme.style(role));
        let sign = SIGN.min(area.width);
        let inner = Rect { x: area.x + sign, width: area.width - sign, ..area };
        let name = draw::cut_middle(&side.name, inner.width.into());
        draw::text(buf, inner, &name, cx.theme.style(Role::Strong));
        let below = Rect { y: inner.y + 1, height: inner.height.saturating_sub(1), ..inner };
        let said: Vec<String> = figures(side, cx.ascii).into_iter().filter(|f| !f.is_empty()).collect();
        let said = said.join(&format!(" {} ", sign::DOT.text(cx.ascii)));
        draw::text(buf, below, &said, cx.theme.style(Role::Dim));
    }
}

fn paint_line(cx: &DrawCx<'_>, line: &Line, area: Rect, buf: &mut Buffer) {
    let row = Row { line: 0, start: 0, end: line.text().len() as u32 };
    paint::row(buf, PaintTarget { x: area.x, y: area.y, columns: area.width }, line, row, cx.theme, &[]);
}
