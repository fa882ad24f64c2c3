//! Draws the screen: layout, borders, panels, layers, boxes on top. Changes nothing but caches.

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
pub mod statusline;
pub(crate) mod toast;
pub(crate) mod view_panel;
pub(crate) mod words;

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use crate::app::state::Owner;
use crate::app::{App, global};
use crate::dialog::commands::which_key;
use crate::input::escape::EscapeStep;
use crate::model::Revisions;
use crate::panel::{DrawCx, Hint, KeyRouting, Panel, Placement, View};
use crate::theme::Role;
use crate::view::header::{Badge, HeaderFacts};
use crate::view::layout::{Areas, SizeClass, ViewArea};
use crate::view::layout_request::RAIL;
use crate::view::view_panel::ViewPanel;
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
        match changes::draw(self, &slices, buf) {
            Some(cursor) => cursor,
            None => self.draw_everything(&slices, buf),
        }
    }

    /// The next frame draws everything.
    pub(crate) fn redraw(&mut self) {
        self.frame.forget();
    }

    /// What the last frame drew: cells elsewhere are as they were.
    pub fn drawn(&self) -> &[Rect] {
        &self.frame.drawn
    }

    /// Brings what the layout needs to know of the panels up to date.
    pub(super) fn count_views(&mut self, screen: Rect, slices: &Revisions) {
        for view in &mut self.views {
            let columns = match view.view {
                View::Composer => screen.width.saturating_sub(2),
                _ => layout_request::RAIL_COLUMNS,
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
        draw::clear(buf, buf.area, self.themes.current().style(Role::Ground));
        if areas.class == SizeClass::Tiny {
            let style = self.themes.current().style(Role::Strong);
            let words = format!("{}x{} is too small; you can still type", buf.area.width, buf.area.height);
            draw::text(buf, areas.main.inner, &words, style);
        }
        let docked = layout_request::docked(self);
        // A box that takes the whole screen hides all but header and footer.
        let spare = self.toast_rows(&areas, &cx!(self, &scopes, false), buf.area);
        let layers = self.layer_areas(&areas, buf.area, spare);
        let covered = is_covered(&layers, &areas, buf.area, spare);
        // A view names the keys that hold in it, not those of a dialog that lies over it.
        let below = self.view_scopes();
        let parts: Vec<ViewArea> = areas.parts().copied().collect();
        let mut cursor = None;
        self.views.iter_mut().for_each(ViewPanel::was_hidden);
        for part in parts {
            let skip = covered
                || (part.view == View::Composer && docked.is_some())
                || (part.view != View::Composer && areas.class == SizeClass::Tiny);
            if skip || part.inner.area() == 0 {
                continue;
            }
            let focus = self.layers.is_empty() && self.screen.focus == part.view;
            self.view_into(&part, focus, &below, slices, buf, &mut cursor);
        }
        let cx = cx!(self, &scopes, false);
        self.screen.notice_actions = notices.iter().map(|l| l.act).collect();
        if !covered {
            notice_bar::draw(&cx, &notices, areas.notices, buf);
            frame::draw(self, &areas, &cx, buf);
        }
        if areas.class == SizeClass::S || areas.class == SizeClass::Xs {
            let c = areas.composer.inner;
            if c.area() > 0 && c.x >= 2 && docked.is_none() && !covered {
                draw::put(buf, c.x - 2, c.y, ">", cx.theme.style(Role::User));
            }
        }
        self.status(&areas, &cx, buf);
        let chrome = changes::chrome_of(self);
        self.draw_layers(&areas, &layers, &scopes, slices, buf, &mut cursor);
        let cx = cx!(self, &scopes, false);
        self.toasts.draw(&cx, self.toast_room(&areas, buf.area), buf);
        self.draw_which_key(&areas, &cx, buf);
        self.screen.areas = Some(areas);
        changes::drew_everything(self, request, layers, chrome, slices);
        cursor
    }

    /// The lines of the notice bar.
    pub(crate) fn notice_lines(&self, screen: Rect) -> Vec<notice_bar::NoticeLine> {
        // How wide the bar is does not depend on how high it is.
        let width = layout::layout(&layout_request::request(self, screen, 1)).notices.width;
        let scopes = self.scopes();
        let mut lines = notice_bar::lines(&cx!(self, &scopes, false), self.waiting_asks(), width);
        // Messages that the dialog on top lists are not listed twice.
        if self.status_of(self.top()).is_some_and(|s| s.scope.starts_with("queue")) {
            lines.retain(|l| l.act != Some("queue.open"));
        }
        lines
    }

    /// Where toasts go: in the main view; with a dialog on the screen above or below it, never over it.
    fn toast_room(&self, areas: &Areas, screen: Rect) -> Rect {
        let main = areas.main.inner;
        let Some(inner) = self.screen.boxes.last().filter(|_| !self.layers.is_empty()) else { return main };
        let full = full_of(areas, screen, 0);
        // With its border.
        let (top, bottom) = (inner.y.saturating_sub(1), (inner.bottom() + 1).min(full.bottom()));
        let above = Rect { y: full.y, height: top.saturating_sub(full.y), ..full };
        let below = Rect { y: bottom, height: full.bottom() - bottom, ..full };
        if below.height >= above.height { below } else { above }
    }

    /// Rows at the bottom that a dialog leaves to toasts, when it would fill the screen: it scrolls inside.
    fn toast_rows(&self, areas: &Areas, cx: &DrawCx<'_>, screen: Rect) -> u16 {
        let Some(top) = self.layers.last().filter(|_| !self.toasts.is_empty()) else { return 0 };
        let full = full_of(areas, screen, 0);
        let area = box_of(top.placement(&self.model), areas, screen, 0);
        let free = full.height.saturating_sub(area.height + 2);
        let most = full.height / 3;
        let need = self.toasts.rows(cx, full.width, most);
        if free >= need { 0 } else { need }
    }

    /// Columns of the main view, as drawn last.
    pub(crate) fn text_columns(&self) -> std::ops::Range<u16> {
        self.screen.areas.as_ref().map_or(0..0, |a| a.main.inner.left()..a.main.inner.right())
    }

    /// Draws the panel of a view on a cleared ground.
    fn view_into(
        &mut self,
        part: &ViewArea,
        focus: bool,
        scopes: &[&'static str],
        slices: &Revisions,
        buf: &mut Buffer,
        cursor: &mut Option<Position>,
    ) {
        let Some(view) = self.views.iter_mut().find(|v| v.view == part.view) else { return };
        let cx = cx!(self, scopes, focus);
        let panel = view.panel_to_draw();
        let refresh = panel.measure(part.inner, &cx);
        panel.draw(&cx, part.inner, buf);
        follow(panel, part.inner, &cx, cursor);
        view.was_drawn(&self.model, slices, refresh.wake.map(|w| cx.mono + w));
    }

    /// Draws the panel of a view over what it drew before; returns the part that is new.
    pub(crate) fn panel_again(
        &mut self,
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
        draw::clear(buf, new, cx.theme.style(Role::Ground));
        panel.draw(&cx, area, buf);
        follow(panel, area, &cx, cursor);
        view.was_drawn(&self.model, slices, refresh.wake.map(|w| cx.mono + w));
        new
    }

    /// Draws the panel of a layer.
    fn layer_into(
        &mut self,
        (n, area): (usize, Rect),
        focus: bool,
        scopes: &[&'static str],
        slices: &Revisions,
        buf: &mut Buffer,
        cursor: &mut Option<Position>,
    ) {
        let delay = self.layers[n].delay.remaining(&self.model).filter(|_| focus);
        let cx = DrawCx { delay, ..cx!(self, scopes, focus) };
        let panel = self.layers[n].panel_to_draw();
        let refresh = panel.measure(area, &cx);
        panel.draw(&cx, area, buf);
        follow(panel, area, &cx, cursor);
        let wake = refresh.wake.map(|after| cx.mono + after);
        self.layers[n].was_drawn(slices, delay, wake);
    }

    /// Each layer with the cells that it fills. `spare`: rows at the bottom that are left to toasts.
    pub(crate) fn layer_areas(&self, areas: &Areas, screen: Rect, spare: u16) -> Vec<(u64, Rect)> {
        let mut all = Vec::with_capacity(self.layers.len());
        for (n, layer) in self.layers.iter().enumerate() {
            let place = layer.panel().placement(screen.width, &self.model);
            let mut area = box_of(place, areas, screen, spare);
            // In the composer's place the frame is its border, unless another layer lies over that.
            if n > 0 && is_framed(place, areas) {
                let (x, y) = (area.x.saturating_sub(1), area.y.saturating_sub(1));
                area = Rect { x, y, width: area.width + 2, height: area.height + 2 }.intersection(screen);
            }
            all.push((layer.id, area));
        }
        all
    }

    /// Whether all layers would look the same as they were drawn last.
    pub(crate) fn are_layers_drawn(&self, slices: &Revisions) -> bool {
        let top = self.layers.last().map(|l| l.id);
        self.layers.iter().all(|l| l.is_drawn(&self.model, slices, Some(l.id) == top))
    }

    /// Where the layer on top wants the cursor.
    pub(crate) fn layer_cursor(&self) -> Option<Position> {
        let area = *self.screen.boxes.last()?;
        self.layers.last()?.panel().cursor(area, &self.model).filter(|p| area.contains(*p))
    }

    /// Header and footer; at XS one line for both.
    pub(crate) fn status(&self, areas: &Areas, cx: &DrawCx<'_>, buf: &mut Buffer) {
        let shown = |v: View| areas.part(v).is_some();
        let badges = RAIL
            .into_iter()
            .filter(|v| !shown(*v) && !self.facts(*v).empty)
            .map(|view| {
                let facts = self.facts(view);
                Badge { view, title: facts.title.clone(), attention: facts.attention }
            })
            .collect();
        let facts = HeaderFacts { badges, errors: self.unseen_errors() };
        let hints = self.hints();
        if areas.class == SizeClass::Xs {
            // The keys are more important than the place.
            let half = areas.footer.width / 3;
            let left = Rect { width: half, ..areas.footer };
            let right = Rect { x: areas.footer.x + half, width: areas.footer.width - half, ..areas.footer };
            header::draw(cx, &facts, areas.class, left, buf);
            footer::draw(cx, &hints, right, buf);
            return;
        }
        if areas.header.area() > 0 {
            header::draw(cx, &facts, areas.class, areas.header, buf);
        }
        if areas.footer.area() > 0 {
            footer::draw(cx, &hints, areas.footer, buf);
        }
    }

    /// Hints of the footer: the panel's first two, Escape, the panel's others, palette and help.
    pub(crate) fn hints(&self) -> Vec<Hint> {
        let top = self.status_of(self.top());
        if let Some(KeyRouting::Raw { release }) = top.map(|s| s.keys) {
            return vec![release.map_or(Hint::as_("global.escape", "keep"), |a| Hint::of(a.0))];
        }
        let escape_step = global::escape_step(self);
        if escape_step == EscapeStep::Prefix {
            // The next key belongs to the sequence, whatever it does otherwise.
            return vec![Hint::as_("global.escape", "cancel")];
        }
        let mut own = self.panel(self.top()).map_or_else(Vec::new, |p| p.hints(&self.model));
        let rest = own.split_off(own.len().min(2));
        // The first of two Escapes on an idle screen has no label.
        let escape = match escape_step {
            EscapeStep::Arm | EscapeStep::Nothing => None,
            // A question that is left stays open, unless its dialog says otherwise.
            EscapeStep::Layer => Some(top.map_or("close", |s| s.leave)),
            escape_step => escape_step.label(),
        };
        own.extend(escape.map(|label| Hint::as_("global.escape", label)));
        own.extend(rest);
        if self.layers.is_empty() {
            if self.screen.focus == View::Composer {
                own.push(Hint::of("global.profile"));
            }
            own.extend([Hint::of("palette.open"), Hint::of("global.leader")]);
        }
        own.push(Hint::of("help.open"));
        own
    }

    /// Draws the layers, each over those before it. `layers`: see [`App::layer_areas`].
    pub(crate) fn draw_layers(
        &mut self,
        areas: &Areas,
        layers: &[(u64, Rect)],
        scopes: &[&'static str],
        slices: &Revisions,
        buf: &mut Buffer,
        cursor: &mut Option<Position>,
    ) {
        self.screen.boxes.clear();
        for (i, (id, area)) in layers.iter().enumerate() {
            let (owner, area) = (Owner::Layer(*id), *area);
            let top = i + 1 == layers.len();
            let mut delay = self.layers[i].delay;
            delay.note_drawn(&cx!(self, scopes, top));
            self.layers[i].delay = delay;
            let Some(panel) = self.panel(owner) else { continue };
            let place = panel.placement(buf.area.width, &self.model);
            let title = panel.title(&self.model);
            let cx = cx!(self, scopes, top);
            let inner = match place {
                _ if i == 0 && is_framed(place, areas) => {
                    draw::clear(buf, area, cx.theme.style(Role::Band));
                    area
                }
                _ if areas.class <= SizeClass::Xs && area.height < 4 => {
                    draw::clear(buf, area, cx.theme.style(Role::Band));
                    area
                }
                _ => draw::boxed(buf, area, &title, &cx),
            };
            self.screen.boxes.push(inner);
            if top {
                *cursor = None;
            }
            self.layer_into((i, inner), top, scopes, slices, buf, cursor);
        }
    }

    fn draw_which_key(&self, areas: &Areas, cx: &DrawCx<'_>, buf: &mut Buffer) {
        if self.keys.pending.is_empty() || areas.class == SizeClass::Tiny {
            return;
        }
        if self.keys.which || self.model.mono >= self.keys.since + self.which_delay() {
            which_key::draw(cx, &self.keys.pending, areas, buf);
        }
    }

    fn which_delay(&self) -> Duration {
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
        all.push(self.model.questions.deadlines.values().min().copied());
        if self.model.agent.turn.retry.is_some() {
            all.push(Some(now + Duration::from_secs(1)));
        }
        let waits = self.waiting_asks() > self.questions.aside.len()
            || (self.questions.first_run && self.model.engine.ready);
        if self.layers.is_empty() && waits {
            let quiet = self.keys.typed.map_or(now, |t| t + crate::app::questions::QUIET);
            all.push(Some(quiet).filter(|t| *t > now));
        }
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

/// Whether a layer in the composer's place has the frame's border around it.
fn is_framed(place: Placement, areas: &Areas) -> bool {
    matches!(place, Placement::Dock { .. }) && areas.composer.title.area() > 0
}

/// Whether one of the layers hides all but header and footer. `spare`: rows at the bottom that are left to toasts.
pub(crate) fn is_covered(layers: &[(u64, Rect)], areas: &Areas, screen: Rect, spare: u16) -> bool {
    let full = full_of(areas, screen, spare);
    layers.iter().any(|(_, area)| *area == full)
}

/// Everything between header and footer, without so many rows at the bottom.
fn full_of(areas: &Areas, screen: Rect, spare: u16) -> Rect {
    Rect {
        y: screen.y + areas.header.height,
        height: screen.height.saturating_sub(areas.header.height + areas.footer.height + spare),
        ..screen
    }
}

/// Where a layer lies. What does not fit becomes the full screen, and scrolls inside.
fn box_of(place: Placement, areas: &Areas, screen: Rect, spare: u16) -> Rect {
    let full = full_of(areas, screen, spare);
    match place {
        Placement::Full | Placement::Rows(_) => full,
        Placement::Dock { height } if areas.composer.inner.area() > 0 => {
            let c = areas.composer.inner;
            // Narrow screens have no border there: the box is drawn around it, upwards.
            if areas.composer.title.area() > 0 { c } else { dock(full, height) }
        }
        Placement::Dock { height } => dock(full, height),
        Placement::Center { width, height } => {
            if width > full.width || height > full.height {
                return full;
            }
            Rect {
                x: full.x + (full.width - width) / 2,
                y: full.y + (full.height - height) / 3,
                width,
                height,
            }
        }
    }
}

/// At the bottom, above the footer.
fn dock(full: Rect, height: u16) -> Rect {
    let height = height.max(3).min(full.height);
    Rect { y: full.bottom() - height, height, ..full }
}

/// The panel below a point, and its area.
impl App {
    pub(crate) fn at(&self, x: u16, y: u16) -> Option<(Owner, Rect)> {
        let p = Position::new(x, y);
        if let (Some(l), Some(area)) = (self.layers.last(), self.screen.boxes.last()) {
            return area.contains(p).then_some((Owner::Layer(l.id), *area));
        }
        let areas = self.screen.areas.as_ref()?;
        areas.parts().find(|part| part.inner.contains(p)).map(|part| (Owner::View(part.view), part.inner))
    }
}
