//! Divides the screen among the views. Pure: sizes and requests in, rectangles out.

use ratatui::layout::Rect;

use crate::panel::View;
use crate::theme::Role;

/// Classes by size; see the table in `screen.md` 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SizeClass {
    /// Below 30 columns or 8 rows: a notice.
    Tiny,
    /// Below 60 columns or 16 rows: conversation, one-line composer, one status line.
    Xs,
    /// Below 80: header, view, composer and footer without a row between them.
    S,
    /// Below 112: one view at a time, badges in the header.
    M,
    /// Below 160: panels on the right.
    L,
    /// Wider panels, and the session tree on the left where the prose leaves room for it.
    Xl,
}

impl SizeClass {
    /// Of a screen.
    pub fn of(width: u16, height: u16) -> Self {
        match (width, height) {
            (..30, _) | (_, ..8) => Self::Tiny,
            (..60, _) | (_, ..16) => Self::Xs,
            (..80, _) => Self::S,
            (..112, _) => Self::M,
            (..160, _) => Self::L,
            _ => Self::Xl,
        }
    }

    /// Views lie side by side.
    pub fn wide(self) -> bool {
        self >= Self::L
    }
}

/// How much room the focused pane takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Zoom {
    #[default]
    Normal,
    Half,
    Full,
}

impl Zoom {
    /// The next step of `+` (`true`) or `_`.
    pub fn turn(self, up: bool) -> Self {
        match (self, up) {
            (Self::Normal, true) | (Self::Full, false) => Self::Half,
            (Self::Half, true) | (Self::Normal, false) => Self::Full,
            (Self::Full, true) | (Self::Half, false) => Self::Normal,
        }
    }
}

/// One section of the rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    pub view: View,
    /// Rows that it would fill; 0 when it is empty.
    pub rows: u16,
}

/// The facts that the layout is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutRequest {
    pub screen: Rect,
    /// The view that fills the main part.
    pub main: View,
    pub focus: View,
    pub zoom: Zoom,
    /// The rail may be shown, and takes half of the screen.
    pub rail: bool,
    pub half: bool,
    /// Sections of the rail in their fixed order.
    pub sections: Vec<Section>,
    /// Columns of prose at most: what a wide screen has beyond them goes to the panels.
    pub measure: u16,
    /// Rows of the composer's text, or of the dialog in its place with its title row and its last, blank row.
    pub composer: u16,
    /// Rows of a question that is shown above the composer; 0: there is none.
    pub folded: u16,
    /// Lines of the notice bar above the composer's text.
    pub notices: u16,
    /// A dialog takes the composer's place: it may take more.
    pub docked: bool,
    /// Nothing was said yet: the composer stands in the middle.
    pub start: bool,
    /// Room that the toasts take.
    pub toasts: ToastRequest,
}

/// Room for toasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToastRequest {
    /// Columns of the newest one at the right of the header; 0: none stands there.
    pub columns: u16,
    /// Rows of the others.
    pub rows: u16,
}

/// Where toasts stand: never over words of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToastAreas {
    /// The right part of the header's row.
    pub line: Rect,
    /// Rows of the main view, or below the composer of the start screen, that it gave up; without height: none.
    pub rows: Rect,
    /// Rows that there would be at most.
    pub most: u16,
}

/// A part of the screen that shows a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewArea {
    pub view: View,
    /// The row of its title; height 0 when there is none.
    pub title: Rect,
    /// Where its panel draws: without the padding.
    pub inner: Rect,
}

/// Rectangles. Parts that are not shown have no area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Areas {
    pub class: SizeClass,
    pub header: Rect,
    pub main: ViewArea,
    pub tree: Option<ViewArea>,
    pub rail: Vec<ViewArea>,
    /// The grounds of the side panels.
    pub bands: Vec<Rect>,
    /// The lines of the notice bar, and their ground: it continues the composer's band upwards.
    pub notices: Rect,
    pub notices_band: Rect,
    /// The question above the notices and the composer.
    pub folded: Rect,
    /// The row between what lies above and the composer's band, with its notices and the question.
    pub rule: Rect,
    pub composer: ViewArea,
    /// The ground of the composer, or of the dialog in its place.
    pub composer_band: Rect,
    /// Below the composer, while it stands in the middle.
    pub start: Rect,
    pub footer: Rect,
    /// Places of the toasts.
    pub toasts: ToastAreas,
}

impl Areas {
    /// Every part with a view, for drawing, mouse and focus by direction.
    pub fn parts(&self) -> impl Iterator<Item = &ViewArea> {
        self.tree.iter().chain([&self.main]).chain(&self.rail).chain([&self.composer])
    }

    /// The part that shows `view`.
    pub fn part(&self, view: View) -> Option<&ViewArea> {
        self.parts().find(|p| p.view == view && p.inner.area() > 0)
    }

    /// The frame draws `view`.
    pub fn shows(&self, view: View) -> bool {
        // A screen that is too small has a notice in the place of the main view.
        (self.class > SizeClass::Tiny || view == View::Composer) && self.part(view).is_some()
    }

    /// Returns what the part lies on: a band or the ground of the screen.
    pub(crate) fn surface(&self, part: &ViewArea) -> Role {
        let on_band = part.view == View::Composer || self.bands.iter().any(|b| b.intersects(part.inner));
        if on_band { Role::Band } else { Role::Ground }
    }

    /// Returns what lies between header and footer.
    pub(crate) fn body(&self, screen: Rect) -> Rect {
        let rows = self.header.height + self.footer.height;
        Rect { y: screen.y + self.header.height, height: screen.height.saturating_sub(rows), ..screen }
    }
}

/// Rows of the conversation that toasts leave, where there are more.
const BESIDE_TOASTS: u16 = 3;

/// Divides rows of a view: the view's, and those of toasts at their bottom.
fn with_toasts(w: &LayoutRequest, rows: Rect) -> (Rect, ToastAreas) {
    let most = rows.height.saturating_sub(BESIDE_TOASTS).max(u16::from(rows.height > 1));
    let height = w.toasts.rows.min(most);
    let above = Rect { height: rows.height - height, ..rows };
    let below = Rect { y: above.bottom(), height, ..trimmed(rows, PADDING, PADDING) };
    (above, ToastAreas { line: NONE, rows: below, most })
}

const NONE: Rect = Rect { x: 0, y: 0, width: 0, height: 0 };

/// Rows from which on there is air: a blank row below the header, and rows of padding in the bands.
const AIRY: u16 = 30;

/// Columns of padding at each side of a view.
pub(crate) const PADDING: u16 = 2;

/// Columns of a side panel: its padding is one of them at each side.
const PANEL: u16 = 32;
/// Columns of a side panel at most.
const WIDEST_PANEL: u16 = 64;

/// Most columns of the rail that its agents widen while they have the focus.
const AGENTS: u16 = 72;

/// Columns that the prose must leave for the session tree to have a band of its own.
const TWO_PANELS: u16 = 72;

/// Rows of a panel that has nothing to show.
const EXPLAINED: u16 = 3;

/// Columns of the composer at most while it stands in the middle.
const START: u16 = 96;

/// Lays out. The view with the focus is shown: in the main part where there is no room for it at a side. Only on a screen
/// that is too small for any view it is not.
pub fn layout(w: &LayoutRequest) -> Areas {
    let areas = divided(w);
    if areas.shows(w.focus) {
        return areas;
    }
    let alone = divided(&LayoutRequest { main: w.focus, ..w.clone() });
    if alone.shows(w.focus) { alone } else { areas }
}

fn divided(w: &LayoutRequest) -> Areas {
    let s = w.screen;
    let class = SizeClass::of(s.width, s.height);
    match class {
        SizeClass::Tiny => tiny(w, class),
        SizeClass::Xs => narrow(w, class),
        _ if w.start
            && !w.docked
            && w.folded == 0
            && w.main == View::Conversation
            && !is_full(w)
            && has_start(s) =>
        {
            with_start(w, whole(w, class))
        }
        _ => whole(w, class),
    }
}

/// Rows of padding above and below what lies in a band, on a screen of so many rows.
pub(crate) fn air(height: u16) -> u16 {
    u16::from(height >= AIRY)
}

fn row(s: Rect, y: u16, height: u16) -> Rect {
    Rect { x: s.x, y: s.y + y, width: s.width, height: height.min(s.height.saturating_sub(y)) }
}

/// Without so many columns at the left and at the right.
fn trimmed(r: Rect, left: u16, right: u16) -> Rect {
    let left = left.min(r.width);
    Rect { x: r.x + left, width: (r.width - left).saturating_sub(right), ..r }
}

/// Without the rows of padding on top.
fn below_air(r: Rect, air: u16) -> Rect {
    let air = air.min(r.height);
    Rect { y: r.y + air, height: r.height - air, ..r }
}

fn bare(view: View, inner: Rect) -> ViewArea {
    ViewArea { view, title: NONE, inner }
}

fn tiny(w: &LayoutRequest, class: SizeClass) -> Areas {
    let s = w.screen;
    let composer = if s.height > 1 { row(s, s.height - 1, 1) } else { s };
    let (notice, toasts) = with_toasts(w, row(s, 0, s.height.saturating_sub(1)));
    Areas {
        class,
        header: NONE,
        main: bare(w.main, notice),
        tree: None,
        rail: Vec::new(),
        bands: Vec::new(),
        notices: NONE,
        notices_band: NONE,
        folded: NONE,
        rule: NONE,
        composer: bare(View::Composer, composer),
        composer_band: composer,
        start: NONE,
        footer: NONE,
        toasts,
    }
}

/// Conversation, composer, one status line.
fn narrow(w: &LayoutRequest, class: SizeClass) -> Areas {
    let s = w.screen;
    // The composer grows over the conversation only while it has the focus.
    let most = if w.docked { s.height - 2 } else { (s.height / 2).max(1) };
    let composer = match (is_full(w), w.focus == View::Composer) {
        (true, _) if !w.docked => 0,
        // A dialog has its last row here, too.
        _ if w.docked => w.composer.saturating_add(1).max(3).min(most),
        (_, true) => w.composer.clamp(1, most),
        (_, false) => 1,
    };
    let notices = if is_full(w) { 0 } else { w.notices.min(1).min(s.height.saturating_sub(composer + 3)) };
    let above = s.height - 1 - composer - notices;
    // Two rows of the conversation stay in view.
    let folded = if is_full(w) { 0 } else { in_sight(w.folded.min(above.saturating_sub(2))) };
    let main = above - folded;
    let band = row(s, above + notices, composer);
    let (view, toasts) = with_toasts(w, row(s, 0, main));
    Areas {
        class,
        header: NONE,
        main: bare(w.main, view),
        tree: None,
        rail: Vec::new(),
        bands: Vec::new(),
        notices: trimmed(row(s, above, notices), PADDING, 1),
        notices_band: row(s, above, notices),
        folded: row(s, main, folded),
        rule: NONE,
        composer: bare(View::Composer, trimmed(band, PADDING, 0)),
        composer_band: band,
        start: NONE,
        footer: row(s, s.height - 1, 1),
        toasts,
    }
}

/// In fewer rows a question cannot be read: it is not shown.
fn in_sight(rows: u16) -> u16 {
    if rows < 4 { 0 } else { rows }
}

fn is_full(w: &LayoutRequest) -> bool {
    w.zoom == Zoom::Full && w.focus != View::Composer
}

/// Header, view, composer and footer; on wide screens with panels at the sides.
fn whole(w: &LayoutRequest, class: SizeClass) -> Areas {
    let s = w.screen;
    let air = air(s.height);
    let wide = class.wide();
    // A view other than the conversation is shown alone while it has the focus, where there is no room for two.
    let alone = !wide && !w.docked && (is_full(w) || (w.main != View::Conversation && w.focus == w.main));
    // A panel that was given the whole screen takes the place of the main view.
    let section = wide && is_full(w) && w.sections.iter().any(|x| x.view == w.focus);
    let main_view = if section { w.focus } else { w.main };
    let rule = u16::from(class >= SizeClass::M && !alone);
    // Three rows of the conversation stay in view.
    let most = if w.docked { s.height.saturating_sub(5 + rule) } else { s.height / 3 };
    let composer = match (alone, w.docked) {
        (true, _) => 0,
        (_, true) => w.composer.clamp(2, most.max(2)),
        (_, false) => w.composer.clamp(1, most.max(1)) + 2 * air,
    };
    let footer = s.height - 1;
    let band_top = footer - composer;
    let top = 1 + air;
    // A blank row stands above the lines of the notice bar; on low screens one between them and the title of a dialog.
    let blank = air.max(u16::from(w.docked));
    let notices = match alone || w.notices == 0 {
        true => 0,
        false => (w.notices + blank).min((band_top - rule).saturating_sub(top + 3)),
    };
    // A blank row alone says nothing.
    let notices = if notices > blank { notices } else { 0 };
    let above = band_top - rule - notices;
    let folded = if alone { 0 } else { in_sight(w.folded.min(above.saturating_sub(top + 3))) };
    let body = above - folded;
    let band = row(s, band_top, composer);
    let inside = trimmed(band, PADDING, PADDING);
    let sides = if wide && !is_full(w) { sides(w, main_view) } else { Sides::default() };
    let column = |x: u16, width: u16| Rect { x: s.x + x, y: s.y + 1, width, height: body - 1 };
    let middle =
        Rect { y: s.y + top, height: body - top, ..column(sides.tree, s.width - sides.tree - sides.rail) };
    let (middle, toasts) = with_toasts(w, middle);
    let columns = w.toasts.columns.min(s.width);
    let line = Rect { x: s.right() - columns, width: columns, height: u16::from(columns > 0), ..s };
    let tree = (sides.tree > 0).then(|| column(0, sides.tree));
    let rail = (sides.rail > 0).then(|| column(s.width - sides.rail, sides.rail));
    let notices_band = row(s, band_top - notices, notices);
    let tree_section = [Section { view: View::Sessions, rows: u16::MAX }];
    Areas {
        class,
        header: row(s, 0, 1),
        main: main_area(main_view, middle),
        tree: tree.and_then(|r| stack(&tree_section, w, r, air).pop()),
        rail: rail.map_or_else(Vec::new, |r| stack(&sides.sections, w, r, air)),
        bands: tree.into_iter().chain(rail).collect(),
        notices: Rect {
            height: notices.saturating_sub(blank),
            ..below_air(trimmed(notices_band, PADDING, PADDING), air)
        },
        notices_band,
        folded: row(s, body + rule, folded),
        rule: row(s, body, rule),
        composer: match w.docked {
            true => ViewArea { view: View::Composer, title: Rect { height: 1, ..inside }, inner: inside },
            false => bare(
                View::Composer,
                Rect { y: inside.y + air.min(composer), height: composer.saturating_sub(2 * air), ..inside },
            ),
        },
        composer_band: band,
        start: NONE,
        footer: row(s, footer, 1),
        toasts: ToastAreas { line, ..toasts },
    }
}

/// The composer stands in the middle only where there is room around it.
pub(crate) fn has_start(screen: Rect) -> bool {
    SizeClass::of(screen.width, screen.height) >= SizeClass::M && screen.height >= 20
}

/// Columns of the composer's text while it stands in the middle.
pub(crate) fn start_columns(screen: Rect) -> u16 {
    START.min(screen.width.saturating_sub(2)) - 2 * PADDING
}

/// Moves the composer into the middle of a screen on which nothing was said yet.
fn with_start(w: &LayoutRequest, areas: Areas) -> Areas {
    let rows = areas.composer_band.height;
    let (top, bottom) = (areas.main.inner.y, areas.footer.y);
    let notices = areas.notices_band.height;
    let line = areas.toasts.line;
    let left = areas.tree.map_or(w.screen.x, |_| areas.main.inner.x);
    let right = areas.bands.iter().map(|b| b.x).find(|x| *x > left).unwrap_or(w.screen.right());
    let width = (start_columns(w.screen) + 2 * PADDING).min(right - left);
    let y = top + ((bottom - top) * 2 / 5).min((bottom - top).saturating_sub(rows)).max(top + notices);
    let band = Rect { x: left + (right - left - width) / 2, y, width, height: rows };
    let pad = air(w.screen.height);
    let notices_band = Rect { y: y - notices, height: notices, ..band };
    let inside = Rect { y: band.y + pad, height: rows - 2 * pad, ..trimmed(band, PADDING, PADDING) };
    let below = (band.bottom() + 1).min(bottom);
    let (start, toasts) = with_toasts(w, Rect { y: below, height: bottom - below, ..band });
    Areas {
        main: bare(areas.main.view, Rect { y: top, height: notices_band.y - top, ..band }),
        notices: below_air(trimmed(notices_band, PADDING, PADDING), pad),
        notices_band,
        rule: NONE,
        composer: bare(View::Composer, inside),
        composer_band: band,
        start: trimmed(start, PADDING, PADDING),
        toasts: ToastAreas { line, ..toasts },
        bands: areas.bands.iter().map(|b| Rect { height: areas.footer.y - b.y, ..*b }).collect(),
        ..areas
    }
}

/// The main view without its padding. The conversation draws its marks in the padding at the left; a program's
/// terminal has none.
fn main_area(view: View, area: Rect) -> ViewArea {
    match view {
        View::Conversation => bare(view, trimmed(area, 0, PADDING)),
        _ => {
            let title = Rect { height: 1.min(area.height), ..trimmed(area, PADDING, PADDING) };
            let below = Rect { y: area.y + title.height, height: area.height - title.height, ..area };
            let pad = if view == View::Terminals { 0 } else { PADDING };
            ViewArea { view, title, inner: trimmed(below, pad, pad) }
        }
    }
}

/// Columns of the panels at the sides, and what the one on the right shows.
#[derive(Default)]
struct Sides {
    tree: u16,
    rail: u16,
    sections: Vec<Section>,
}

/// The prose leaves room for the session tree at the left.
pub(crate) fn has_tree(screen: u16, measure: u16) -> bool {
    screen.saturating_sub(measure.saturating_add(PADDING)) >= TWO_PANELS
}

/// Columns of a side panel, its padding included; with the session tree there are two.
pub(crate) fn panel_columns(screen: u16, measure: u16, tree: bool) -> u16 {
    let spare = screen.saturating_sub(measure.saturating_add(PADDING));
    (if tree { spare / 2 } else { spare }).clamp(PANEL, WIDEST_PANEL)
}

/// Columns of the rail while its agents have the focus: their rows have more to say than those of the other panels. The prose
/// gives up room for it only where there is no session tree.
pub(crate) fn agents_columns(screen: u16, measure: u16, tree: bool) -> u16 {
    let columns = panel_columns(screen, measure, tree);
    let spare = screen.saturating_sub(measure.saturating_add(PADDING));
    columns.max(AGENTS.min(if tree { spare.saturating_sub(columns) } else { screen / 2 }))
}

/// Panels are shown when at least two sections have something to show, or one of them has the focus.
fn sides(w: &LayoutRequest, main_view: View) -> Sides {
    let shown = |x: &&Section| (x.rows > 0 || x.view == w.focus) && x.view != main_view;
    let mut sections: Vec<Section> = w.sections.iter().filter(shown).copied().collect();
    let focused = sections.iter().any(|x| x.view == w.focus);
    if !w.rail || (sections.len() < 2 && !focused) {
        return Sides::default();
    }
    if w.half || (w.zoom == Zoom::Half && focused) {
        return Sides { tree: 0, rail: w.screen.width / 2, sections };
    }
    let tree = sections.len() > 1
        && sections.iter().any(|x| x.view == View::Sessions)
        && has_tree(w.screen.width, w.measure);
    let columns = panel_columns(w.screen.width, w.measure, tree);
    if tree {
        sections.retain(|x| x.view != View::Sessions);
    }
    let rail = match focused && w.focus == View::Agents {
        true => agents_columns(w.screen.width, w.measure, tree),
        false => columns,
    };
    Sides { tree: if tree { columns } else { 0 }, rail, sections }
}

/// Panels one below the other in a band: each with its title, and a blank row between two.
fn stack(sections: &[Section], w: &LayoutRequest, band: Rect, air: u16) -> Vec<ViewArea> {
    let inside = trimmed(Rect { y: band.y + air, height: band.height.saturating_sub(air), ..band }, 1, 1);
    let (heights, gap) = share(sections, w, inside.height);
    let mut y = inside.y;
    let mut out = Vec::with_capacity(sections.len());
    for (section, height) in sections.iter().zip(heights) {
        let part = Rect { y, height, ..inside };
        let title = Rect { height: height.min(1), ..part };
        let inner = Rect { y: y + title.height, height: height - title.height, ..part };
        out.push(ViewArea { view: section.view, title, inner });
        y = (y + height + gap).min(inside.bottom());
    }
    out
}

/// Rows of each section (with its title) in `height` rows, and the blank rows between two of them. What one does not
/// need goes to the others in order.
fn share(sections: &[Section], w: &LayoutRequest, height: u16) -> (Vec<u16>, u16) {
    let n = sections.len() as u16;
    let gap = u16::from(height >= 4 * n);
    let mut left = height.saturating_sub(gap * n.saturating_sub(1));
    let zoomed = |s: &Section| w.zoom != Zoom::Normal && s.view == w.focus;
    // Without rows it says what will appear there.
    let want = |s: &Section| match s.rows {
        _ if zoomed(s) => height,
        0 => EXPLAINED,
        rows => rows,
    };
    // Titles first, then as many rows for each as for the others, then what is left in order.
    let mut out = vec![0u16; sections.len()];
    let titles = left.min(n);
    out.iter_mut().take(usize::from(titles)).for_each(|h| *h = 1);
    left -= titles;
    let fair = left.checked_div(n).unwrap_or(0);
    for (s, h) in sections.iter().zip(&mut out) {
        let get = want(s).min(fair).min(left);
        *h += get;
        left -= get;
    }
    for (s, h) in sections.iter().zip(&mut out) {
        let more = want(s).saturating_add(1).saturating_sub(*h).min(left);
        *h += more;
        left -= more;
    }
    (out, gap)
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
