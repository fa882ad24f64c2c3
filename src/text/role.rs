//! Meanings of text. A theme maps each to a style.

/// The meaning of a piece of the screen.
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
    /// Headings of Markdown.
    Heading,
    /// Links of Markdown.
    Link,
    /// Quotes of Markdown.
    Quote,
    /// Border of a panel without the focus.
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
            /// Number of roles.
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
