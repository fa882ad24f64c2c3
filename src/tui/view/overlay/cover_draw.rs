//! Draws what lies over views and dialogs: with the whole frame, and over parts of it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::area::full_of;
use super::cover::{Cover, CoverSource};
use super::{LayerArea, dim};
use crate::app::App;
use crate::dialog::commands::which_key;
use crate::keymap::action::Action;
use crate::panel::{Availability, DrawCx, Hint};
use crate::theme::Role;
use crate::view::cx;
use crate::view::layout::{Areas, SizeClass};
use crate::widget::draw;

impl CoverSource {
    pub(in crate::view) fn of(app: &App, areas: &Areas, screen: Rect) -> Self {
        let due = app.keys.which || app.model.mono >= app.keys.since + app.which_delay();
        Self {
            toasts: app.toasts.revision(),
            spare: toast_rows(app, areas, screen),
            pending: app.keys.pending.clone(),
            keys_shown: due && !app.keys.pending.is_empty() && areas.class > SizeClass::Tiny,
        }
    }

    /// True where it can be kept while what lies below it is drawn: the keys dim toasts.
    fn can_stay(&self, app: &App) -> bool {
        !self.keys_shown || app.toasts.is_empty()
    }
}

/// Draws the cover over a frame that was drawn as a whole.
pub(in crate::view) fn draw(
    app: &App,
    source: CoverSource,
    areas: &Areas,
    cx: &DrawCx<'_>,
    buf: &mut Buffer,
) -> Cover {
    let toasts = draw_toasts(app, &source, areas, cx, buf);
    let mut keys = Rect::ZERO;
    if source.keys_shown {
        dim::dim(cx.theme, areas.header, buf);
        dim::dim(cx.theme, areas.body(buf.area), buf);
        keys =
            which_key::draw(cx, &app.keys.pending, &|action| refused(app, action), &hints(app), areas, buf);
    }
    Cover { source, toasts, keys }
}

/// How the panel on top calls its actions now.
fn hints(app: &App) -> Vec<Hint> {
    app.panel(app.top()).map_or_else(Vec::new, |panel| panel.hints(&app.model))
}

impl Cover {
    /// True where the cover of the next frame is this one.
    pub(in crate::view) fn stays(&self, app: &App, source: &CoverSource) -> bool {
        self.source == *source && source.can_stay(app)
    }

    /// Lies over the parts that were drawn below it.
    pub(in crate::view) fn draw_again(&self, app: &mut App, areas: &Areas, buf: &mut Buffer) {
        let scopes = app.scopes();
        let cx = cx!(app, &scopes, false);
        let drawn = &app.frame.drawn;
        let mut again = Vec::new();
        if self.source.keys_shown {
            let dims = [areas.header, areas.body(buf.area)];
            for (n, part) in drawn.iter().enumerate() {
                // What was drawn twice is dimmed once.
                let new = part.positions().filter(|at| !drawn[..n].iter().any(|r| r.contains(*at)));
                for at in new.filter(|at| dims.iter().any(|r| r.contains(*at))) {
                    dim::dim(cx.theme, Rect { x: at.x, y: at.y, width: 1, height: 1 }, buf);
                }
            }
            if drawn.iter().any(|r| r.intersects(self.keys)) {
                let refused = |action| refused(app, action);
                again.push(which_key::draw(&cx, &app.keys.pending, &refused, &hints(app), areas, buf));
            }
        } else if drawn.iter().any(|r| self.toasts.iter().any(|t| r.intersects(*t))) {
            again.extend(draw_toasts(app, &self.source, areas, &cx, buf));
        }
        app.frame.drawn.extend(again);
    }
}

/// True for an action that the dialog on top cannot do now.
fn refused(app: &App, action: Action) -> bool {
    let top = app.layers.last().map(|layer| layer.panel().availability(action, &app.model));
    matches!(top, Some(Availability::Unavailable(_)))
}

/// Draws the toasts; returns the cells that they fill.
fn draw_toasts(
    app: &App,
    source: &CoverSource,
    areas: &Areas,
    cx: &DrawCx<'_>,
    buf: &mut Buffer,
) -> [Rect; 2] {
    let line = areas.toasts.line;
    app.toasts.draw_line(cx, line, buf);
    let rows = match source.spare {
        0 => areas.toasts.rows,
        spare => {
            let full = full_of(areas, buf.area, 0);
            let rows = Rect { y: full.bottom() - spare, height: spare, ..full };
            // Cells beside them would show the screen below the dialog.
            draw::clear(buf, rows, cx.theme.style(Role::Ground));
            rows
        }
    };
    let drawn = app.toasts.draw(cx, rows, line.area() > 0, buf);
    [line, if source.spare > 0 { rows } else { drawn }]
}

/// Rows at the bottom that the dialogs leave to toasts, when one of them would lie over the rows that the layout has for
/// these: it scrolls inside.
fn toast_rows(app: &App, areas: &Areas, screen: Rect) -> u16 {
    if app.layers.is_empty() || app.toasts.is_empty() {
        return 0;
    }
    let full = full_of(areas, screen, 0);
    let line = areas.toasts.line.area() > 0;
    let need = app.toasts.rows(screen.height, (full.width, (full.height / 3).max(1)), line);
    let rows = areas.toasts.rows;
    let covers = |l: &crate::app::state::Layer| {
        let outer = LayerArea::new(l.placement(&app.model), areas, screen, 0).outer;
        rows.is_empty() || outer.intersects(rows)
    };
    if app.layers.iter().any(covers) { need.min(full.height) } else { 0 }
}
