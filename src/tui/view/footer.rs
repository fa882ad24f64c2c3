//! The last line: what Enter, Tab and Escape do now, then the ways to everything else. Made from the active keymap, so
//! it follows rebinding.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use crate::keymap::action::Action;
use crate::panel::{DrawCx, Hint};
use crate::theme::Role;
use crate::widget::draw;

/// Key text, label, and the action that it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FooterItem {
    pub key: String,
    pub label: &'static str,
    pub action: Action,
}

/// The items of the footer. A hint without a key here is left out, and one whose key is shown already.
pub fn items(hints: &[Hint], cx: &DrawCx<'_>) -> Vec<FooterItem> {
    let mut out: Vec<FooterItem> = Vec::with_capacity(hints.len());
    for h in hints {
        let Some(key) = cx.keys.describe(h.action, cx.scopes) else { continue };
        let label = h.label.or_else(|| cx.keys.words().find(h.action.0).map(|s| s.label));
        if let Some(label) = label
            && !out.iter().any(|t| t.key == key)
        {
            out.push(FooterItem { key, label, action: h.action });
        }
    }
    out
}

/// How many of them fit into `width` columns. They go from the right.
pub fn fitting(items: &[FooterItem], width: u16) -> usize {
    let mut used = 1;
    items
        .iter()
        .take_while(|t| {
            used += t.key.width() + 1 + t.label.width() + 2;
            used <= usize::from(width) + 2
        })
        .count()
}

/// Draws.
pub fn draw(cx: &DrawCx<'_>, hints: &[Hint], area: Rect, buf: &mut Buffer) {
    let bar = cx.theme.style(Role::Ground);
    draw::clear(buf, area, bar);
    let items = items(hints, cx);
    let mut at = Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..area };
    for t in &items[..fitting(&items, area.width)] {
        for (text, role, gap) in [(t.key.as_str(), Role::Accent, 1), (t.label, Role::Dim, 2)] {
            let used = draw::text(buf, at, text, bar.patch(cx.theme.style(role))) + gap;
            at = Rect { x: at.x + used.min(at.width), width: at.width.saturating_sub(used), ..at };
        }
    }
}
