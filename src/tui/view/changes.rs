//! The parts that a frame has to draw. A frame compares the numbers of the model's slices and of the panels with those of the frame
//! before: what has the same number stays on the screen as it is. Most frames are a key or some words of a reply, and
//! draw the inside of one view or one dialog.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use crate::app::App;
use crate::app::state::Layer;
use crate::model::{Revisions, Slice};
use crate::panel::View;
use crate::theme::Role;
pub(super) use crate::view::frame_state::FrameParts;
use crate::view::frame_state::{Chrome, LastFrame};
use crate::view::layout::{Areas, SizeClass};
use crate::view::overlay::cover::CoverSource;
use crate::view::overlay::{self, LayerArea};
use crate::view::view_panel::{PanelFacts, ViewPanel};
use crate::view::{cx, frame, layout_request, notice_bar};
use crate::widget::{draw, sign};

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

/// Returns what header, footer and borders would show now.
pub(super) fn chrome_of(app: &App) -> Chrome {
    let facts = |v: &ViewPanel| {
        let PanelFacts { title, empty, attention, .. } = v.facts();
        (title.clone(), *empty, *attention)
    };
    let docked = layout_request::docked(app).and_then(|(o, _)| app.panel(o));
    Chrome {
        hints: app.hints(),
        views: app.views.iter().map(facts).collect(),
        errors: app.unseen_errors(),
        docked: docked.map(|p| p.title(&app.model)),
        recent: app.recent().map(|r| r.revision()),
    }
}

/// Notes a frame that drew everything.
pub(super) fn drew_everything(app: &mut App, parts: FrameParts, slices: &Revisions) {
    note_wakes(app, &parts);
    let (scopes, active_scopes) = (app.view_scopes(), app.scopes());
    app.frame.last = Some(LastFrame { parts, scopes, active_scopes, slices: *slices });
}

/// Cells with a spinner that nothing hides.
fn spinners(app: &App, parts: &FrameParts) -> Vec<Position> {
    let screen = app.screen.size;
    let layers = &parts.layers;
    let hides =
        |l: &LayerArea, at: Position| l.outer.contains(at) || l.strips(screen).any(|s| s.contains(at));
    let free = |at: &&Position, from: usize| !layers[from..].iter().any(|l| hides(l, **at));
    let views = app.views.iter().flat_map(|v| v.spinners()).filter(|at| free(at, 0));
    let dialogs =
        app.layers.iter().enumerate().flat_map(|(n, layer)| {
            layer.spinners().iter().filter(move |at| free(at, (n + 1).min(layers.len())))
        });
    views.chain(dialogs).copied().filter(|at| !parts.cover.hides(*at)).collect()
}

/// Shows the present sign of each spinner: all that moves on the screen while something runs.
fn spin(app: &mut App, parts: &FrameParts, buf: &mut Buffer) {
    let cells = spinners(app, parts);
    let Some(sign) = cx!(app, &[], false).spinner().filter(|_| !cells.is_empty()) else { return };
    for at in cells {
        let Some(cell) = buf.cell_mut(at).filter(|c| c.symbol() != sign) else { continue };
        cell.set_symbol(sign);
        app.frame.drawn.push(Rect { x: at.x, y: at.y, width: 1, height: 1 });
    }
}

/// Notes when the screen changes by itself.
fn note_wakes(app: &mut App, parts: &FrameParts) {
    let frame = sign::SPINNER_FRAME.as_millis() as i64;
    let left = frame - app.model.now.millis().rem_euclid(frame);
    let left = std::time::Duration::from_millis(left.unsigned_abs());
    app.frame.spin = (!spinners(app, parts).is_empty()).then(|| app.model.mono + left);
    app.frame.chrome_wake = app.next_wake();
    let panels = app.views.iter().filter_map(ViewPanel::wake).chain(app.dialogs().filter_map(Layer::wake));
    app.frame.wake = app.frame.chrome_wake.into_iter().chain(panels).min();
}

/// Draws what has changed into the frame before; `None`: everything has to be drawn. Gives the place of the cursor.
pub(super) fn draw(app: &mut App, slices: &Revisions, buf: &mut Buffer) -> Option<Option<Position>> {
    let mut last = app.frame.last.take()?;
    let scopes = app.view_scopes();
    let active_scopes = app.scopes();
    if buf.area != last.parts.request.screen || scopes != last.scopes || active_scopes != last.active_scopes {
        return None;
    }
    if !last.slices.same(slices, Slice::SHARED) {
        return None;
    }
    let late = app.frame.chrome_wake.is_some_and(|w| w <= app.model.mono);
    let notices = (late || !last.slices.same(slices, CHROME)).then(|| app.notice_lines(buf.area));
    let rows = notices.as_ref().map_or(last.parts.request.notices, |lines| lines.len() as u16);
    if layout_request::request(app, buf.area, rows) != last.parts.request {
        return None;
    }
    let areas = app.screen.areas.clone().filter(|a| a.class != SizeClass::Tiny)?;
    let cover = CoverSource::of(app, &areas, buf.area);
    let layers = overlay::layer_areas(app, &areas, buf.area, cover.spare);
    if !last.parts.cover.stays(app, &cover) || layers != last.parts.layers {
        return None;
    }
    let covered = overlay::is_covered(&layers, &areas, buf.area, cover.spare);
    let folded = app.questions.folded.as_ref().filter(|_| areas.folded.area() > 0 && !covered);
    if folded.is_some_and(|l| !l.is_drawn(&app.model, slices, false)) {
        return None;
    }
    app.frame.drawn.clear();
    let mut cursor = if covered { None } else { panels(app, &areas, &layers, &scopes, slices, buf) };
    // Measuring a dialog may change its hints: header and footer come after it.
    if !layers.is_empty() {
        cursor = draw_layers(app, &layers, 0, slices, buf);
    }
    let chrome = chrome_of(app);
    // What is ready and the last sessions stand below the composer of the start screen.
    if (notices.is_some() || chrome.recent != last.parts.chrome.recent) && areas.start.area() > 0 {
        return None;
    }
    if notices.is_some() || chrome != last.parts.chrome {
        // Narrow screens have one line for header and footer, and a mark beside the composer.
        if areas.class <= SizeClass::S {
            return None;
        }
        let before = app.frame.drawn.len();
        draw_chrome(app, &areas, notices, &layers, covered, buf);
        if !layers.is_empty() {
            cursor = draw_layers(app, &layers, before, slices, buf);
        }
        last.parts.chrome = chrome;
    }
    last.parts.cover.draw_again(app, &areas, buf);
    spin(app, &last.parts, buf);
    note_wakes(app, &last.parts);
    cursor = cursor.filter(|_| !last.parts.cover.hides_cursor());
    last.slices = *slices;
    app.frame.last = Some(last);
    Some(cursor)
}

/// Draws the dialogs again, when one of them has changed or something below them was drawn: a part of the frame from
/// number `from` on. Gives the place of the cursor.
fn draw_layers(
    app: &mut App,
    layers: &[LayerArea],
    from: usize,
    slices: &Revisions,
    buf: &mut Buffer,
) -> Option<Position> {
    let touched = |r: &Rect| layers.iter().any(|l| l.outer.intersects(*r));
    if !app.frame.drawn[from..].iter().any(touched) && overlay::are_layers_drawn(app, slices) {
        return overlay::layer_cursor(app);
    }
    let mut cursor = None;
    let scopes = app.scopes();
    overlay::draw_layers(app, layers, &scopes, slices, buf, &mut cursor);
    app.frame.drawn.extend(layers.iter().map(|l| l.outer));
    cursor
}

/// Draws the panels that have changed.
fn panels(
    app: &mut App,
    areas: &Areas,
    layers: &[LayerArea],
    scopes: &[&'static str],
    slices: &Revisions,
    buf: &mut Buffer,
) -> Option<Position> {
    let mut cursor = None;
    // A docked dialog lies in the composer's place.
    let hidden = layout_request::docked(app).map(|_| View::Composer);
    for part in areas.parts().filter(|p| p.inner.area() > 0 && Some(p.view) != hidden) {
        let Some(view) = app.views.iter().find(|v| v.view == part.view) else { continue };
        if !view.is_drawn(&app.model, slices) {
            let new = app.panel_again(areas, part, scopes, slices, buf, &mut cursor);
            overlay::dim_behind(app.themes.current(), layers, new, buf);
            app.frame.drawn.push(new);
        } else if app.layers.is_empty() && app.screen.focus == part.view {
            cursor = view.panel().cursor(part.inner, &app.model).filter(|p| part.inner.contains(*p));
        }
    }
    cursor
}

/// Draws header and footer and, unless a dialog fills the screen, titles and the notice bar; the last one only when
/// there are new lines for it. `layers`: the dialogs; `covered`: one of them fills the screen.
fn draw_chrome(
    app: &mut App,
    areas: &Areas,
    notices: Option<Vec<notice_bar::NoticeLine>>,
    layers: &[LayerArea],
    covered: bool,
    buf: &mut Buffer,
) {
    let scopes = app.scopes();
    if let Some(lines) = &notices {
        app.screen.notice_actions = lines.iter().map(|l| l.act).collect();
    }
    let cx = cx!(app, &scopes, false);
    app.screen.header_clicks = app.status(areas, &cx, buf);
    app.frame.drawn.extend([areas.header, areas.footer].into_iter().filter(|r| r.area() > 0));
    overlay::dim_behind(app.themes.current(), layers, areas.header, buf);
    if covered {
        return;
    }
    let cx = cx!(app, &scopes, false);
    let mut drawn: Vec<Rect> = frame::title_rows(areas).collect();
    if let Some(lines) = notices {
        draw::clear(buf, areas.notices, cx.theme.style(Role::Band));
        notice_bar::draw(&cx, &lines, areas.notices, buf);
        drawn.extend(Some(areas.notices).filter(|r| r.area() > 0));
    }
    frame::titles(app, areas, &cx, buf);
    for area in &drawn {
        overlay::dim_behind(cx.theme, layers, *area, buf);
    }
    app.frame.drawn.extend(drawn);
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
