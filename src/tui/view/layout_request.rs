//! The request of the views on the screen to the layout.

use ratatui::layout::Rect;

use crate::app::App;
use crate::app::state::Owner;
use crate::panel::{Placement, View};
use crate::view::layout::{self, LayoutRequest, Section, SizeClass, ToastRequest};

/// Sections of the rail, in their fixed order.
pub(crate) const RAIL: [View; 4] = [View::Todo, View::Agents, View::Watch, View::Sessions];

/// Columns for which the rows of a section are counted: those of a side panel without its padding.
pub(crate) fn rail_columns(app: &App, screen: Rect) -> u16 {
    let (width, measure) = (screen.width, app.model.ui.measure.max(20));
    let tree = layout::has_tree(width, measure);
    let agents = app.screen.focus == View::Agents && app.screen.main != View::Agents;
    let columns = match (app.screen.half, agents) {
        (true, _) => width / 2,
        (false, true) => layout::agents_columns(width, measure, tree),
        (false, false) => layout::panel_columns(width, measure, tree),
    };
    columns.saturating_sub(2)
}

/// Returns what the views on the screen ask of the layout now; so many rows for the notice bar.
pub(crate) fn request(app: &App, screen: Rect, notices: u16) -> LayoutRequest {
    let request = without_toasts(app, screen, notices);
    if app.toasts.is_empty() {
        return request;
    }
    // How wide their rows are does not depend on how many there are.
    let areas = layout::layout(&request);
    let columns = app.toasts.columns(areas.header.width);
    let rows = app.toasts.rows(screen.height, (areas.toasts.rows.width, areas.toasts.most), columns > 0);
    LayoutRequest { toasts: ToastRequest { columns, rows }, ..request }
}

fn without_toasts(app: &App, screen: Rect, notices: u16) -> LayoutRequest {
    let class = SizeClass::of(screen.width, screen.height);
    let docked = docked(app);
    // The last row of a dialog is the padding below: there is as much above, or none at all.
    let rows = |height: u16| (height + 2 * layout::air(screen.height)).saturating_sub(1);
    let composer = match docked {
        Some((_, height)) => rows(height),
        None => app.facts(View::Composer).rows.unwrap_or(1).max(1),
    };
    LayoutRequest {
        screen,
        main: app.screen.main,
        focus: app.screen.focus,
        zoom: app.screen.zoom,
        rail: app.screen.rail,
        half: app.screen.half,
        sections: if class.wide() {
            RAIL.into_iter().map(|view| Section { view, rows: section_rows(app, view) }).collect()
        } else {
            Vec::new()
        },
        measure: app.model.ui.measure.max(20),
        composer,
        folded: app.questions.folded.as_ref().map_or(0, |l| match l.placement(&app.model) {
            Placement::Dock { height } => rows(height),
            _ => u16::MAX,
        }),
        notices,
        docked: docked.is_some(),
        start: app.model.is_start(),
        toasts: ToastRequest::default(),
    }
}

/// Rows that a section of the rail would fill.
fn section_rows(app: &App, view: View) -> u16 {
    let facts = app.facts(view);
    if facts.empty { 0 } else { facts.rows.unwrap_or(u16::MAX) }
}

/// The layer that lies in the composer's place, if one does, and the rows that it asks for.
pub(crate) fn docked(app: &App) -> Option<(Owner, u16)> {
    app.layers.iter().rev().find_map(|l| match l.placement(&app.model) {
        Placement::Dock { height } => Some((Owner::Layer(l.id), height)),
        _ => None,
    })
}
