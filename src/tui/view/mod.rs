//! Draws the screen: layout, grounds, panels, dialogs, boxes on top. Changes nothing but caches.

pub mod agent_view;
pub(crate) mod arrange;
pub(crate) mod changes;
pub mod footer;
pub(crate) mod frame;
pub(crate) mod frame_state;
pub mod header;
pub mod layout;
pub(crate) mod layout_request;
pub(crate) mod notice_bar;
pub(crate) mod overlay;
pub mod statusline;
pub(crate) mod toast;
pub(crate) mod view_panel;
pub(crate) mod words;

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use crate::app::App;
use crate::app::state::{Layer, Owner};
use crate::model::Revisions;
use crate::panel::composer::Composer;
use crate::panel::conversation::empty;
use crate::panel::recent_sessions::Recent;
use crate::panel::{Attention, DrawCx, Hint, Panel, View};
use crate::theme::Role;
use crate::view::header::{Badge, HeaderClick, HeaderFacts};
use crate::view::layout::{Areas, SizeClass, ViewArea};
use crate::view::layout_request::RAIL;
use crate::view::overlay::cover::CoverSource;
use crate::widget::draw;

/// Makes a drawing context from single fields of the app, so that panels can be borrowed at the same time.
macro_rules! cx {
    ($app:expr, $scopes:expr, $focus:expr) => {
        $crate::panel::DrawCx {
            theme: $app.themes.current(),
            model: &$app.model,
            focus: $focus,
            now: $app.model.now,
            mono: $app.model.mono,
            ascii: $app.model.ui.ascii,
            reduced_motion: $app.model.ui.reduced_motion,
            keys: &$app.keys.map,
            scopes: $scopes,
            kept: 0,
            delay: None,
        }
    };
}
pub(crate) use cx;

impl App {
    /// Draws into `buf` (its area is the screen) and returns the position of the cursor. `buf` holds the frame before:
    /// what has not changed stays as it is ([`App::drawn`]).
    pub fn draw(&mut self, buf: &mut Buffer) -> Option<Position> {
        self.tick_clock();
        self.frame.dirty = false;
        draw::set_ascii(self.model.ui.ascii);
        self.toasts.expire(self.model.mono);
        self.screen.size = buf.area;
        let screen = (buf.area.width, buf.area.height);
        if self.model.window.screen != screen {
            self.model.window.screen = screen;
        }
        let slices = self.model.revisions();
        self.count_views(buf.area, &slices);
        if self.screen.focus != View::Composer {
            let notices = self.notice_lines(buf.area).len();
            arrange::settle_focus(self, notices);
        }
        match changes::draw(self, &slices, buf) {
            Some(cursor) => cursor,
            None => self.draw_everything(&slices, buf),
        }
    }

    /// The next frame draws everything.
    pub(crate) fn redraw(&mut self) {
        self.frame.forget();
    }

    /// Returns what the last frame drew: cells elsewhere are as they were.
    pub fn drawn(&self) -> &[Rect] {
        &self.frame.drawn
    }

    /// Brings what the layout needs to know of the panels up to date.
    pub(super) fn count_views(&mut self, screen: Rect, slices: &Revisions) {
        let start = self.model.is_start() && layout::has_start(screen);
        let rail = layout_request::rail_columns(self, screen);
        for view in &mut self.views {
            let columns = match view.view {
                View::Composer if start => layout::start_columns(screen),
                View::Composer => screen.width.saturating_sub(2 * layout::PADDING),
                _ => rail,
            };
            view.count(&self.model, slices, columns);
        }
    }

    /// Sections of the key file that are active in the focused view.
    pub(super) fn view_scopes(&self) -> Vec<&'static str> {
        let focused = self.status_of(Owner::View(self.screen.focus)).map_or("global", |s| s.scope);
        self.registry.words().chain(focused)
    }

    fn draw_everything(&mut self, slices: &Revisions, buf: &mut Buffer) -> Option<Position> {
        self.frame.drawn.clear();
        self.frame.drawn.push(buf.area);
        let scopes = self.scopes();
        let notices = self.notice_lines(buf.area);
        let request = layout_request::request(self, buf.area, notices.len() as u16);
        let areas = layout::layout(&request);
        self.screen.shows_folded = areas.folded.area() > 0;
        frame::grounds(self, &areas, &cx!(self, &scopes, false), buf);
        if areas.class == SizeClass::Tiny {
            let style = self.themes.current().style(Role::Strong);
            let words = format!("{}x{} is too small; you can still type", buf.area.width, buf.area.height);
            draw::text(buf, areas.main.inner, &words, style);
        }
        let docked = layout_request::docked(self);
        // A box that takes the whole screen hides all but header and footer.
        let cover = CoverSource::of(self, &areas, buf.area);
        let layers = overlay::layer_areas(self, &areas, buf.area, cover.spare);
        let covered = overlay::is_covered(&layers, &areas, buf.area, cover.spare);
        if covered {
            // Toasts may stand in rows that the dialog leaves.
            draw::clear(buf, areas.body(buf.area), self.themes.current().style(Role::Ground));
        }
        // A view names the keys that hold in it, not those of a dialog that lies over it.
        let below = self.view_scopes();
        let mut cursor = None;
        self.views.iter_mut().for_each(|v| v.was_hidden(&self.model));
        self.questions.folded.iter_mut().for_each(Layer::was_hidden);
        for part in areas.parts() {
            let skip = covered
                || (part.view == View::Composer && docked.is_some())
                || (part.view != View::Composer && areas.class == SizeClass::Tiny);
            if !skip && part.inner.area() > 0 {
                self.view_into(part, &below, slices, buf, &mut cursor);
            }
        }
        let cx = cx!(self, &scopes, false);
        self.screen.notice_actions = notices.iter().map(|l| l.act).collect();
        if !covered {
            notice_bar::draw(&cx, &notices, areas.notices, buf);
            if areas.start.area() > 0 {
                empty::below(&cx, areas.start, self.recent(), buf);
            }
            frame::titles(self, &areas, &cx, buf);
            overlay::draw_folded(self, &areas, &scopes, slices, buf);
        }
        overlay::dim_behind(self.themes.current(), &layers, areas.body(buf.area), buf);
        overlay::draw_layers(self, &layers, &scopes, slices, buf, &mut cursor);
        // Measuring a dialog may change its hints: header and footer come after it.
        let cx = cx!(self, &scopes, false);
        self.screen.header_clicks = self.status(&areas, &cx, buf);
        let chrome = changes::chrome_of(self);
        let cx = cx!(self, &scopes, false);
        overlay::dim_behind(cx.theme, &layers, areas.header, buf);
        let cover = overlay::cover_draw::draw(self, cover, &areas, &cx, buf);
        let cursor = cursor.filter(|_| !cover.hides_cursor());
        self.screen.areas = Some(areas);
        let parts = changes::FrameParts { request, layers, chrome, cover };
        changes::drew_everything(self, parts, slices);
        cursor
    }

    /// The last sessions, which stand below the composer of the start screen.
    pub(crate) fn recent(&self) -> Option<&Recent> {
        let panel: &dyn std::any::Any = self.panel(Owner::View(View::Composer))?;
        panel.downcast_ref::<Composer>().map(Composer::recent)
    }

    /// The lines of the notice bar.
    pub(crate) fn notice_lines(&self, screen: Rect) -> Vec<notice_bar::NoticeLine> {
        // How wide the bar is does not depend on how high it is.
        let width = layout::layout(&layout_request::request(self, screen, 1)).notices.width;
        let scopes = self.scopes();
        let answered = self.layers.iter().any(|l| l.question(&self.model).is_some());
        let waits = !answered && !self.model.questions.open.is_empty();
        let mut lines = notice_bar::lines(&cx!(self, &scopes, false), width, waits);
        // Messages that the dialog on top lists are not listed twice.
        if self.status_of(self.top()).is_some_and(|s| s.scope.starts_with("queue")) {
            lines.retain(|l| l.act != Some("queue.open"));
        }
        lines
    }

    /// Columns of the main view, as drawn last.
    pub(crate) fn text_columns(&self) -> std::ops::Range<u16> {
        self.screen.areas.as_ref().map_or(0..0, |a| a.main.inner.left()..a.main.inner.right())
    }

    /// Draws the panel of a view on a cleared ground.
    fn view_into(
        &mut self,
        part: &ViewArea,
        scopes: &[&'static str],
        slices: &Revisions,
        buf: &mut Buffer,
        cursor: &mut Option<Position>,
    ) {
        let Some(view) = self.views.iter_mut().find(|v| v.view == part.view) else { return };
        let focus = self.layers.is_empty() && self.screen.focus == part.view;
        let cx = cx!(self, scopes, focus);
        let panel = view.panel_to_draw();
        let refresh = panel.measure(part.inner, &cx);
        panel.draw(&cx, part.inner, buf);
        follow(panel, part.inner, &cx, cursor);
        view.was_drawn(&self.model, slices, part.inner, &refresh);
    }

    /// Draws the panel of a view over what it drew before; returns the part that is new.
    pub(crate) fn panel_again(
        &mut self,
        areas: &Areas,
        part: &ViewArea,
        scopes: &[&'static str],
        slices: &Revisions,
        buf: &mut Buffer,
        cursor: &mut Option<Position>,
    ) -> Rect {
        let area = part.inner;
        let Some(view) = self.views.iter_mut().find(|v| v.view == part.view) else { return Rect::ZERO };
        let focus = self.layers.is_empty() && self.screen.focus == part.view;
        let mut cx = cx!(self, scopes, focus);
        let panel = view.panel_to_draw();
        let refresh = panel.measure(area, &cx);
        cx.kept = refresh.kept.min(area.height);
        let rest = area.height - cx.kept;
        let blank = if cx.kept > 0 { refresh.blank.min(rest) } else { 0 };
        let new = Rect { y: area.y + cx.kept, height: rest - blank, ..area };
        draw::clear(buf, new, cx.theme.style(areas.surface(part)));
        panel.draw(&cx, area, buf);
        follow(panel, area, &cx, cursor);
        view.was_drawn(&self.model, slices, area, &refresh);
        new
    }

    /// Header and footer; at XS one line for both.
    pub(crate) fn status(&self, areas: &Areas, cx: &DrawCx<'_>, buf: &mut Buffer) -> Vec<HeaderClick> {
        let shown = |v: View| areas.part(v).is_some();
        let badges = RAIL
            .into_iter()
            .filter(|v| !shown(*v) && self.has_news(*v))
            .map(|view| {
                let facts = self.facts(view);
                Badge { view, title: facts.title.clone() }
            })
            .collect();
        let start = areas.start.area() > 0;
        let facts = HeaderFacts { badges, errors: self.unseen_errors(), start };
        let hints = self.hints();
        if areas.class == SizeClass::Xs {
            // The keys are more important than the place.
            let half = areas.footer.width / 3;
            let left = Rect { width: half, ..areas.footer };
            let right = Rect { x: areas.footer.x + half, width: areas.footer.width - half, ..areas.footer };
            let clicks = header::draw(cx, &facts, areas.class, left, buf);
            footer::draw(cx, &hints, right, buf);
            return clicks;
        }
        if areas.footer.area() > 0 {
            footer::draw(cx, &hints, areas.footer, buf);
        }
        match areas.header.area() {
            0 => Vec::new(),
            _ => {
                let width = areas.header.width - areas.toasts.line.width;
                header::draw(cx, &facts, areas.class, Rect { width, ..areas.header }, buf)
            }
        }
    }

    /// A panel has a state that is worth a badge while it is hidden: more than that there is something in it.
    fn has_news(&self, view: View) -> bool {
        let facts = self.facts(view);
        let state = facts.title.strip_prefix(view.name()).unwrap_or(&facts.title);
        !facts.empty && (!state.trim().is_empty() || facts.attention != Attention::None)
    }

    /// Returns what a click on the header does.
    pub(crate) fn header_click(&self, column: u16, row: u16) -> Option<&'static str> {
        let areas = self.screen.areas.as_ref()?;
        let line = if areas.header.area() > 0 { areas.header } else { areas.footer };
        let hit = |(columns, _): &&HeaderClick| columns.contains(&column);
        (line.y == row).then(|| self.screen.header_clicks.iter().find(hit).map(|(_, act)| *act)).flatten()
    }

    /// Hints of the footer: see [`footer::hints`].
    pub(crate) fn hints(&self) -> Vec<Hint> {
        footer::hints(self)
    }

    pub(super) fn which_delay(&self) -> Duration {
        Duration::from_millis(self.model.ui.which_key_delay)
    }

    /// When what is drawn around the panels changes by itself (monotonic).
    pub(crate) fn next_wake(&self) -> Option<Duration> {
        let now = self.model.mono;
        let mut all = vec![self.toasts.wake()];
        if !self.keys.pending.is_empty() && !self.keys.which {
            all.push(Some(self.keys.since + self.which_delay()).filter(|t| *t > now));
        }
        // The footer says "again" no longer than it is true.
        all.push(self.keys.escape.map(|t| t + crate::input::escape::DOUBLE).filter(|t| *t > now));
        all.push(self.outside.stop.map(|t| t + crate::input::escape::AGENTS).filter(|t| *t > now));
        all.push(self.model.questions.deadlines.values().min().copied());
        if self.model.agent.turn.retry.is_some() || self.model.agent.turn.awaited.is_some() {
            all.push(Some(now + Duration::from_secs(1)));
        }
        if self.layers.is_empty() && self.questions.first_run && self.model.engine.ready {
            all.push(self.quiet_from().filter(|t| *t > now));
        }
        if self.is_folded_hidden() && self.layers.is_empty() {
            all.push(self.quiet_from().filter(|t| *t > now));
        }
        all.push(self.keys.held.as_ref().map(|held| held.until));
        all.into_iter().flatten().min()
    }

    /// Errors since the log was last looked at.
    pub(crate) fn unseen_errors(&self) -> usize {
        use tiller_protocol::NoticeKind::{Info, User};
        // The refusal of a request was shown once; it is no lasting state.
        let lasts = |(_, n): &&(_, tiller_protocol::Notice)| !matches!(n.kind, Info | User);
        self.model.notices.iter().skip(self.outside.seen).filter(lasts).count()
    }
}

/// Where the panel with the focus wants the cursor.
fn follow(panel: &dyn Panel, area: Rect, cx: &DrawCx<'_>, cursor: &mut Option<Position>) {
    if cx.focus {
        *cursor = panel.cursor(area, cx.model).filter(|p| area.contains(*p)).or(*cursor);
    }
}

/// The panel below a point, and its area.
impl App {
    pub(crate) fn at(&self, x: u16, y: u16) -> Option<(Owner, Rect)> {
        let p = Position::new(x, y);
        if let (Some(l), Some(area)) = (self.layers.last(), self.screen.boxes.last()) {
            return area.contains(p).then_some((Owner::Layer(l.id), *area));
        }
        let areas = self.screen.areas.as_ref()?;
        if let Some(layer) = self.questions.folded.as_ref().filter(|_| areas.folded.contains(p)) {
            return Some((Owner::Layer(layer.id), areas.folded));
        }
        // A click on a title or on the composer's padding is a click on its panel.
        let hit = |part: &&ViewArea| {
            let band = part.view == View::Composer && areas.composer_band.contains(p);
            part.inner.contains(p) || part.title.contains(p) || band
        };
        areas.parts().find(hit).map(|part| (Owner::View(part.view), part.inner))
    }
}

#[cfg(test)]
mod look_tests;
