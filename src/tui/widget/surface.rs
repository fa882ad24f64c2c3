//! The grounds of the screen: what a view or a dialog lies on, and the lines that stand for it where the theme has no
//! colours of areas.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use crate::panel::DrawCx;
use crate::theme::{Role, Theme};
use crate::widget::draw::{self, lines};
use crate::widget::sign;

/// The theme tells bands from the ground by colour. Where it does not, lines separate them.
pub(crate) fn has_bands(theme: &Theme) -> bool {
    theme.style(Role::Band).bg != theme.style(Role::Ground).bg
}

/// The ground of what lies over the views for a moment. A look for it that is not a colour would be seen on blank cells.
pub(crate) fn raised(theme: &Theme) -> Style {
    theme.style(if has_bands(theme) { Role::Raised } else { Role::Band })
}

/// The bar at the left of an area: the composer's in the tone of the permission mode, a question's in that of waiting.
pub(crate) fn bar(cx: &DrawCx<'_>, area: Rect, tone: Role, buf: &mut Buffer) {
    let sign = sign::BAR.text(cx.ascii);
    let style = cx.theme.style(tone);
    for y in area.top()..area.bottom() {
        draw::put(buf, area.x, y, sign, style);
    }
}

/// The selected row of a list: its ground, and the bar at its left.
pub(crate) fn selected(cx: &DrawCx<'_>, row: Rect, buf: &mut Buffer) {
    draw::paint(buf, row, cx.theme.style(Role::Selection));
    let bar = cx.theme.style(Role::Accent).remove_modifier(Modifier::REVERSED);
    draw::put(buf, row.x, row.y, sign::SELECTED.text(cx.ascii), bar);
}

/// The selected row of a list without a bar: its ground; where the theme has no look for it, reversed.
pub(crate) fn chosen(cx: &DrawCx<'_>, row: Rect, buf: &mut Buffer) {
    let style = cx.theme.style(Role::Selection);
    let style = if style == Style::new() { style.add_modifier(Modifier::REVERSED) } else { style };
    draw::paint(buf, row, style);
}

/// A selected row whose text keeps its colours, where the theme has a ground for it.
pub(crate) fn chosen_code(cx: &DrawCx<'_>, row: Rect, buf: &mut Buffer) {
    let style = cx.theme.style(Role::Selection);
    match style.bg.filter(|_| !style.add_modifier.contains(Modifier::REVERSED)) {
        Some(bg) => buf.set_style(row.intersection(buf.area), Style::new().bg(bg)),
        None => chosen(cx, row, buf),
    }
}

/// A horizontal line over the first row of an area.
pub(crate) fn rule(cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
    if area.is_empty() {
        return;
    }
    let style = cx.theme.style(Role::Border);
    for x in area.left()..area.right() {
        draw::put(buf, x, area.y, lines(cx.ascii).h, style);
    }
}

/// A vertical line over the first column of an area.
pub(crate) fn edge(cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
    let style = cx.theme.style(Role::Border);
    for y in area.top()..area.bottom() {
        draw::put(buf, area.x, y, lines(cx.ascii).v, style);
    }
}

/// A line around an area.
pub(crate) fn outline(cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
    if area.width < 2 || area.height < 2 {
        return;
    }
    let l = lines(cx.ascii);
    let style = cx.theme.style(Role::Border);
    let (right, bottom) = (area.right() - 1, area.bottom() - 1);
    rule(cx, Rect { height: 1, ..area }, buf);
    rule(cx, Rect { y: bottom, height: 1, ..area }, buf);
    edge(cx, area, buf);
    edge(cx, Rect { x: right, width: 1, ..area }, buf);
    let corners = [(area.x, area.y), (right, area.y), (area.x, bottom), (right, bottom)];
    for (sign, (x, y)) in l.corners.iter().zip(corners) {
        draw::put(buf, x, y, sign, style);
    }
}
