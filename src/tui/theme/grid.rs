//! Colours of a program in a terminal of ours. Those that it leaves open are the theme's, the sixteen are the person's own;
//! the rest is fitted to what their terminal can show.

use ratatui::style::{Color, Modifier, Style};
use tiller_protocol::{GridStyle, Hue};

use super::color::SIXTEEN;
use super::{Role, Theme};

/// How a cell looks.
pub(crate) fn style(theme: &Theme, s: GridStyle) -> Style {
    let fg = color(s.fg).or(theme.style(Role::Text).fg).unwrap_or(Color::Reset);
    let bg = color(s.bg).or(theme.style(Role::Ground).bg).unwrap_or(Color::Reset);
    let mut style = Style::reset().fg(fg).bg(bg);
    for (on, modifier) in [
        (s.bold, Modifier::BOLD),
        (s.dim, Modifier::DIM),
        (s.italic, Modifier::ITALIC),
        (s.underline, Modifier::UNDERLINED),
        (s.reverse, Modifier::REVERSED),
        (s.strike, Modifier::CROSSED_OUT),
    ] {
        if on {
            style = style.add_modifier(modifier);
        }
    }
    theme.depth.fit(style)
}

/// `None`: the program leaves it open.
fn color(hue: Hue) -> Option<Color> {
    match hue {
        Hue::Default => None,
        Hue::Index(n) => Some(SIXTEEN.get(usize::from(n)).map_or(Color::Indexed(n), |(_, c, _)| *c)),
        Hue::Rgb(r, g, b) => Some(Color::Rgb(r, g, b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Depth;

    #[test]
    fn what_a_program_leaves_open_looks_as_the_rest_of_the_screen() {
        for name in ["tiller-light", "tiller-dark", "ansi"] {
            let theme = Theme::built_in(name, Depth::True).unwrap();
            let cell = style(&theme, GridStyle::default());
            let ground = theme.style(Role::Ground).bg.unwrap_or(Color::Reset);
            let text = theme.style(Role::Text).fg.unwrap_or(Color::Reset);
            assert_eq!((cell.bg, cell.fg), (Some(ground), Some(text)), "{name}");
        }
    }

    #[test]
    fn colours_are_fitted_to_what_the_terminal_shows() {
        let mut theme = Theme::default();
        let cell =
            GridStyle { fg: Hue::Index(1), bg: Hue::Rgb(1, 2, 250), bold: true, ..GridStyle::default() };
        let mut at = |depth| {
            theme.depth = depth;
            style(&theme, cell)
        };
        assert_eq!((at(Depth::True).fg, at(Depth::True).bg), (Some(Color::Red), Some(Color::Rgb(1, 2, 250))));
        assert!(matches!(at(Depth::TwoFiftySix).bg, Some(Color::Indexed(_))));
        assert_eq!(at(Depth::Sixteen).bg, Some(Color::Blue));
        let mono = at(Depth::Mono);
        assert_eq!((mono.fg, mono.bg), (None, None));
        assert!(mono.add_modifier.contains(Modifier::BOLD | Modifier::REVERSED));
    }
}
