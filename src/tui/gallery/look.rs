//! The look that a screen is drawn with: a theme, the number of colours, the terminal's own background.

use std::collections::BTreeMap;
use std::sync::Mutex;

use ratatui::style::{Color, Modifier, Style};
use tiller_protocol::lock;

use crate::theme::{BUILT_IN, Depth, Role, Theme, color, readable};

/// Red, green, blue.
pub type Rgb = (u8, u8, u8);

/// A theme on a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// For file names: the theme's name, `ansi-light` for `ansi` on a light background.
    pub name: String,
    /// The theme's name.
    pub theme: String,
    /// The terminal's own background is light.
    pub light: bool,
    /// Colours that the terminal shows.
    pub depth: Depth,
}

impl Look {
    /// The shipped theme of this name, with the number of colours that it is made for. `ansi-light` is `ansi` on a
    /// light background. `None`: there is no such theme.
    pub fn named(name: &str) -> Option<Self> {
        let (theme, on_light) = match name {
            "ansi-light" => ("ansi", true),
            name => (name, false),
        };
        BUILT_IN.iter().find(|(n, _)| *n == theme)?;
        let depth = match theme {
            "mono" => Depth::Mono,
            "ansi" => Depth::Sixteen,
            _ => Depth::True,
        };
        Some(Self { name: name.to_owned(), theme: theme.to_owned(), light: on_light, depth })
    }

    /// Every shipped theme.
    pub fn all() -> Vec<Self> {
        let names = BUILT_IN.iter().map(|(n, _)| *n);
        names.chain(["ansi-light"]).filter_map(Self::named).collect()
    }

    /// The same theme for another number of colours.
    #[must_use]
    pub fn at(&self, depth: Depth) -> Self {
        Self { depth, ..self.clone() }
    }

    /// The theme as it is drawn. A file is parsed once in the process.
    ///
    /// # Errors
    /// A sentence, when the theme is not shipped.
    pub(super) fn theme(&self) -> Result<Theme, String> {
        static THEMES: Mutex<BTreeMap<String, Theme>> = Mutex::new(BTreeMap::new());
        let mut themes = lock(&THEMES);
        let key = format!("{} {} {:?}", self.theme, self.light, self.depth);
        if let Some(theme) = themes.get(&key) {
            return Ok(theme.clone());
        }
        let theme = Theme::built_in_on(&self.theme, self.depth, self.light).map_err(|e| e.to_string())?;
        themes.insert(key, theme.clone());
        Ok(theme)
    }

    /// Background of cells that have none of their own, and the text colour on it, as xterm shows them.
    pub fn ground(&self) -> (Rgb, Rgb) {
        readable::own(self.light)
    }

    /// Colour of ordinary text, which the cursor has too.
    pub fn text(&self) -> Rgb {
        let fg = self.theme().ok().and_then(|t| t.style(Role::Text).fg);
        fg.and_then(color::rgb).unwrap_or(self.ground().1)
    }

    /// Colours of a cell as they are seen: text, then background.
    pub fn seen(&self, fg: Color, bg: Color, modifier: Modifier) -> (Rgb, Rgb) {
        let style = Style::new().fg(fg).bg(bg).add_modifier(modifier);
        readable::seen(style, self.ground().0, self.light)
    }
}
