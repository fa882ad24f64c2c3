//! The contrast of everything that the scenes draw, by role and background.
//!
//! The ratio is that of WCAG 2.2, "contrast ratio" and "relative luminance" (<https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio>):
//! text needs 4.5 to 1, and 3 to 1 where it is dim on purpose or no text.

use std::collections::BTreeMap;

use ratatui::style::{Color, Modifier, Style};

use super::look::{Look, Rgb};
use super::stage::Picture;
use super::{SCENES, SIZES, play};
use crate::theme::{Role, Theme, Themes, color, readable};

/// The size at which the scenes are measured.
const SIZE: (u16, u16) = SIZES[1];

/// How one role is read on one background.
#[derive(Clone, Debug, PartialEq)]
pub struct Contrast {
    /// The look's name.
    pub look: String,
    /// The role's name in theme files; `syntax: SCOPE` for colours of code.
    pub text: String,
    /// Names of the roles that paint this background; `screen` for the terminal's own.
    pub ground: String,
    /// Colours of text and background.
    pub colours: (Rgb, Rgb),
    /// 1 to 21.
    pub ratio: f64,
    /// The contrast that it needs.
    pub least: f64,
    /// Cells that are drawn so in all scenes, spaces aside.
    pub cells: usize,
    /// A scene with it.
    pub scene: &'static str,
}

/// Measures all scenes in a look, by role and then by background.
///
/// # Errors
/// As [`super::draw`].
pub fn contrasts(look: &Look) -> Result<Vec<Contrast>, String> {
    let theme = look.theme()?;
    let (tracer, names) = tracer(&theme);
    let grounds = grounds(&theme, look);
    let mut all = BTreeMap::<(String, Rgb, Rgb, bool), Contrast>::new();
    for scene in SCENES {
        let mut stage = play(scene, SIZE, look)?;
        stage.coloured();
        let seen = stage.picture().clone();
        stage.themes(Themes::fixed(tracer.clone()));
        stage.coloured();
        for (cell, traced) in cells(&seen, stage.picture()) {
            let Some(text) = named(traced.fg, &names) else { continue };
            let (fg, bg) = look.seen(cell.fg, cell.bg, cell.modifier);
            let dim = cell.modifier.contains(Modifier::DIM);
            let entry = all.entry((text.clone(), fg, bg, dim)).or_insert_with(|| {
                // Lines between panes are decoration.
                let hint = ["border", "dim", "thinking", "quote"].contains(&text.as_str());
                let on_band =
                    readable::BANDS.iter().any(|r| theme.style(*r).bg.and_then(color::rgb) == Some(bg));
                Contrast {
                    look: look.name.clone(),
                    ground: grounds.get(&bg).cloned().unwrap_or_else(|| "mixed".into()),
                    colours: (fg, bg),
                    ratio: color::contrast(fg, bg),
                    least: if (hint || dim) && !on_band { readable::HINT } else { readable::TEXT },
                    cells: 0,
                    scene: scene.name,
                    text,
                }
            });
            entry.cells += 1;
        }
    }
    Ok(all.into_values().collect())
}

/// Cells of both pictures that show something.
fn cells<'a>(
    seen: &'a Picture,
    traced: &'a Picture,
) -> impl Iterator<Item = (&'a ratatui::buffer::Cell, &'a ratatui::buffer::Cell)> {
    let pairs = seen.cells.content.iter().zip(&traced.cells.content);
    pairs.filter(|(cell, _)| !cell.symbol().trim().is_empty())
}

/// A theme in which each role has a text colour of its own, and the names of these colours. What paints a background
/// in `theme` paints one there too.
fn tracer(theme: &Theme) -> (Theme, Vec<String>) {
    let mut out = theme.clone();
    let mut names = Vec::new();
    let mark = |names: &mut Vec<String>, name: String| {
        names.push(name);
        Color::Rgb(1, (names.len() >> 8) as u8, names.len() as u8)
    };
    for (role, name) in Role::ALL {
        let fg = mark(&mut names, (*name).to_owned());
        let style: Style = out.styles[*role as usize];
        out.styles[*role as usize] = style.fg(fg);
    }
    for (scope, style) in &mut out.syntax {
        *style = style.fg(mark(&mut names, format!("syntax: {scope}")));
    }
    (out, names)
}

/// The name of a colour of the tracer; `None`: another program painted it.
fn named(colour: Color, names: &[String]) -> Option<String> {
    let Color::Rgb(1, high, low) = colour else { return None };
    names.get((usize::from(high) << 8 | usize::from(low)).checked_sub(1)?).cloned()
}

/// Names of backgrounds: the roles that paint them.
fn grounds(theme: &Theme, look: &Look) -> BTreeMap<Rgb, String> {
    let mut out = BTreeMap::<Rgb, String>::from([(look.ground().0, "screen".to_owned())]);
    for (role, name) in Role::ALL {
        let style = theme.style(*role);
        let reversed = style.add_modifier.contains(Modifier::REVERSED);
        if style.bg.is_none() && !reversed {
            continue;
        }
        let (_, bg) = readable::seen(style, look.ground().0, look.light);
        let names = out.entry(bg).or_default();
        if names.split(", ").count() < 3 {
            let comma = if names.is_empty() { "" } else { ", " };
            names.push_str(&format!("{comma}{name}"));
        }
    }
    out
}
