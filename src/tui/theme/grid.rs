//! Colours of a program in a terminal of ours. The sixteen are the person's own; the rest is fitted to what their
//! terminal can show.

use ratatui::style::{Color, Modifier, Style};
use tiller_protocol::{GridStyle, Hue};

use super::Theme;
use super::color::SIXTEEN;

/// How a cell looks.
pub(crate) fn style(theme: &Theme, s: GridStyle) -> Style {
    let mut style = Style::reset().fg(color(s.fg)).bg(color(s.bg));
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

fn color(hue: Hue) -> Color {
    match hue {
        Hue::Default => Color::Reset,
        Hue::Index(n) => SIXTEEN.get(usize::from(n)).map_or(Color::Indexed(n), |(_, c, _)| *c),
        Hue::Rgb(r, g, b) => Color::Rgb(r, g, b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Depth;

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
