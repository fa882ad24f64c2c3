//! The box that shows what can follow the keys pressed so far. Not a layer: it takes no keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use crate::keymap::{Chord, show};
use crate::panel::DrawCx;
use crate::theme::Role;
use crate::view::layout::Areas;
use crate::widget::draw;

/// Draws it at the lower right, above the footer, in as many columns as fit.
pub(crate) fn draw(cx: &DrawCx<'_>, pending: &[Chord], areas: &Areas, buf: &mut Buffer) {
    let mut rows: Vec<(String, String)> = cx
        .keys
        .following(cx.scopes, pending)
        .into_iter()
        .map(|(key, action)| {
            let label = action.map_or("...", |a| cx.keys.words().find(a.0).map_or(a.0, |s| s.label));
            (key.shown(), label.to_owned())
        })
        .collect();
    rows.sort();
    rows.dedup();
    let Some(widest) = rows.iter().map(|(k, l)| k.width() + 1 + l.width()).max() else { return };
    let cell = (widest + 2) as u16;
    let screen = buf.area;
    let room = screen.width.saturating_sub(4);
    let columns = (room / cell).clamp(1, 4).min(rows.len() as u16);
    let most = screen.height.saturating_sub(3);
    let height = (rows.len() as u16).div_ceil(columns).min(most);
    let width = (columns * cell + 2).min(screen.width);
    let bottom = if areas.footer.area() > 0 { areas.footer.y } else { screen.bottom() };
    let area = Rect {
        x: screen.right() - width,
        y: bottom.saturating_sub(height + 2),
        width,
        height: (height + 2).min(bottom),
    };
    let inner = draw::boxed(buf, area, &show(pending), cx);
    let shown = usize::from(inner.height * columns);
    for (i, (key, label)) in rows.iter().take(shown).enumerate() {
        let (column, row) = ((i as u16) / inner.height.max(1), (i as u16) % inner.height.max(1));
        let spot =
            Rect { x: inner.x + column * cell, y: inner.y + row, width: cell.min(inner.width), height: 1 };
        let used = draw::text(buf, spot, key, cx.theme.style(Role::Accent)) + 1;
        let rest = Rect { x: spot.x + used, width: spot.width.saturating_sub(used), ..spot };
        draw::text(buf, rest, label, cx.theme.style(Role::Text));
    }
    if rows.len() > shown {
        let spot = Rect { x: area.x + 2, y: area.bottom() - 1, width: area.width - 4, height: 1 };
        let words = format!(" +{} in {} ", rows.len() - shown, cx.key("help.open"));
        draw::text(buf, spot, &words, cx.theme.style(Role::Dim));
    }
}
