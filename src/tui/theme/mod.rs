//! Colours have meaning: code names a [`Role`], a theme file says how it looks. Nothing outside this
//! folder names a colour.

pub mod base16;
pub mod color;
mod file;
pub(crate) mod grid;
mod pixel;
pub(crate) mod readable;
mod set;
mod spec;

use ratatui::style::{Color, Modifier, Style};
use tiller_text::Look;
pub use tiller_text::Role;

pub use color::Depth;
pub use file::{BUILT_IN, BuiltIn, ThemeError};
pub use set::Themes;

/// A look for every role.
#[derive(Clone, Debug, PartialEq)]
pub struct Theme {
    pub name: String,
    /// True for themes made for a light background.
    pub light: bool,
    /// How many colours its looks were fitted to.
    pub(crate) depth: Depth,
    pub(crate) styles: [Style; Role::COUNT],
    /// Colours of syntax highlighting by scope prefix, longest first (`keyword`, `string`, ...).
    pub syntax: Vec<(String, Style)>,
    /// Colours of text that another one replaces on a band of a diff.
    pub(crate) lifted: Vec<Lifted>,
}

/// A colour that could not be read on a band of a diff, and the colour in its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifted {
    pub(crate) band: Role,
    pub(crate) from: Color,
    pub(crate) to: Color,
}

impl Default for Theme {
    /// The terminal's own colours, bold and reverse: always there.
    fn default() -> Self {
        file::built_in("mono", Depth::Mono, false).unwrap_or_else(|_| Self {
            name: "none".into(),
            light: false,
            depth: Depth::Mono,
            styles: [Style::new(); Role::COUNT],
            syntax: Vec::new(),
            lifted: Vec::new(),
        })
    }
}

impl Theme {
    /// The look of `role`.
    pub fn style(&self, role: Role) -> Style {
        self.styles[role as usize]
    }

    /// A style on a ground: on the bands of a diff every text can be read.
    pub(crate) fn on(&self, ground: Role, style: Style) -> Style {
        let style = self.style(ground).patch(style);
        let lifted = self.lifted.iter().find(|l| l.band == ground && Some(l.from) == style.fg);
        lifted.map_or(style, |l| style.fg(l.to))
    }

    /// The style of a look: its role's, with its modifiers. Highlighted code has a colour besides (`text::paint::resolve`).
    pub fn look(&self, look: Look) -> Style {
        let mut style = self.style(look.role);
        let modifiers = [
            (look.is_bold(), Modifier::BOLD),
            (look.is_italic(), Modifier::ITALIC),
            (look.is_struck(), Modifier::CROSSED_OUT),
            (look.is_underlined(), Modifier::UNDERLINED),
        ];
        for (_, modifier) in modifiers.into_iter().filter(|(set, _)| *set) {
            style = style.add_modifier(modifier);
        }
        style
    }

    /// A theme that comes with the program, for this many colours; where it paints no ground of its own, for a dark one.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn built_in(name: &str, depth: Depth) -> Result<Self, ThemeError> {
        file::built_in(name, depth, false)
    }

    /// A theme that comes with the program, for a terminal with a light background or a dark one.
    ///
    /// # Errors
    /// When there is none of that name.
    pub(crate) fn built_in_on(name: &str, depth: Depth, light: bool) -> Result<Self, ThemeError> {
        file::built_in(name, depth, light)
    }
}
