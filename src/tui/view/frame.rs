//! The grounds of panels and composer, the titles of the panels, and the composer's bar.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use unicode_width::UnicodeWidthStr;

use crate::app::App;
use crate::panel::{DrawCx, View};
use crate::theme::Role;
use crate::view::layout::{Areas, SizeClass, ViewArea};
use crate::view::{header, layout_request};
use crate::widget::{draw, surface};

/// Paints the grounds, before the panels draw on them.
pub(crate) fn grounds(app: &App, areas: &Areas, cx: &DrawCx<'_>, buf: &mut Buffer) {
    draw::clear(buf, buf.area, cx.theme.style(Role::Ground));
    let band = cx.theme.style(Role::Band);
    for area in areas.bands.iter().chain([&areas.notices_band, &areas.composer_band]) {
        draw::clear(buf, *area, band);
    }
    let lined = !surface::has_bands(cx.theme);
    if lined {
        surface::rule(cx, areas.rule, buf);
    }
    for area in &areas.bands {
        // The edge that meets the conversation.
        let x = if area.x < areas.main.inner.x { area.right().saturating_sub(1) } else { area.x };
        if lined {
            surface::edge(cx, Rect { x, width: 1, ..*area }, buf);
        }
    }
    if areas.class > SizeClass::Tiny && layout_request::docked(app).is_none() {
        let tone = header::profile_role(cx.model.agent.session.profile);
        for area in [areas.notices_band, areas.composer_band] {
            surface::bar(cx, area, tone, buf);
        }
    }
}

/// The titles of the panels: name, state, and which one has the focus.
pub(crate) fn titles(app: &App, areas: &Areas, cx: &DrawCx<'_>, buf: &mut Buffer) {
    for part in areas.parts().filter(|p| has_title(p)) {
        let ground = areas.surface(part);
        draw::clear(buf, part.title, cx.theme.style(ground));
        title(app, part, cx, buf);
    }
}

/// Rows that [`titles`] draws.
pub(crate) fn title_rows(areas: &Areas) -> impl Iterator<Item = Rect> {
    areas.parts().filter(|p| has_title(p)).map(|p| p.title)
}

fn has_title(part: &ViewArea) -> bool {
    part.title.area() > 0 && part.view != View::Composer
}

fn title(app: &App, part: &ViewArea, cx: &DrawCx<'_>, buf: &mut Buffer) {
    let facts = app.facts(part.view);
    let name = part.view.name();
    // A title is the name of its view, with its state behind it; or all its own.
    let (name, state) = match facts.title.strip_prefix(name) {
        Some(state) => (name, state.trim_start()),
        None => (facts.title.as_str(), ""),
    };
    let focused = part.view == app.screen.focus && app.layers.is_empty();
    let look = match focused {
        true => cx.theme.style(Role::Accent).add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
        false => cx.theme.style(Role::Strong),
    };
    let columns = state.width() as u16;
    let room = part.title.width.saturating_sub(if columns > 0 { columns + 1 } else { 0 });
    draw::text(buf, Rect { width: room, ..part.title }, name, look);
    let right = Rect { x: part.title.right().saturating_sub(columns).max(part.title.x), ..part.title };
    let right = Rect { width: part.title.right() - right.x, ..right };
    draw::text(buf, right, state, cx.theme.style(Role::Dim));
}
