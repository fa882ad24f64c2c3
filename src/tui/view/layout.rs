//! Divides the screen among the views. Pure: sizes and requests in, rectangles out.

use ratatui::layout::Rect;

use crate::panel::View;

/// Classes by size; see the table in `screen.md` 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SizeClass {
    /// Below 30 columns or 8 rows: a notice.
    Tiny,
    /// Below 60 columns or 16 rows: conversation, one-line composer, one status line.
    Xs,
    /// Below 80: no borders.
    S,
    /// Below 112: one view at a time, badges in the header.
    M,
    /// Below 160: rail on the right.
    L,
    /// Session tree on the left as well.
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

/// How conversation and rail share a wide screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// A third for the rail.
    #[default]
    Normal,
    /// Half for the rail: many agents, long plans.
    Half,
    /// The conversation alone.
    Alone,
}

impl Preset {
    /// The next one, round and round.
    pub fn next(self) -> Self {
        match self {
            Self::Normal => Self::Half,
            Self::Half => Self::Alone,
            Self::Alone => Self::Normal,
        }
    }

    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Normal => "conversation and sidebar",
            Self::Half => "half and half",
            Self::Alone => "conversation only",
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

/// What the layout is made from.
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
    /// Rows of the composer (or of the dialog in its place), without its border.
    pub composer: u16,
    /// Rows of the notice bar between conversation and composer.
    pub notices: u16,
    /// A dialog takes the composer's place: it may take more.
    pub docked: bool,
}

/// A titled part of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewArea {
    pub view: View,
    /// Where the title (and border line) is; height 1, or 0 when there is none.
    pub title: Rect,
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
    pub notices: Rect,
    /// Row of the notice bar's border, when it has one.
    pub notices_title: Rect,
    pub composer: ViewArea,
    pub footer: Rect,
    /// Columns of vertical borders, from row to row.
    pub verticals: Vec<(u16, u16, u16)>,
    /// Further horizontal rules.
    pub rules: Vec<Rect>,
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
}

const NONE: Rect = Rect { x: 0, y: 0, width: 0, height: 0 };

/// Lays out.
pub fn layout(w: &LayoutRequest) -> Areas {
    let s = w.screen;
    let class = SizeClass::of(s.width, s.height);
    let full = w.zoom == Zoom::Full && w.focus != View::Composer;
    match class {
        SizeClass::Tiny => tiny(w, class),
        SizeClass::Xs => narrow(w, class, full),
        SizeClass::S | SizeClass::M => single(w, class, full),
        SizeClass::L | SizeClass::Xl => wide(w, class, full),
    }
}

fn row(s: Rect, y: u16, height: u16) -> Rect {
    Rect { x: s.x, y: s.y + y, width: s.width, height: height.min(s.height.saturating_sub(y)) }
}

fn bare(view: View, inner: Rect) -> ViewArea {
    ViewArea { view, title: NONE, inner }
}

fn tiny(w: &LayoutRequest, class: SizeClass) -> Areas {
    let s = w.screen;
    let composer = if s.height > 1 { row(s, s.height - 1, 1) } else { s };
    let notice = row(s, 0, s.height.saturating_sub(1));
    Areas {
        class,
        header: NONE,
        main: bare(w.main, notice),
        tree: None,
        rail: Vec::new(),
        notices: NONE,
        notices_title: NONE,
        composer: bare(View::Composer, composer),
        footer: NONE,
        verticals: Vec::new(),
        rules: Vec::new(),
    }
}

/// Conversation, composer, one status line.
fn narrow(w: &LayoutRequest, class: SizeClass, full: bool) -> Areas {
    let s = w.screen;
    // The composer grows over the conversation only while it has the focus.
    let most = if w.docked { s.height - 2 } else { (s.height / 2).max(1) };
    let composer = match (full, w.focus == View::Composer || w.docked) {
        (true, _) => 0,
        (_, true) => w.composer.clamp(1, most),
        (_, false) => 1,
    };
    let notices = if full { 0 } else { w.notices.min(1).min(s.height.saturating_sub(composer + 3)) };
    let main = s.height - 1 - composer - notices;
    let line = row(s, main + notices, composer);
    let inner = Rect { x: s.x + 2, width: s.width - 2, ..line };
    Areas {
        class,
        header: NONE,
        main: bare(w.main, row(s, 0, main)),
        tree: None,
        rail: Vec::new(),
        notices: row(s, main, notices),
        notices_title: NONE,
        composer: bare(View::Composer, if w.docked { line } else { inner }),
        footer: row(s, s.height - 1, 1),
        verticals: Vec::new(),
        rules: Vec::new(),
    }
}

/// One view at a time, with rules (M) or without (S).
fn single(w: &LayoutRequest, class: SizeClass, full: bool) -> Areas {
    let s = w.screen;
    let rule = u16::from(class == SizeClass::M);
    // A view other than the conversation is shown in full height while it has the focus.
    let full = full || (w.main != View::Conversation && w.focus == w.main && !w.docked);
    let rules = if full { rule } else { rule * 3 };
    // Three rows of the conversation stay in view.
    let most = if w.docked { s.height - 5 - rules } else { s.height / 3 };
    let (composer, notices) = if full { (0, 0) } else { (w.composer.clamp(1, most.max(1)), w.notices) };
    let notices = notices.min((s.height - 2 - rules - composer).saturating_sub(3));
    let main = s.height - 2 - rules - composer - notices;
    let top = 1 + rule;
    let line = row(s, top + main + notices + rule, composer);
    let inner = Rect { x: s.x + 1, width: s.width - 1, ..line };
    let lead = if class == SizeClass::S { Rect { x: s.x + 2, width: s.width - 2, ..line } } else { inner };
    let mut lines = Vec::new();
    if rule > 0 {
        lines.push(row(s, 1, 1));
        if !full {
            lines.push(row(s, top + main + notices, 1));
            lines.push(row(s, s.height - 2, 1));
        }
    }
    // What is there in place of the conversation says what it is.
    let title = if rule > 0 && w.main != View::Conversation { row(s, 1, 1) } else { NONE };
    Areas {
        class,
        header: row(s, 0, 1),
        main: ViewArea { title, ..bare(w.main, row(s, top, main)) },
        tree: None,
        rail: Vec::new(),
        notices: row(s, top + main, notices),
        notices_title: NONE,
        composer: bare(View::Composer, if w.docked { line } else { lead }),
        footer: row(s, s.height - 1, 1),
        verticals: Vec::new(),
        rules: lines,
    }
}

/// Columns of the rail.
fn rail_width(w: &LayoutRequest) -> u16 {
    let normal = (w.screen.width / 3).clamp(36, 44);
    if w.half || w.zoom == Zoom::Half && w.sections.iter().any(|s| s.view == w.focus) {
        w.screen.width / 2
    } else {
        normal
    }
}

/// Side by side, with borders that neighbours share.
fn wide(w: &LayoutRequest, class: SizeClass, full: bool) -> Areas {
    let s = w.screen;
    // A section of the rail that was given the whole screen takes the place of the main view.
    let section = full && w.sections.iter().any(|x| x.view == w.focus);
    let main_view = if section { w.focus } else { w.main };
    let most = if w.docked { s.height - 5 } else { s.height / 3 };
    let composer = w.composer.clamp(1, most.max(1));
    let bottom = s.height - 1;
    let composer_top = bottom - composer - 1;
    let in_tree = |v: View| class == SizeClass::Xl && v == View::Sessions;
    let sections: Vec<Section> =
        w.sections.iter().filter(|x| !in_tree(x.view) && x.view != main_view).copied().collect();
    let show_rail = w.rail && !full && !sections.is_empty();
    let show_tree = w.rail && !full && class == SizeClass::Xl && main_view != View::Sessions;
    let right = s.width - 1;
    let rail_x = if show_rail { right - rail_width(w) } else { right };
    let main_x = if show_tree { 34 } else { 0 };
    let notices = w.notices.min(composer_top.saturating_sub(8));
    let notice_rows = if notices > 0 { notices + 1 } else { 0 };
    let main_bottom = composer_top - notice_rows;
    let column = |x: u16, to: u16, y: u16, y2: u16| Rect {
        x: s.x + x + 1,
        y: s.y + y,
        width: (to - x).saturating_sub(1),
        height: y2.saturating_sub(y),
    };
    let titled = |view: View, x: u16, to: u16, y: u16, y2: u16| ViewArea {
        view,
        title: Rect { x: s.x + x, y: s.y + y, width: to - x + 1, height: 1 },
        inner: column(x, to, y + 1, y2),
    };
    let main = titled(main_view, main_x, rail_x, 1, main_bottom);
    let rail = if show_rail {
        let heights = share(&sections, w, composer_top - 1);
        let mut y = 1;
        sections
            .iter()
            .zip(heights)
            .map(|(sec, h)| {
                let part = titled(sec.view, rail_x, right, y, y + h);
                y += h;
                part
            })
            .collect()
    } else {
        Vec::new()
    };
    let mut verticals = vec![(s.x, s.y + 1, s.y + bottom), (s.x + right, s.y + 1, s.y + bottom)];
    if show_rail {
        verticals.push((s.x + rail_x, s.y + 1, s.y + composer_top));
    }
    if show_tree {
        verticals.push((s.x + main_x, s.y + 1, s.y + composer_top));
    }
    Areas {
        class,
        header: row(s, 0, 1),
        main,
        tree: show_tree.then(|| titled(View::Sessions, 0, main_x, 1, composer_top)),
        rail,
        notices: column(main_x, rail_x, main_bottom + u16::from(notices > 0), composer_top),
        notices_title: if notices > 0 {
            Rect { x: s.x + main_x, y: s.y + main_bottom, width: rail_x - main_x + 1, height: 1 }
        } else {
            NONE
        },
        composer: titled(View::Composer, 0, right, composer_top, bottom),
        footer: row(s, bottom, 1),
        verticals,
        rules: Vec::new(),
    }
}

/// Rows of each section (with its title line) so that they fill `height` together. An empty one folds
/// to its title; what one does not need goes to the others in order.
fn share(sections: &[Section], w: &LayoutRequest, height: u16) -> Vec<u16> {
    let n = sections.len() as u16;
    let mut out = vec![1u16; sections.len()];
    let mut left = height.saturating_sub(n);
    let zoomed = |s: &Section| w.zoom != Zoom::Normal && s.view == w.focus;
    let want = |s: &Section| if zoomed(s) { height } else { s.rows };
    let open = sections.iter().filter(|s| want(s) > 0).count() as u16;
    let fair = left.checked_div(open).unwrap_or(0);
    for (i, s) in sections.iter().enumerate() {
        let get = want(s).min(fair).min(left);
        out[i] += get;
        left -= get;
    }
    for (i, s) in sections.iter().enumerate() {
        let more = (want(s) + 1).saturating_sub(out[i]).min(left);
        out[i] += more;
        left -= more;
    }
    // The rest goes to the last open section, so that the column ends where the others do.
    if let Some(last) = sections.iter().rposition(|s| want(s) > 0).or(sections.len().checked_sub(1)) {
        out[last] += left;
    }
    out
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
