//! Text that can be read at every depth: a look whose colours come too close when the terminal shows few of them, or
//! paints its own ground, gets the nearest colour that is far enough from every area on which it can lie.

use ratatui::style::{Color, Modifier, Style};

use super::color::{Depth, SIXTEEN, contrast, hue, luminance, rgb};
use super::spec::mix;
use super::{Lifted, Role, Theme};

/// Least contrast of text against what lies below it.
pub(crate) const TEXT: f64 = 4.5;
/// Least contrast of lines, and of words that are dim on purpose.
pub(crate) const HINT: f64 = 3.0;
/// Degrees on the colour wheel within which a colour still means the same.
const SAME: f64 = 40.0;

pub(super) type Rgb = (u8, u8, u8);

/// Returns what the terminal's own ground looks like where a theme does not paint one, and its own text on it.
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

/// The contrast that a look needs; `None`: it is decoration. `role`: `None` for a colour of code.
pub(crate) fn least(role: Option<Role>, style: Style) -> Option<f64> {
    let hint = matches!(role, Some(Role::Dim | Role::Thinking | Role::Quote));
    match role {
        Some(Role::Border) => None,
        _ if hint || style.add_modifier.contains(Modifier::DIM) => Some(HINT),
        _ => Some(TEXT),
    }
}

/// Text of a diff, which lies on its bands too.
const IN_DIFFS: [Role; 5] = [Role::Text, Role::Dim, Role::Code, Role::Added, Role::Removed];
/// The bands of a diff.
pub(crate) const BANDS: [Role; 2] = [Role::AddedBand, Role::RemovedBand];
/// The areas on which every text can lie.
const AREAS: [Role; 4] = [Role::Ground, Role::Band, Role::Raised, Role::Selection];

/// The areas on which text of a role can lie; `None`: code. The words of a diff are drawn in their own colour.
pub(crate) fn areas_of(role: Option<Role>) -> Vec<Role> {
    let in_diffs = role.is_none_or(|r| IN_DIFFS.contains(&r));
    AREAS.into_iter().chain(BANDS.into_iter().filter(|_| in_diffs)).collect()
}

/// Colours of text that can lie on an area, each with the contrast that it needs.
pub(super) fn texts_on(theme: &Theme, area: Role) -> Vec<(Rgb, f64)> {
    let own = theme.style(area).fg.and_then(rgb).map(|fg| (fg, TEXT));
    let roles =
        Role::ALL.iter().map(|(r, _)| *r).filter(|r| !r.is_area() && areas_of(Some(*r)).contains(&area));
    let roles = roles.map(|r| (theme.style(r), least(Some(r), theme.style(r))));
    let code = areas_of(None).contains(&area);
    let syntax = theme.syntax.iter().filter(|_| code).map(|(scope, s)| (*s, Some(least_of_code(scope))));
    // On the bands of a diff dim text is code too: comments, and the numbers of lines.
    let at_least = |least: f64| if BANDS.contains(&area) { TEXT } else { least };
    let texts = roles.chain(syntax).filter_map(|(s, least)| Some((s.fg.and_then(rgb)?, at_least(least?))));
    own.into_iter().chain(texts).collect()
}

/// The contrast that a colour of code needs: comments are dim on purpose.
pub(crate) fn least_of_code(scope: &str) -> f64 {
    if scope.starts_with("comment") || scope.starts_with("meta.diff") { HINT } else { TEXT }
}

/// Returns what can lie below words of a role: the backgrounds of its areas, each once.
pub(crate) fn grounds(theme: &Theme, light: bool, role: Option<Role>) -> Vec<Rgb> {
    let below = |area: Role| {
        let style = theme.style(area);
        // Reversed: the row's text is drawn in the look of the row.
        let reversed = style.add_modifier.contains(Modifier::REVERSED);
        style.bg.filter(|_| !reversed).and_then(rgb).unwrap_or(own(light).0)
    };
    let mut all: Vec<Rgb> = areas_of(role).into_iter().map(below).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Adjusts looks that cannot be read. A theme's own colours are kept where the terminal shows them all. `full`: the theme
/// in all its colours.
pub(super) fn mend(theme: &mut Theme, light: bool, full: &Theme) {
    if theme.depth == Depth::Mono {
        return;
    }
    let depth = theme.depth;
    let code = grounds(theme, light, None);
    let mended = |role: Option<Role>, scope: &str, style: Style, theme: &Theme| -> Style {
        if depth == Depth::True && matches!(style.fg, Some(Color::Rgb(..))) {
            return style;
        }
        let need = if role.is_none() { Some(least_of_code(scope)) } else { least(role, style) };
        let Some(need) = need else { return style };
        // What paints its own ground lies on nothing else.
        let bare = role.is_none_or(|r| !r.is_area());
        let on = match role {
            Some(r) if bare => grounds(theme, light, Some(r)),
            Some(_) => vec![own(light).0],
            None => code.clone(),
        };
        let good = |s: Style| {
            on.iter().all(|g| {
                let (fg, bg) = seen(if bare { Style { bg: None, ..s } } else { s }, *g, light);
                contrast(fg, bg) >= need
            })
        };
        // What has no colour of its own is the terminal's text on the terminal's ground.
        let plain = |c: Option<Color>| c.is_none_or(|c| c == Color::Reset);
        let own_ground = on.iter().all(|g| *g == own(light).0);
        if (plain(style.fg) && plain(style.bg) && own_ground) || good(style) {
            return style;
        }
        let whole = match role {
            Some(r) => Some(full.style(r)),
            None => full.syntax.iter().find(|(s, _)| s == scope).map(|(_, s)| *s),
        };
        let wish = whole.and_then(|s| s.fg).and_then(rgb).or_else(|| style.fg.and_then(rgb));
        // Keys must be seen as keys: better in a neighbouring colour than in none.
        let same = if role == Some(Role::Accent) { SAME * 1.7 } else { SAME };
        better(style, depth, (wish.unwrap_or(own(light).1), same), &good)
    };
    for (role, _) in Role::ALL {
        theme.styles[*role as usize] = mended(Some(*role), "", theme.style(*role), theme);
    }
    let syntax = std::mem::take(&mut theme.syntax);
    theme.syntax =
        syntax.into_iter().map(|(scope, s)| (scope.clone(), mended(None, &scope, s, theme))).collect();
    theme.lifted = lifted(theme);
}

/// Colours of text and code that cannot be read on a band of a diff, each with the nearest one that can. Dim text is no
/// exception there: comments and numbers of lines are reviewed, too.
fn lifted(theme: &Theme) -> Vec<Lifted> {
    let mut all: Vec<Lifted> = Vec::new();
    if theme.depth < Depth::TwoFiftySix {
        return all;
    }
    for band in BANDS {
        let style = theme.style(band);
        let reversed = style.add_modifier.contains(Modifier::REVERSED);
        let Some(below) = style.bg.filter(|_| !reversed).and_then(rgb) else { continue };
        let good = |c: Color| rgb(c).is_some_and(|v| contrast(v, below) >= TEXT);
        let text = style.fg.or(theme.style(Role::Text).fg).and_then(rgb);
        let roles = IN_DIFFS.iter().map(|role| theme.style(*role));
        let colours = roles.chain(theme.syntax.iter().map(|(_, s)| *s)).filter_map(|s| s.fg);
        for from in colours.filter(|c| !good(*c)) {
            let Some(wish) = rgb(from) else { continue };
            if all.iter().any(|l| l.band == band && l.from == from) {
                continue;
            }
            let to = match (theme.depth, text) {
                (Depth::True, Some(text)) => {
                    let mut mixed = (1..=10).map(|tenth| mix(text, wish, tenth * 10));
                    mixed.find(|c| good(*c)).unwrap_or(from)
                }
                (depth, _) => better(Style::new().fg(from), depth, (wish, SAME), &|s| s.fg.is_some_and(good))
                    .fg
                    .unwrap_or(from),
            };
            all.push(Lifted { band, from, to });
        }
    }
    all
}

/// The look with the nearest colour that can be read: of the same hue where there is one, else without.
fn better(style: Style, depth: Depth, (wish, same): (Rgb, f64), good: &dyn Fn(Style) -> bool) -> Style {
    let sixteen = SIXTEEN.iter().map(|(_, c, v)| (*c, *v));
    let more = (16..=255u8).map(Color::Indexed).filter_map(|c| Some((c, rgb(c)?)));
    let all: Vec<(Color, Rgb)> =
        if depth == Depth::Sixteen { sixteen.collect() } else { more.chain(sixteen).collect() };
    let turn = |v: Rgb| match (hue(wish), hue(v)) {
        (Some(a), Some(b)) => (a - b).abs().min(360.0 - (a - b).abs()),
        (None, None) => 0.0,
        _ => 360.0,
    };
    // What is taken for a grey may still have a tint.
    let tint = |v: Rgb| f64::from(v.0.max(v.1).max(v.2) - v.0.min(v.1).min(v.2)) / 255.0;
    let tinted = |v: Rgb| (tint(v) - tint(wish)).abs() * 3.0;
    let far = |v: Rgb| turn(v) / SAME + (luminance(v) - luminance(wish)).abs() * 4.0 + tinted(v);
    let fits = |(c, v): &(Color, Rgb)| turn(*v) <= same && good(style.fg(*c));
    let near = all.iter().filter(|c| fits(c)).min_by(|a, b| far(a.1).total_cmp(&far(b.1)));
    if let Some((c, _)) = near {
        return style.fg(*c);
    }
    // The terminal's own text, or the end of the scale that is further away.
    let ends = [Color::Reset, Color::Black, Color::White];
    let last = ends.into_iter().map(|c| style.fg(c)).find(|s| good(*s));
    last.unwrap_or_else(|| style.fg(Color::Reset))
}
