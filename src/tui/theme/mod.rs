//! Colours have meaning: code names a [`Role`], a theme file says how it looks. Nothing outside this
//! folder names a colour.

pub mod base16;
pub mod color;
mod file;
pub(crate) mod grid;
mod pixel;
mod readable;
mod set;

use ratatui::style::Style;

pub use color::Depth;
pub use file::{BUILT_IN, ThemeError};
pub use set::Themes;

/// What something means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Role {
    /// Ordinary text.
    Text,
    /// Less important text: times, measures, hints.
    Dim,
    /// Headings, names, the current thing.
    Strong,
    /// Links, keys in the footer, mentions.
    Accent,
    /// The person's own words.
    User,
    /// The model's mark.
    Agent,
    /// Folded reasoning.
    Thinking,
    /// Code spans and blocks.
    Code,
    Heading,
    Link,
    Quote,
    Border,
    /// Border of the panel with the focus.
    BorderFocus,
    /// Bars: header and footer.
    Bar,
    /// Selected row.
    Selection,
    /// A search hit, and the current one.
    Match,
    MatchCurrent,
    /// States.
    Ok,
    Running,
    Waiting,
    Error,
    Skipped,
    /// The risky permission mode in the header.
    Risky,
    /// Differences.
    Added,
    Removed,
    AddedWord,
    RemovedWord,
    Hunk,
    /// Dialogs.
    Dialog,
    Button,
    ButtonFocus,
    /// Characters that were made visible (controls, bidi marks).
    Hostile,
    /// The `demo` label.
    Demo,
}

macro_rules! roles {
    ($($role:ident $name:literal,)*) => {
        impl Role {
            /// How many there are.
            pub const COUNT: usize = Self::Demo as usize + 1;

            /// Every role with its name in theme files.
            pub const ALL: &[(Self, &str)] = &[$((Self::$role, $name),)*];
        }
    };
}

roles! {
    Text "text", Dim "dim", Strong "strong", Accent "accent", User "user", Agent "agent",
    Thinking "thinking", Code "code", Heading "heading", Link "link", Quote "quote",
    Border "border", BorderFocus "border_focus", Bar "bar", Selection "selection",
    Match "match", MatchCurrent "match_current", Ok "ok", Running "running", Waiting "waiting",
    Error "error", Skipped "skipped", Risky "risky", Added "added", Removed "removed",
    AddedWord "added_word", RemovedWord "removed_word", Hunk "hunk", Dialog "dialog",
    Button "button", ButtonFocus "button_focus", Hostile "hostile", Demo "demo",
}

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
        })
    }
}

impl Theme {
    /// The look of `role`.
    pub fn style(&self, role: Role) -> Style {
        self.styles[role as usize]
    }

    /// A theme that comes with the program, for this many colours; where it paints no ground of its own, for a dark one.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn built_in(name: &str, depth: Depth) -> Result<Self, ThemeError> {
        file::built_in(name, depth, false)
    }
}
