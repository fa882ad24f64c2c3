//! What a frame has to draw. A frame compares the numbers of the model's slices and of the panels with those of the frame
//! before: what has the same number stays on the screen as it is. Most frames are a key or some words of a reply, and
//! draw the inside of one view.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use crate::app::App;
use crate::model::{Revisions, Slice};
use crate::theme::Role;
use crate::view::frame_state::{Chrome, LastFrame};
use crate::view::layout::{Areas, Class, LayoutRequest};
use crate::view::view_panel::{Facts, ViewPanel};
use crate::view::{cx, frame, layout_request, notice_bar};
use crate::widget::draw;

/// Slices that header, footer and notice bar read, besides the titles and hints of the panels.
const CHROME: &[Slice] = &[
    Slice::Session,
    Slice::Queue,
    Slice::Turn,
    Slice::Crew,
    Slice::Questions,
    Slice::Notices,
    Slice::Engine,
    Slice::Tour,
];

/// What header, footer and borders would show now.
fn chrome_of(app: &App) -> Chrome {
    let facts = |v: &ViewPanel| {
        let Facts { title, empty, attention, .. } = v.facts();
        (title.clone(), *empty, *attention)
    };
    Chrome { hints: app.hints(), views: app.views.iter().map(facts).collect(), errors: app.unseen_errors() }
}

/// Whether something lies over the views, or in their place.
fn is_covered(app: &App) -> bool {
    !app.layers.is_empty()
        || !app.keys.pending.is_empty()
        || !app.toasts.is_empty()
        || app.model.tour.step().is_some()
}

/// Notes a frame that drew everything.
pub(super) fn drew_everything(
    app: &mut App,
    request: LayoutRequest,
    slices: &Revisions,
    wake: Option<Duration>,
) {
    app.frame.chrome_wake = app.next_wake();
    app.frame.wake = [app.frame.chrome_wake, wake].into_iter().flatten().min();
    // What lies over the views now has to go from them later.
    app.frame.last = (!is_covered(app)).then(|| LastFrame {
        request,
        scopes: app.view_scopes(),
        slices: *slices,
        chrome: chrome_of(app),
    });
}

/// Draws what has changed into the frame before; `None`: everything has to be drawn. Gives the place of the cursor.
pub(super) fn draw(app: &mut App, slices: &Revisions, buf: &mut Buffer) -> Option<Option<Position>> {
    let mut last = app.frame.last.take()?;
    let scopes = app.view_scopes();
    if is_covered(app) || buf.area != last.request.screen || scopes != last.scopes {
        return None;
    }
    if !last.slices.same(slices, Slice::SHARED) {
        return None;
    }
    let late = app.frame.chrome_wake.is_some_and(|w| w <= app.model.mono);
    let notices = (late || !last.slices.same(slices, CHROME)).then(|| app.notice_lines(buf.area));
    let rows = notices.as_ref().map_or(last.request.notices, |lines| lines.len() as u16);
    if layout_request::request(app, buf.area, rows) != last.request {
        return None;
    }
    let areas = app.screen.areas.clone().filter(|a| a.class != Class::Tiny)?;
    app.frame.drawn.clear();
    let cursor = panels(app, &areas, &scopes, slices, buf);
    let chrome = chrome_of(app);
    if notices.is_some() || chrome != last.chrome {
        // Narrow screens have one line for header and footer, and a mark beside the composer.
        if areas.class <= Class::S {
            return None;
        }
        draw_chrome(app, &areas, notices, buf);
        last.chrome = chrome;
    }
    last.slices = *slices;
    app.frame.last = Some(last);
    app.frame.chrome_wake = app.next_wake();
    let wakes = app.views.iter().filter_map(|v| v.wake());
    app.frame.wake = app.frame.chrome_wake.into_iter().chain(wakes).min();
    Some(cursor)
}

/// Draws the panels that have changed.
fn panels(
    app: &mut App,
    areas: &Areas,
    scopes: &[&'static str],
    slices: &Revisions,
    buf: &mut Buffer,
) -> Option<Position> {
    let mut cursor = None;
    for part in areas.parts().filter(|p| p.inner.area() > 0) {
        let Some(view) = app.views.iter().find(|v| v.view == part.view) else { continue };
        if !view.is_drawn(&app.model, slices) {
            let new = app.panel_again(part, scopes, slices, buf, &mut cursor);
            app.frame.drawn.push(new);
        } else if app.screen.focus == part.view {
            cursor = view.panel().cursor(part.inner, &app.model).filter(|p| part.inner.contains(*p));
        }
    }
    cursor
}

/// Draws header, footer, borders and the notice bar; the last one only when there are new lines for it.
fn draw_chrome(app: &mut App, areas: &Areas, notices: Option<Vec<notice_bar::NoticeLine>>, buf: &mut Buffer) {
    let scopes = app.scopes();
    if let Some(lines) = &notices {
        app.screen.notice_actions = lines.iter().map(|l| l.act).collect();
    }
    let cx = cx!(app, &scopes, false);
    if let Some(lines) = notices {
        draw::clear(buf, areas.notices, cx.theme.style(Role::Text));
        notice_bar::draw(&cx, &lines, areas.notices, buf);
    }
    frame::draw(app, areas, &cx, buf);
    app.status(areas, &cx, buf);
    let verticals =
        areas.verticals.iter().map(|(x, from, to)| Rect { x: *x, y: *from, width: 1, height: to - from });
    let titles = areas.parts().map(|p| p.title).chain([areas.notices_title, areas.notices]);
    let all = [areas.header, areas.footer].into_iter().chain(titles).chain(areas.rules.iter().copied());
    app.frame.drawn.extend(all.chain(verticals).filter(|r| r.area() > 0));
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
