//! Looks as theme files say them: words for colours, mixes and modifiers.

use ratatui::style::{Color, Modifier, Style};

use super::color::{self, contrast, rgb};
use super::readable::{self, Rgb};
use super::{Role, Theme};

/// A look, and the mix that its background is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spec {
    pub style: Style,
    /// Colour and percent of a background that is mixed into the ground.
    pub mix: Option<(Rgb, u8)>,
}

/// Finds the value of a palette name.
pub(super) type Palette<'a> = dyn Fn(&str) -> Option<&'a str> + 'a;

/// Reads a look.
///
/// # Errors
/// A sentence that names the unknown word.
pub(super) fn read(text: &str, palette: &Palette<'_>) -> Result<Spec, String> {
    let mut out = Spec::default();
    let mut back = false;
    for word in text.split_whitespace() {
        let modifier = match word {
            "on" => {
                back = true;
                continue;
            }
            "plain" => continue,
            "bold" => Modifier::BOLD,
            "italic" => Modifier::ITALIC,
            "underline" => Modifier::UNDERLINED,
            "reverse" => Modifier::REVERSED,
            "crossed" => Modifier::CROSSED_OUT,
            // The palette's colour of dim text; the modifier after another colour, or where the palette has no colour.
            "dim" => match (out.style.fg, colour("dim", palette)) {
                (None, Some(c)) if !back && c != Color::Reset => {
                    out.style.fg = Some(c);
                    continue;
                }
                _ => Modifier::DIM,
            },
            word => {
                colour_word(&mut out, word, back, palette)?;
                continue;
            }
        };
        out.style = out.style.add_modifier(modifier);
    }
    Ok(out)
}

/// Takes `blue`, `#6cb6ff` or `green@15`.
fn colour_word(out: &mut Spec, word: &str, back: bool, palette: &Palette<'_>) -> Result<(), String> {
    let unknown = || format!("unknown colour '{word}'");
    let Some((name, percent)) = word.split_once('@') else {
        let c = colour(word, palette).ok_or_else(unknown)?;
        if back {
            out.style.bg = Some(c);
            out.mix = None;
        } else {
            out.style.fg = Some(c);
        }
        return Ok(());
    };
    let c = colour(name, palette).ok_or_else(unknown)?;
    let percent = percent.parse::<u8>().ok().filter(|n| *n <= 100).ok_or_else(unknown)?;
    let ground = colour("bg", palette);
    // Only colours that are known can be mixed: the terminal's own sixteen are not.
    if let (Color::Rgb(r, g, b), Some(Color::Rgb(..))) = (c, ground) {
        let below = ground.and_then(rgb).unwrap_or_default();
        let mixed = mix((r, g, b), below, percent);
        if back {
            out.style.bg = Some(mixed);
            out.mix = Some(((r, g, b), percent));
        } else {
            out.style.fg = Some(mixed);
        }
    }
    Ok(())
}

/// A colour by its palette name, which may stand for another one, or by itself.
fn colour(word: &str, palette: &Palette<'_>) -> Option<Color> {
    let mut value = word;
    for _ in 0..5 {
        value = palette(value).unwrap_or(value);
    }
    color::parse(value)
}

/// `percent` of `c` over `below`.
pub(super) fn mix(c: Rgb, below: Rgb, percent: u8) -> Color {
    let part = |a: u8, b: u8| {
        let (a, b, p) = (u32::from(a), u32::from(b), u32::from(percent.min(100)));
        ((a * p + b * (100 - p) + 50) / 100) as u8
    };
    Color::Rgb(part(c.0, below.0), part(c.1, below.1), part(c.2, below.2))
}

/// Lessens mixes on which the theme's text could not be read.
pub(super) fn limit(theme: &mut Theme, mixes: &[(Role, Rgb, u8)]) {
    let Some(ground) = theme.style(Role::Ground).bg.and_then(rgb) else { return };
    for (role, c, most) in mixes {
        let texts = readable::texts_on(theme, *role);
        let good = |percent: u8| {
            rgb(mix(*c, ground, percent)).is_some_and(|below| {
                texts.iter().all(|(fg, least)| contrast(*fg, below) >= least.min(contrast(*fg, ground)))
            })
        };
        let percent = (1..=*most).rev().find(|p| good(*p)).unwrap_or(1);
        let style = &mut theme.styles[*role as usize];
        style.bg = Some(mix(*c, ground, percent));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dim_is_the_palettes_colour_where_it_has_one() {
        let colour = |_: &str| Some("#8b93a3");
        let named = |word: &str| if word == "dim" { colour(word) } else { None };
        let style = |text| read(text, &named).unwrap().style;
        assert_eq!(style("dim italic"), Style::new().fg(Color::Rgb(0x8b, 0x93, 0xa3)).italic());
        assert_eq!(style("red dim"), Style::new().fg(Color::Red).dim());
        let none = |word: &str| (word == "dim").then_some("default");
        assert_eq!(read("dim", &none).unwrap().style, Style::new().dim());
    }

    #[test]
    fn a_mix_is_a_part_of_a_colour_over_the_ground() {
        let palette = |word: &str| match word {
            "bg" => Some("#14161b"),
            "green" => Some("#7fd18b"),
            _ => None,
        };
        let bg = |text| read(text, &palette).unwrap().style.bg;
        assert_eq!(bg("green on green@15"), Some(Color::Rgb(0x24, 0x32, 0x2c)));
        assert_eq!(bg("green on green@32"), Some(Color::Rgb(0x36, 0x52, 0x3f)));
        assert_eq!(bg("green on red@32"), None, "the terminal's own red is not known");
        for wrong in ["on green@", "on green@200", "on gren@15"] {
            assert!(read(wrong, &palette).unwrap_err().contains("unknown colour"), "{wrong}");
        }
    }
}
