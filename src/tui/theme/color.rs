//! Colours: reading them, how many a terminal can show, and the nearest of those.

use ratatui::style::{Color, Modifier, Style};

/// How many colours the terminal shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// None: only bold, underline, reverse.
    Mono,
    /// The sixteen of the person's own scheme.
    #[default]
    Sixteen,
    TwoFiftySix,
    True,
}

impl Depth {
    /// From the environment, by the usual conventions: `NO_COLOR` beats `FORCE_COLOR` beats `COLORTERM`
    /// beats `TERM`.
    pub fn of_env(var: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |k: &str| var(k).filter(|v| !v.is_empty());
        if set("NO_COLOR").is_some() {
            return Self::Mono;
        }
        match set("FORCE_COLOR").as_deref() {
            Some("0" | "false") => return Self::Mono,
            Some("2") => return Self::TwoFiftySix,
            Some("3") => return Self::True,
            Some("1" | "true") => return Self::Sixteen.max(Self::of_term(&set)),
            _ => {}
        }
        Self::of_term(&set)
    }

    /// True when the terminal may be asked: the environment does not settle it, and the terminal ignores questions that
    /// it does not know. The console of Linux prints them.
    pub fn is_open(var: &dyn Fn(&str) -> Option<String>) -> bool {
        let set = |k: &str| var(k).filter(|v| !v.is_empty());
        let settled = set("NO_COLOR").is_some() || set("FORCE_COLOR").is_some();
        !settled && set("TERM").is_none_or(|t| t != "linux") && Self::of_env(var) != Self::Mono
    }

    /// True when the terminal erases to the background that is set (`bce` of terminfo, by the name in `TERM`). Names that
    /// are not known do not: blanks are written there.
    pub fn erases(var: &dyn Fn(&str) -> Option<String>) -> bool {
        const KNOWN: &[&str] =
            &["xterm", "alacritty", "foot", "kitty", "wezterm", "konsole", "vte", "rxvt", "iterm", "linux"];
        let term = var("TERM").unwrap_or_default().to_ascii_lowercase();
        KNOWN.iter().any(|name| term.starts_with(name))
    }

    fn of_term(set: &dyn Fn(&str) -> Option<String>) -> Self {
        if set("COLORTERM").is_some_and(|c| c == "truecolor" || c == "24bit") {
            return Self::True;
        }
        let term = set("TERM").unwrap_or_default();
        if term.ends_with("-direct")
            || ["xterm-kitty", "xterm-ghostty", "alacritty", "foot"].contains(&term.as_str())
        {
            return Self::True;
        }
        if term.contains("256color") {
            return Self::TwoFiftySix;
        }
        if term == "dumb"
            || term.is_empty()
            || term.starts_with("vt1")
            || term.starts_with("vt2")
            || term.ends_with("-m")
        {
            return Self::Mono;
        }
        Self::Sixteen
    }

    /// The nearest look that this many colours allow. Without colours, what was only a background
    /// becomes reverse, so that cursor, focus and selection stay visible.
    pub fn fit(self, style: Style) -> Style {
        let map = |c: Option<Color>| c.map(|c| self.color(c));
        let mut out = Style { fg: map(style.fg), bg: map(style.bg), ..style };
        if self == Self::Mono {
            let painted = style.bg.is_some_and(|c| c != Color::Reset);
            out.fg = None;
            out.bg = None;
            if painted && !out.add_modifier.contains(Modifier::UNDERLINED) {
                out = out.add_modifier(Modifier::REVERSED);
            }
        }
        out
    }

    fn color(self, c: Color) -> Color {
        match (self, c) {
            (Self::True, c) => c,
            (Self::TwoFiftySix, Color::Rgb(r, g, b)) => Color::Indexed(nearest_256(r, g, b)),
            (Self::TwoFiftySix, c) => c,
            (Self::Sixteen, Color::Rgb(r, g, b)) => nearest_16(r, g, b),
            (Self::Sixteen, Color::Indexed(n)) => {
                let (r, g, b) = rgb_of_index(n);
                nearest_16(r, g, b)
            }
            (Self::Sixteen, c) => c,
            (Self::Mono, _) => Color::Reset,
        }
    }
}

/// Names of the sixteen, as theme files say them, with the values of xterm.
pub(crate) const SIXTEEN: &[(&str, Color, (u8, u8, u8))] = &[
    ("black", Color::Black, (0, 0, 0)),
    ("red", Color::Red, (205, 0, 0)),
    ("green", Color::Green, (0, 205, 0)),
    ("yellow", Color::Yellow, (205, 205, 0)),
    ("blue", Color::Blue, (0, 0, 238)),
    ("magenta", Color::Magenta, (205, 0, 205)),
    ("cyan", Color::Cyan, (0, 205, 205)),
    ("white", Color::Gray, (229, 229, 229)),
    ("bright-black", Color::DarkGray, (127, 127, 127)),
    ("bright-red", Color::LightRed, (255, 0, 0)),
    ("bright-green", Color::LightGreen, (0, 255, 0)),
    ("bright-yellow", Color::LightYellow, (255, 255, 0)),
    ("bright-blue", Color::LightBlue, (92, 92, 255)),
    ("bright-magenta", Color::LightMagenta, (255, 0, 255)),
    ("bright-cyan", Color::LightCyan, (0, 255, 255)),
    ("bright-white", Color::White, (255, 255, 255)),
];

/// Number of one of the sixteen, 0 to 15; others are 7.
pub(crate) fn number(c: Color) -> u8 {
    SIXTEEN.iter().position(|(_, x, _)| *x == c).unwrap_or(7) as u8
}

/// Reads `#rrggbb`, a name of the sixteen, `default`, or a number of the 256.
pub fn parse(text: &str) -> Option<Color> {
    if text == "default" {
        return Some(Color::Reset);
    }
    if let Some(hex) = text.strip_prefix('#') {
        let (r, g, b) = hex_rgb(hex)?;
        return Some(Color::Rgb(r, g, b));
    }
    if let Ok(n) = text.parse::<u8>() {
        return Some(Color::Indexed(n));
    }
    SIXTEEN.iter().find(|(n, ..)| *n == text).map(|(_, c, _)| *c)
}

/// Six hexadecimal digits.
pub fn hex_rgb(hex: &str) -> Option<(u8, u8, u8)> {
    if hex.len() != 6 || !hex.is_ascii() {
        return None;
    }
    let part = |i: usize| u8::from_str_radix(&hex[i..i + 2], 16).ok();
    Some((part(0)?, part(2)?, part(4)?))
}

/// Returns what a colour looks like, where that is known. The sixteen differ from terminal to terminal; these
/// are xterm's.
pub fn rgb(c: Color) -> Option<(u8, u8, u8)> {
    match c {
        Color::Rgb(r, g, b) => Some((r, g, b)),
        Color::Indexed(n) => Some(rgb_of_index(n)),
        c => SIXTEEN.iter().find(|(_, x, _)| *x == c).map(|(.., v)| *v),
    }
}

const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];

fn rgb_of_index(n: u8) -> (u8, u8, u8) {
    match n {
        0..16 => SIXTEEN[usize::from(n)].2,
        16..232 => {
            let n = usize::from(n - 16);
            (STEPS[n / 36], STEPS[n / 6 % 6], STEPS[n % 6])
        }
        _ => {
            let v = 8 + (n - 232) * 10;
            (v, v, v)
        }
    }
}

fn far(a: (u8, u8, u8), b: (u8, u8, u8)) -> u32 {
    let d = |x: u8, y: u8| u32::from(x.abs_diff(y)).pow(2);
    d(a.0, b.0) * 3 + d(a.1, b.1) * 6 + d(a.2, b.2)
}

fn nearest_256(r: u8, g: u8, b: u8) -> u8 {
    (16..=255).min_by_key(|n| far(rgb_of_index(*n), (r, g, b))).unwrap_or(15)
}

/// The colour of the 256 for a faint colour, with its hue: the background of a diff's line. Dark ones are louder than the
/// faint colour, since the 256 have none between black and 22 or 52; but grey would not tell added from removed. `mark`: the
/// colour that it is a mix of. `None`: there is none of this hue.
pub(super) fn tint_256(c: Color, mark: Option<(u8, u8, u8)>) -> Option<Color> {
    let Color::Rgb(r, g, b) = c else { return Some(c) };
    let at = angle(mark.unwrap_or((r, g, b)))?;
    let same = |n: &u8| {
        let other = angle(rgb_of_index(*n));
        other.is_some_and(|o| (o - at).abs().min(360.0 - (o - at).abs()) <= 25.0)
    };
    let distance = |n: &u8| far(rgb_of_index(*n), (r, g, b));
    (16..232).filter(same).min_by_key(distance).map(Color::Indexed)
}

/// The grey of the 256 that is nearest to a colour, and differs from those `around` it.
pub(super) fn grey_256(c: Color, around: &[Option<Color>]) -> Color {
    let Some(rgb) = rgb(c) else { return c };
    let apart = |n: &u8| {
        around.iter().all(|a| !matches!(a, Some(Color::Indexed(m)) if *m >= 232 && m.abs_diff(*n) < 2))
    };
    let near = (232..=255).filter(apart).min_by_key(|n| far(rgb_of_index(*n), rgb));
    near.map_or(c, Color::Indexed)
}

/// The nearest of the sixteen. What is clearly a colour stays one: by distance alone every pastel would
/// be grey, and what it says would be lost.
fn nearest_16(r: u8, g: u8, b: u8) -> Color {
    if let Some(at) = hue((r, g, b)) {
        let light = luminance((r, g, b));
        let turn = |v| {
            let d = (hue(v).unwrap_or(at) - at).abs();
            d.min(360.0 - d)
        };
        let near = SIXTEEN.iter().filter(|(.., v)| hue(*v).is_some()).min_by(|(.., v), (.., w)| {
            let far = |v| turn(v).round() + (luminance(v) - light).abs();
            far(*v).total_cmp(&far(*w))
        });
        return near.map_or(Color::Reset, |(_, c, _)| *c);
    }
    SIXTEEN.iter().min_by_key(|(.., v)| far(*v, (r, g, b))).map_or(Color::Reset, |(_, c, _)| *c)
}

/// Degrees on the colour wheel; `None` for what looks grey, black or white.
pub(super) fn hue((r, g, b): (u8, u8, u8)) -> Option<f64> {
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    let chroma = most - least;
    if most < 95 || chroma < 40 || f64::from(chroma) < f64::from(most) * 0.27 {
        return None;
    }
    angle((r, g, b))
}

/// Degrees on the colour wheel; `None` for a grey.
fn angle((r, g, b): (u8, u8, u8)) -> Option<f64> {
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    let chroma = most - least;
    if chroma == 0 {
        return None;
    }
    let part = |x: u8, y: u8| (f64::from(x) - f64::from(y)) / f64::from(chroma);
    let sixth = match most {
        m if m == r => part(g, b).rem_euclid(6.0),
        m if m == g => part(b, r) + 2.0,
        _ => part(r, g) + 4.0,
    };
    Some(sixth * 60.0)
}

/// Contrast ratio as WCAG 2 defines it, 1 to 21.
pub fn contrast(a: (u8, u8, u8), b: (u8, u8, u8)) -> f64 {
    let (x, y) = (luminance(a), luminance(b));
    (x.max(y) + 0.05) / (x.min(y) + 0.05)
}

/// Relative luminance, 0 to 1.
pub fn luminance((r, g, b): (u8, u8, u8)) -> f64 {
    let lin = |v: u8| {
        let v = f64::from(v) / 255.0;
        if v <= 0.040_45 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * lin(r) + 0.7152 * lin(g) + 0.0722 * lin(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_sixteen_colours_a_pastel_keeps_its_hue_and_text_stays_grey() {
        for (hex, want) in [
            ("89b4fa", Color::LightBlue),
            ("f38ba8", Color::LightRed),
            ("1e66f5", Color::LightBlue),
            ("859900", Color::Yellow),
        ] {
            let (r, g, b) = hex_rgb(hex).unwrap();
            assert_eq!(nearest_16(r, g, b), want, "{hex}");
        }
        for grey in ["cdd6f4", "ebdbb2", "4c4f69", "002b36", "fdf6e3", "839496", "1e1e2e"] {
            let (r, g, b) = hex_rgb(grey).unwrap();
            let got = nearest_16(r, g, b);
            assert!(
                [Color::Black, Color::DarkGray, Color::Gray, Color::White].contains(&got),
                "{grey} became {got:?}"
            );
        }
    }

    fn depth(vars: &[(&str, &str)]) -> Depth {
        Depth::of_env(&|k| vars.iter().find(|(n, _)| *n == k).map(|(_, v)| (*v).into()))
    }

    #[test]
    fn the_environment_decides() {
        assert_eq!(depth(&[("TERM", "xterm")]), Depth::Sixteen);
        assert_eq!(depth(&[("TERM", "xterm-256color")]), Depth::TwoFiftySix);
        assert_eq!(depth(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]), Depth::True);
        assert_eq!(depth(&[("COLORTERM", "truecolor"), ("NO_COLOR", "1")]), Depth::Mono);
        assert_eq!(depth(&[("COLORTERM", "truecolor"), ("NO_COLOR", "")]), Depth::True);
        assert_eq!(depth(&[("TERM", "dumb"), ("FORCE_COLOR", "3")]), Depth::True);
        assert_eq!(depth(&[("TERM", "dumb")]), Depth::Mono);
        assert_eq!(depth(&[]), Depth::Mono);
    }

    #[test]
    fn a_terminal_is_asked_unless_the_environment_settles_it() {
        let open = |vars: &[(&str, &str)]| {
            Depth::is_open(&|k| vars.iter().find(|(n, _)| *n == k).map(|(_, v)| (*v).into()))
        };
        assert!(open(&[("TERM", "xterm-256color")]) && open(&[("TERM", "xterm")]));
        assert!(
            open(&[("TERM", "xterm"), ("COLORTERM", "truecolor")]),
            "COLORTERM may be another terminal's"
        );
        for settled in [("NO_COLOR", "1"), ("FORCE_COLOR", "1"), ("TERM", "linux"), ("TERM", "vt100")] {
            assert!(!open(
                &[("TERM", "xterm"), settled].map(|(k, v)| (k, if k == settled.0 { settled.1 } else { v }))
            ));
        }
    }

    #[test]
    fn without_colours_a_background_becomes_reverse() {
        let s = Depth::Mono.fit(Style::new().bg(Color::Rgb(1, 2, 3)).fg(Color::Red));
        assert_eq!((s.fg, s.bg), (None, None));
        assert!(s.add_modifier.contains(Modifier::REVERSED));
    }

    #[test]
    fn nearest_colours() {
        assert_eq!(Depth::Sixteen.fit(Style::new().fg(Color::Rgb(250, 10, 10))).fg, Some(Color::LightRed));
        assert_eq!(
            Depth::TwoFiftySix.fit(Style::new().fg(Color::Rgb(95, 135, 175))).fg,
            Some(Color::Indexed(67))
        );
    }

    #[test]
    fn contrast_of_black_and_white() {
        assert!((contrast((0, 0, 0), (255, 255, 255)) - 21.0).abs() < 0.01);
    }
}
