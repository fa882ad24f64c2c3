//! Rules, titles, and where they meet.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::App;
use crate::panel::{Attention, DrawCx, View};
use crate::theme::Role;
use crate::view::layout::Areas;
use crate::view::{layout_request, notice_bar};
use crate::widget::draw::{self, lines};

/// Borders and titles.
pub(crate) fn draw(app: &App, areas: &Areas, cx: &DrawCx<'_>, buf: &mut Buffer) {
    let l = lines(cx.ascii);
    let style = cx.theme.style(Role::Border);
    let focus = cx.theme.style(Role::Accent);
    for r in &areas.rules {
        for x in r.left()..r.right() {
            draw::put(buf, x, r.y, l.h, style);
        }
    }
    for (x, from, to) in &areas.verticals {
        for y in *from..*to {
            draw::put(buf, *x, y, l.v, style);
        }
    }
    let titles: Vec<(Rect, Option<View>)> = areas
        .parts()
        .map(|p| (p.title, Some(p.view)))
        .chain([(areas.notices_title, None)])
        .filter(|(r, _)| r.area() > 0)
        .collect();
    for (r, view) in &titles {
        let here = *view == Some(app.screen.focus) && app.layers.is_empty();
        for x in r.left() + 1..r.right().saturating_sub(1) {
            draw::put(buf, x, r.y, l.h, if here { focus } else { style });
        }
    }
    joints(areas, &titles, cx, buf);
    for (r, view) in titles {
        let title = match view {
            Some(View::Composer) => layout_request::docked(app)
                .map_or(app.facts(View::Composer).title.clone(), |o| {
                    app.panel(o).map_or_else(String::new, |p| p.title(cx.model))
                }),
            Some(View::Conversation) => app.facts(View::Conversation).title.clone(),
            Some(view) => format!("{} {}", view.digit(), app.facts(view).title),
            None => notice_bar::title(cx, &app.screen.notice_actions),
        };
        let here = view == Some(app.screen.focus) && app.layers.is_empty();
        // What needs the person, and what they have not seen yet, stands out.
        let role = match view {
            Some(View::Conversation | View::Composer) | None if !here => Role::Text,
            _ if here => Role::Strong,
            Some(view) => attention(app.facts(view).attention),
            None => Role::Text,
        };
        // The border below it may be dim; a title is read.
        let look = cx.theme.style(role).remove_modifier(ratatui::style::Modifier::DIM);
        let room = Rect { x: r.x + 2, width: r.width.saturating_sub(4), ..r };
        draw::text(buf, room, &format!(" {title} "), look);
    }
}

/// The look of a title without the focus.
fn attention(attention: Attention) -> Role {
    match attention {
        Attention::None => Role::Text,
        Attention::Unseen => Role::Accent,
        Attention::Waiting => Role::Waiting,
    }
}

/// Where titles meet verticals.
fn joints(areas: &Areas, titles: &[(Rect, Option<View>)], cx: &DrawCx<'_>, buf: &mut Buffer) {
    let l = lines(cx.ascii);
    let style = cx.theme.style(Role::Border);
    for (x, from, to) in &areas.verticals {
        let rows: std::collections::BTreeSet<u16> = titles.iter().map(|(r, _)| r.y).collect();
        for y in rows {
            let left = titles.iter().any(|(r, _)| r.y == y && r.left() < *x && *x < r.right());
            let right = titles.iter().any(|(r, _)| r.y == y && r.left() <= *x && *x + 1 < r.right());
            let (up, down) = (*from < y && y <= *to, *from <= y && y < *to);
            let symbol = match (left, right, up, down) {
                (false, false, ..) => continue,
                (true, true, true, true) => l.tees[4],
                (true, true, false, _) => l.tees[2],
                (true, true, true, false) => l.tees[3],
                (false, true, false, _) => l.corners[0],
                (true, false, false, _) => l.corners[1],
                (false, true, true, true) => l.tees[0],
                (true, false, true, true) => l.tees[1],
                (false, true, true, false) => l.corners[2],
                (true, false, true, false) => l.corners[3],
            };
            draw::put(buf, *x, y, symbol, style);
        }
    }
}
