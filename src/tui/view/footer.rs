//! The last line: what Enter, Tab and Escape do now, then the ways to everything else. Made from the active keymap, so
//! it follows rebinding.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use crate::app::{App, global};
use crate::input::escape::EscapeStep;
use crate::keymap::action::Action;
use crate::panel::{DrawCx, Hint, KeyRouting, View};
use crate::theme::Role;
use crate::widget::draw;

/// Columns before the first key.
const LEFT: u16 = 2;

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
    let mut used = LEFT;
    items
        .iter()
        .take_while(|t| {
            used += (t.key.width() + 1 + t.label.width() + 2) as u16;
            used <= width + 2
        })
        .count()
}

/// Draws.
pub fn draw(cx: &DrawCx<'_>, hints: &[Hint], area: Rect, buf: &mut Buffer) {
    draw::clear(buf, area, cx.theme.style(Role::Ground));
    let items = items(hints, cx);
    let mut at = Rect { x: area.x + LEFT, width: area.width.saturating_sub(LEFT), ..area };
    for t in &items[..fitting(&items, area.width)] {
        for (text, role, gap) in [(t.key.as_str(), Role::Accent, 1), (t.label, Role::Dim, 2)] {
            let used = draw::text(buf, at, text, cx.theme.style(role)) + gap;
            at = Rect { x: at.x + used.min(at.width), width: at.width.saturating_sub(used), ..at };
        }
    }
}

/// Hints of the footer: the panel's first two, Escape, the panel's others, palette and help.
pub(crate) fn hints(app: &App) -> Vec<Hint> {
    let top = app.status_of(app.top());
    if let Some(KeyRouting::Raw { release }) = top.map(|s| s.keys) {
        return vec![release.map_or(Hint::as_("global.escape", "keep"), |a| Hint::of(a.0))];
    }
    let escape_step = global::escape_step(app);
    if escape_step == EscapeStep::Prefix {
        // The next key belongs to the sequence, whatever it does otherwise.
        return vec![Hint::as_("global.escape", "cancel")];
    }
    let mut own = app.panel(app.top()).map_or_else(Vec::new, |p| p.hints(&app.model));
    let rest = own.split_off(own.len().min(2));
    // The first of two Escapes on an idle screen has no label.
    let escape = match escape_step {
        EscapeStep::Arm | EscapeStep::Nothing => None,
        // A question that is left stays open, unless its dialog says otherwise.
        EscapeStep::Layer if app.layers.is_empty() => Some("later"),
        EscapeStep::Layer => Some(top.map_or("close", |s| s.leave)).filter(|label| !label.is_empty()),
        escape_step => escape_step.label(),
    };
    own.extend(escape.map(|label| Hint::as_("global.escape", label)));
    let composing = app.layers.is_empty() && app.screen.focus == View::Composer;
    if composing && !app.model.questions.open.is_empty() {
        own.push(Hint::of("global.answer"));
    }
    own.extend(rest);
    if app.layers.is_empty() {
        if composing {
            own.push(Hint::of("global.profile"));
        }
        own.extend([Hint::of("palette.open"), Hint::of("global.leader")]);
    }
    own.push(Hint::of("help.open"));
    own
}
