//! The dialogs: where they lie, the ground and the title that they get from the view, and what lies behind them.

pub(crate) mod area;
pub(in crate::view) mod cover;
pub(in crate::view) mod cover_draw;
mod dim;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use crate::app::App;
use crate::app::state::Owner;
use crate::model::Revisions;
use crate::panel::DrawCx;
use crate::theme::Theme;
use crate::view::layout::{Areas, air};
use crate::view::{cx, follow};
pub(crate) use area::{LayerArea, is_covered};
use dim::{blank, dim};

/// Dims what lies behind floating dialogs, of cells that were drawn since the last time. Narrow strips beside a dialog
/// become blank.
pub(crate) fn dim_behind(theme: &Theme, layers: &[LayerArea], drawn: Rect, buf: &mut Buffer) {
    if layers.iter().any(|l| l.floats) {
        dim(theme, drawn, buf);
    }
    let screen = buf.area;
    for strip in layers.iter().flat_map(|layer| layer.strips(screen)) {
        blank(strip.intersection(drawn), buf);
    }
}

/// Each layer with the cells that it fills. `spare`: rows at the bottom that are left to toasts.
pub(crate) fn layer_areas(app: &App, areas: &Areas, screen: Rect, spare: u16) -> Vec<LayerArea> {
    let area = |layer: &crate::app::state::Layer| {
        let place = layer.panel().placement(screen.width, &app.model);
        let made = LayerArea::new(place, areas, screen, spare);
        let asks = layer.question(&app.model).is_some();
        // The buttons of a question do not touch the footer.
        let air =
            if asks && made.outer == area::full_of(areas, screen, spare) { air(screen.height) } else { 0 };
        let inner = Rect { height: made.inner.height.saturating_sub(air), ..made.inner };
        LayerArea { id: layer.id, asks, inner, ..made }
    };
    app.layers.iter().map(area).collect()
}

/// Draws the question that is folded, if one is.
pub(crate) fn draw_folded(
    app: &mut App,
    areas: &Areas,
    scopes: &[&'static str],
    slices: &Revisions,
    buf: &mut Buffer,
) {
    let cx = cx!(app, scopes, false);
    let Some(layer) = app.questions.folded.as_mut().filter(|_| areas.folded.area() > 0) else { return };
    let area = LayerArea::folded(layer.id, areas.folded, areas, buf.area);
    area.draw(layer.panel(), &cx, buf);
    let panel = layer.panel_to_draw();
    let refresh = panel.measure(area.inner, &cx);
    panel.draw(&cx, area.inner, buf);
    layer.was_drawn(slices, None, cx.mono, area.inner, &refresh);
}

/// Draws the layers, each over those before it.
pub(crate) fn draw_layers(
    app: &mut App,
    layers: &[LayerArea],
    scopes: &[&'static str],
    slices: &Revisions,
    buf: &mut Buffer,
    cursor: &mut Option<Position>,
) {
    app.screen.boxes.clear();
    for (i, layer) in layers.iter().enumerate() {
        let top = i + 1 == layers.len();
        let mut delay = app.layers[i].delay;
        delay.note_drawn(&cx!(app, scopes, top));
        app.layers[i].delay = delay;
        let Some(panel) = app.panel(Owner::Layer(layer.id)) else { continue };
        if layer.floats && i > 0 {
            dim(app.themes.current(), layers[i - 1].outer, buf);
        }
        layer.draw(panel, &cx!(app, scopes, top), buf);
        app.screen.boxes.push(layer.inner);
        if top {
            *cursor = None;
        }
        layer_into(app, (i, layer.inner), top, scopes, slices, buf, cursor);
    }
}

/// Draws the panel of a layer.
fn layer_into(
    app: &mut App,
    (n, area): (usize, Rect),
    focus: bool,
    scopes: &[&'static str],
    slices: &Revisions,
    buf: &mut Buffer,
    cursor: &mut Option<Position>,
) {
    let delay = app.layers[n].delay.remaining(&app.model).filter(|_| focus);
    let cx = DrawCx { delay, ..cx!(app, scopes, focus) };
    let panel = app.layers[n].panel_to_draw();
    let refresh = panel.measure(area, &cx);
    panel.draw(&cx, area, buf);
    follow(panel, area, &cx, cursor);
    let now = cx.mono;
    app.layers[n].was_drawn(slices, delay, now, area, &refresh);
}

/// True when all layers would look the same as they were drawn last.
pub(crate) fn are_layers_drawn(app: &App, slices: &Revisions) -> bool {
    let top = app.layers.last().map(|l| l.id);
    app.layers.iter().all(|l| l.is_drawn(&app.model, slices, Some(l.id) == top))
}

/// Where the layer on top wants the cursor.
pub(crate) fn layer_cursor(app: &App) -> Option<Position> {
    let area = *app.screen.boxes.last()?;
    app.layers.last()?.panel().cursor(area, &app.model).filter(|p| area.contains(*p))
}
