//! Where dialogs lie, and the ground and the title that they get.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::panel::{DrawCx, Panel, Placement};
use crate::text::line::Look;
use crate::text::paint::{self, PaintTarget};
use crate::text::width::width;
use crate::text::wrap::Row;
use crate::theme::Role;
use crate::view::layout::{Areas, PADDING, SizeClass, air};
use crate::widget::{draw, sign, surface};

/// Columns beside a dialog in which no text is read: the ends of words there are noise.
const NARROW: u16 = 16;

/// Where a dialog lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LayerArea {
    pub(crate) id: u64,
    /// Its ground.
    pub(crate) outer: Rect,
    /// The row of its title; height 0 when there is no room for one.
    pub(super) title: Rect,
    /// Where its panel draws.
    pub(crate) inner: Rect,
    /// It floats over the views: what lies behind it is dimmed.
    pub(in crate::view) floats: bool,
    /// It answers a question: a bar at its left says so.
    pub(super) asks: bool,
    /// It takes no keys: its title names the key that changes that.
    pub(super) folded: bool,
}

impl LayerArea {
    /// `spare`: rows at the bottom that are left to toasts.
    pub(super) fn new(place: Placement, areas: &Areas, screen: Rect, spare: u16) -> Self {
        let full = full_of(areas, screen, spare);
        let air = air(screen.height);
        let none = Self {
            id: 0,
            outer: full,
            title: Rect::ZERO,
            inner: full,
            floats: false,
            asks: false,
            folded: false,
        };
        let center = match place {
            Placement::Center { width, height } if width <= full.width && height <= full.height => {
                float(areas, full, (width + 2).min(full.width), (height + 1).min(full.height))
            }
            _ => None,
        };
        // Rows of padding above the title, between title and text, and below.
        let (outer, pads, floats) = match place {
            Placement::Dock { height } => {
                let fits = areas.composer.title.area() > 0;
                let outer = if fits { areas.composer_band } else { dock(full, height) };
                let air = if outer.height >= height + air { air } else { 0 };
                (outer, (air, 0, air), false)
            }
            _ => center.map_or((full, (air, air, 0), false), |outer| (outer, (1, 0, 1), true)),
        };
        if areas.class <= SizeClass::Xs && outer.height < 4 {
            return Self { outer, inner: outer, ..none };
        }
        let docked = matches!(place, Placement::Dock { .. });
        let (above, between, below) = if docked || outer.height > 8 { pads } else { (0, 0, 0) };
        let pad =
            if areas.class <= SizeClass::Xs || (floats && outer.width == full.width) { 1 } else { PADDING };
        let pad = pad.min(outer.width / 2);
        let column = Rect { x: outer.x + pad, width: outer.width - 2 * pad, ..outer };
        let used = (above + 1 + between).min(outer.height);
        Self {
            outer,
            title: Rect { y: outer.y + above, height: 1, ..column },
            inner: Rect { y: outer.y + used, height: (outer.height - used).saturating_sub(below), ..column },
            floats,
            ..none
        }
    }

    /// Of a question that is folded, in these cells.
    pub(super) fn folded(id: u64, outer: Rect, areas: &Areas, screen: Rect) -> Self {
        let air = if outer.height > 4 { air(screen.height) } else { 0 };
        let pad = if areas.class <= SizeClass::Xs { 1 } else { PADDING };
        let column = Rect { x: outer.x + pad, width: outer.width.saturating_sub(2 * pad), ..outer };
        let title = Rect { y: outer.y + air, height: 1.min(outer.height), ..column };
        let height = outer.height.saturating_sub(2 * air + 1);
        let inner = Rect { y: title.bottom(), height, ..column };
        Self { id, outer, title, inner, floats: false, asks: true, folded: true }
    }

    /// The narrow strips beside a floating dialog, in which nothing is shown.
    pub(in crate::view) fn strips(&self, screen: Rect) -> impl Iterator<Item = Rect> + use<> {
        let left = Rect { x: screen.x, width: self.outer.x.saturating_sub(screen.x), ..self.outer };
        let from = self.outer.right();
        let right = Rect { x: from, width: screen.right().saturating_sub(from), ..self.outer };
        let narrow = |strip: &Rect| (1..NARROW).contains(&strip.width);
        [left, right].into_iter().filter(narrow).take(if self.floats { 2 } else { 0 })
    }

    /// Ground, title and what marks a question.
    pub(super) fn draw(&self, panel: &dyn Panel, cx: &DrawCx<'_>, buf: &mut Buffer) {
        draw::clear(buf, self.outer, cx.theme.style(Role::Band));
        if !surface::has_bands(cx.theme) && self.floats {
            surface::outline(cx, self.outer, buf);
        }
        let state = panel.status(cx.model).state;
        if self.asks {
            surface::bar(cx, self.outer, state.tone(), buf);
        }
        if self.title.area() == 0 {
            return;
        }
        let mut room = self.title;
        if self.asks {
            let sign = sign::ATTENTION.text(cx.ascii);
            let used = draw::text(buf, room, sign, cx.theme.style(state.tone())) + 1;
            room = Rect { x: room.x + used.min(room.width), width: room.width.saturating_sub(used), ..room };
        }
        let mut state = state.line(cx.ascii);
        if self.folded {
            state.push(if state.text().is_empty() { "" } else { "   " }, Look::of(Role::Text));
            state.push(&cx.key("global.answer"), Look::of(Role::Accent));
            state.push(" answers", Look::of(Role::Dim));
        }
        let columns = (width(state.text()) as u16).min(room.width);
        if columns > 0 {
            let place = PaintTarget { x: room.right() - columns, y: room.y, columns };
            let row = Row { line: 0, start: 0, end: state.text().len() as u32 };
            paint::row(buf, place, &state, row, cx.theme, &[]);
            room.width -= (columns + 3).min(room.width);
        }
        draw::text(buf, room, &panel.title(cx.model), cx.theme.style(Role::Strong));
    }
}

/// True when one of the layers hides all but header and footer. `spare`: rows at the bottom that are left to toasts.
pub(crate) fn is_covered(layers: &[LayerArea], areas: &Areas, screen: Rect, spare: u16) -> bool {
    let full = full_of(areas, screen, spare);
    layers.iter().any(|l| l.outer == full)
}

/// Everything between header and footer, without so many rows at the bottom.
pub(super) fn full_of(areas: &Areas, screen: Rect, spare: u16) -> Rect {
    Rect {
        y: screen.y + areas.header.height,
        height: screen.height.saturating_sub(areas.header.height + areas.footer.height + spare),
        ..screen
    }
}

/// Where a dialog of this size floats. On the start screen it lies below the composer and is as wide, where there is room
/// for it, so that the draft stays in sight. `None`: it would lie over the rows of toasts.
fn float(areas: &Areas, full: Rect, width: u16, height: u16) -> Option<Rect> {
    let band = areas.composer_band;
    let below = band.bottom() + 1;
    let toasts = areas.toasts.rows;
    let over = |place: Rect| toasts.area() > 0 && place.intersects(toasts);
    if areas.start.area() > 0 && width <= band.width && below + height <= full.bottom() {
        let place = Rect { y: below, height, ..band };
        if !over(place) {
            return Some(place);
        }
    }
    let (x, y) = (full.x + (full.width - width) / 2, full.y + (full.height - height) / 3);
    let place = Rect { x, y, width, height };
    if !over(place) {
        return Some(place);
    }
    let y = toasts.y.checked_sub(height).filter(|y| *y >= full.y)?;
    Some(Rect { y, ..place })
}

/// At the bottom, above the footer.
fn dock(full: Rect, height: u16) -> Rect {
    let height = height.max(3).min(full.height);
    Rect { y: full.bottom() - height, height, ..full }
}
