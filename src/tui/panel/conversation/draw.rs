//! The visible rows into cells.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::search;
use super::viewport::{Pinned, TextPosition, Viewport, VisibleCell};
use crate::cell::CellLayout;
use crate::panel::DrawCx;
use crate::text::paint::{self, PaintTarget, StyleRange};
use crate::text::{shorten, width};
use crate::theme::Role;
use crate::widget::{draw, surface};

/// Highlights over the text.
#[derive(Clone, Copy, Default)]
pub(super) struct Overlay<'a> {
    /// The chosen cell in navigation focus.
    pub cursor: Option<u64>,
    /// From and to.
    pub selection: Option<(TextPosition, TextPosition)>,
    pub words: &'a str,
    /// The cell of the current hit, its line there, and the hit's number in that line.
    pub hit: Option<(u64, usize, usize)>,
}

/// Draws the window's rows from the top of `area` on.
pub(super) fn rows(view: &Viewport, over: Overlay<'_>, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
    if let Some(p) = view.pinned.filter(|_| cx.kept == 0) {
        pinned(view, p, cx, area, buf);
    }
    for seen in view.visible.iter().filter(|s| s.y + s.rows > usize::from(cx.kept)) {
        let Some(laid) = view.kept(seen.key) else { continue };
        cell(laid, *seen, over, cx, area, buf);
        if over.cursor == Some(seen.key) && cx.focus {
            let first = seen.y + laid.gap.saturating_sub(seen.from).min(seen.rows - 1);
            let line = Rect { y: area.y + first as u16, height: 1, ..area };
            surface::chosen(cx, line.intersection(area), buf);
        }
    }
}

/// Draws the pinned message. Its last row makes room for the count of those that are left out.
fn pinned(view: &Viewport, p: Pinned, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
    let Some(laid) = view.kept(p.key) else { return };
    for (n, y) in (area.y..area.bottom()).enumerate().take(p.rows) {
        let Some((_, line, cut)) = laid.stack().row(n) else { return };
        let whole = PaintTarget { x: area.x, y, columns: area.width };
        let used = paint::row(buf, whole, line, cut, cx.theme, &[]);
        if n + 1 < p.rows || p.more == 0 {
            continue;
        }
        let note = format!(" {} ", p.note(&view.env.unfold_key));
        let end = view.env.prose().min(usize::from(area.width));
        let cut = if end < usize::from(used) + width(&note) { shorten::ellipsis(cx.ascii) } else { "" };
        let note = format!("{cut}{note}");
        let columns = width(&note).min(end) as u16;
        let x = area.x + end as u16 - columns;
        let ground = cx.theme.style(line.band.unwrap_or(Role::Band));
        draw::clear(buf, Rect { x, y, width: area.right() - x, height: 1 }, ground);
        paint::text(buf, PaintTarget { x, y, columns }, &note, cx.theme.style(Role::Dim));
    }
}

/// The look of a chosen row; visible without colours too.
fn chosen(cx: &DrawCx<'_>) -> Style {
    let style = cx.theme.style(Role::Selection);
    if style == Style::new() { style.add_modifier(Modifier::REVERSED) } else { style }
}

fn cell(
    laid: &CellLayout,
    seen: VisibleCell,
    over: Overlay<'_>,
    cx: &DrawCx<'_>,
    area: Rect,
    buf: &mut Buffer,
) {
    for n in 0..seen.rows {
        let row = seen.from + n;
        let Some(text_row) = row.checked_sub(laid.gap) else { continue };
        let y = area.y + (seen.y + n) as u16;
        if y >= area.bottom() {
            return;
        }
        if y < area.y + cx.kept {
            continue;
        }
        let Some((number, line, cut)) = laid.stack().row(text_row) else { continue };
        if let Some((mark, role)) = laid.mark.filter(|_| text_row == 0) {
            let mark = if laid.spins() { cx.spinner().unwrap_or(mark) } else { mark };
            let x = area.x + laid.indent.saturating_sub(2) as u16;
            let columns = area.right().saturating_sub(x);
            paint::text(buf, PaintTarget { x, y, columns }, mark, cx.theme.style(role));
        }
        let mut marks: Vec<StyleRange> =
            search::over(line, over.words, cx.theme.style(Role::Match).add_modifier(Modifier::UNDERLINED));
        if let Some((_, _, n)) = over.hit.filter(|h| h.0 == seen.key && h.1 == number)
            && let Some(m) = marks.get_mut(n)
        {
            m.style = cx.theme.style(Role::MatchCurrent).add_modifier(Modifier::REVERSED);
        }
        if let Some((start, end)) =
            over.selection.and_then(|s| selected(s, seen, number, line.text().len(), cx))
        {
            marks.push(StyleRange { start, end, style: chosen(cx) });
        }
        let x = area.x + laid.indent as u16;
        let place = PaintTarget { x, y, columns: area.right().saturating_sub(x) };
        paint::row(buf, place, line, cut, cx.theme, &marks);
    }
}

/// Bytes of a line that are selected.
fn selected(
    s: (TextPosition, TextPosition),
    seen: VisibleCell,
    line: usize,
    len: usize,
    cx: &DrawCx<'_>,
) -> Option<(u32, u32)> {
    let conv = &cx.model.agent.conversation;
    let (here, a, b) = (seen.index, conv.find(s.0.key)?, conv.find(s.1.key)?);
    if (here, line) < (a, s.0.line) || (here, line) > (b, s.1.line) {
        return None;
    }
    let start = if (here, line) == (a, s.0.line) { s.0.byte } else { 0 };
    let end = if (here, line) == (b, s.1.line) { s.1.byte } else { len as u32 };
    (start < end).then_some((start, end))
}
