//! Text that can be read at every depth: a look whose colours come too close when the terminal shows few of them, or
//! paints its own ground, gets the nearest colour that is far enough from what lies below it.

use ratatui::style::{Color, Modifier, Style};

use super::color::{Depth, SIXTEEN, contrast, hue, luminance, rgb};
use super::{Role, Theme};

/// Least contrast of text against what lies below it.
pub(crate) const TEXT: f64 = 4.5;
/// Least contrast of lines, and of words that are dim on purpose.
pub(crate) const HINT: f64 = 3.0;
/// Degrees on the colour wheel within which a colour still means the same.
const SAME: f64 = 40.0;

type Rgb = (u8, u8, u8);

/// What the terminal's own ground looks like where a theme does not paint one, and its own text on it.
pub(crate) fn own(light: bool) -> (Rgb, Rgb) {
    if light { ((255, 255, 255), (0, 0, 0)) } else { ((0, 0, 0), (229, 229, 229)) }
}

/// Colours of a look as they are seen: text, then what lies below. `ground`: below what paints nothing.
pub(crate) fn seen(style: Style, ground: Rgb, light: bool) -> (Rgb, Rgb) {
    let fg = style.fg.and_then(rgb).unwrap_or(own(light).1);
    let bg = style.bg.and_then(rgb).unwrap_or(ground);
    let (fg, bg) = if style.add_modifier.contains(Modifier::REVERSED) { (bg, fg) } else { (fg, bg) };
    if !style.add_modifier.contains(Modifier::DIM) {
        return (fg, bg);
    }
    // Terminals draw it about half as strong.
    let half = |a: u8, b: u8| u8::midpoint(a, b);
    ((half(fg.0, bg.0), half(fg.1, bg.1), half(fg.2, bg.2)), bg)
}

/// The contrast that a look needs.
pub(super) fn least(role: Option<Role>, style: Style) -> f64 {
    let line = matches!(role, Some(Role::Border | Role::BorderFocus));
    if line || style.add_modifier.contains(Modifier::DIM) { HINT } else { TEXT }
}

/// What can lie below words that paint no ground of their own.
pub(super) fn grounds(theme: &Theme, light: bool) -> Vec<Rgb> {
    let painted = |role| theme.style(role).bg.and_then(rgb).unwrap_or(own(light).0);
    let mut all: Vec<Rgb> = [Role::Text, Role::Bar, Role::Dialog].map(painted).to_vec();
    all.dedup();
    all
}

/// Whether a look lies on whatever is below it.
pub(super) fn bare(theme: &Theme, style: Style) -> bool {
    style.bg.and_then(rgb).is_none() || style.bg == theme.style(Role::Text).bg
}

/// Adjusts looks that cannot be read. A theme's own colours are kept where the terminal shows them all.
pub(super) fn mend(theme: &mut Theme, light: bool) {
    if theme.depth == Depth::Mono {
        return;
    }
    let depth = theme.depth;
    let below = grounds(theme, light);
    let mended = |role: Option<Role>, style: Style, theme: &Theme| -> Style {
        if depth == Depth::True && matches!(style.fg, Some(Color::Rgb(..))) {
            return style;
        }
        let on = if bare(theme, style) { below.clone() } else { vec![own(light).0] };
        let style_on = |ground: Rgb, s: Style| {
            let s = if bare(theme, style) { Style { bg: None, ..s } } else { s };
            seen(s, ground, light)
        };
        let need = least(role, style);
        let good = |s: Style| {
            on.iter().all(|g| {
                let (fg, bg) = style_on(*g, s);
                contrast(fg, bg) >= need
            })
        };
        // What has no colour of its own is the terminal's text on the terminal's ground.
        let plain = |c: Option<Color>| c.is_none_or(|c| c == Color::Reset);
        if (plain(style.fg) && plain(style.bg)) || good(style) {
            return style;
        }
        let Some(wish) = style.fg.and_then(rgb) else {
            return better(style, depth, own(light).1, &good);
        };
        better(style, depth, wish, &good)
    };
    for (role, _) in Role::ALL {
        theme.styles[*role as usize] = mended(Some(*role), theme.style(*role), theme);
    }
    let syntax = std::mem::take(&mut theme.syntax);
    theme.syntax = syntax.into_iter().map(|(scope, s)| (scope, mended(None, s, theme))).collect();
}

/// The look with the nearest colour that can be read: of the same hue where there is one, else without.
fn better(style: Style, depth: Depth, wish: Rgb, good: &dyn Fn(Style) -> bool) -> Style {
    let sixteen = SIXTEEN.iter().map(|(_, c, v)| (*c, *v));
    let more = (16..=255u8).map(Color::Indexed).filter_map(|c| Some((c, rgb(c)?)));
    let all: Vec<(Color, Rgb)> =
        if depth == Depth::Sixteen { sixteen.collect() } else { more.chain(sixteen).collect() };
    let turn = |v: Rgb| match (hue(wish), hue(v)) {
        (Some(a), Some(b)) => (a - b).abs().min(360.0 - (a - b).abs()),
        (None, None) => 0.0,
        _ => 360.0,
    };
    let far = |v: Rgb| turn(v) / SAME + (luminance(v) - luminance(wish)).abs() * 4.0;
    let fits = |(c, v): &(Color, Rgb)| turn(*v) <= SAME && good(style.fg(*c));
    let near = all.iter().filter(|c| fits(c)).min_by(|a, b| far(a.1).total_cmp(&far(b.1)));
    if let Some((c, _)) = near {
        return style.fg(*c);
    }
    // The terminal's own text, or the end of the scale that is further away.
    let ends = [Color::Reset, Color::Black, Color::White];
    let last = ends.into_iter().map(|c| style.fg(c)).find(|s| good(*s));
    last.unwrap_or_else(|| style.fg(Color::Reset))
}
