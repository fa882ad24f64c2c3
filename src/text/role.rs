//! Meanings of text and of areas. A theme maps each to a style.

/// The meaning of a piece of the screen.
///
/// The roles of areas ([`Role::is_area`]) set a background. Those of text set none: what lies below is painted before,
/// with the role of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Role {
    /// Area: the screen.
    Ground,
    /// Area: side panels, the composer, dialogs, blocks of code.
    Band,
    /// Area: inline code, chips, fields.
    Raised,
    /// Area: the selected row, over its full width.
    Selection,
    /// Ordinary text.
    Text,
    /// Less important text: times, measures, hints, what cannot be chosen.
    Dim,
    /// Names, titles, the current thing.
    Strong,
    /// Focus and keys, nothing else.
    Accent,
    /// The person's own words.
    User,
    /// Names of agents.
    Agent,
    /// Names of programs of other vendors.
    Vendor,
    /// Folded reasoning.
    Thinking,
    /// Code in a block.
    Code,
    /// Headings of Markdown.
    Heading,
    /// Links of Markdown.
    Link,
    /// Quotes of Markdown.
    Quote,
    /// Lines between panes. Decoration only.
    Border,
    /// A search hit.
    Match,
    /// Area: the current search hit.
    MatchCurrent,
    /// It went well.
    Ok,
    /// It is at work.
    Running,
    /// It waits for the person, nothing else.
    Waiting,
    /// It failed, or it destroys something.
    Error,
    /// Tone of the mode that only reads.
    ModeRead,
    /// Tone of the mode that asks before it changes something.
    ModeAsk,
    /// Tone of the mode that edits without asking.
    ModeEdit,
    /// Tone of the mode that does everything without asking.
    ModeAuto,
    /// Counts and marks of added lines.
    Added,
    /// Counts and marks of removed lines.
    Removed,
    /// Area: an added line of a diff.
    AddedBand,
    /// Area: a removed line of a diff.
    RemovedBand,
    /// Area: what a changed line has now.
    AddedWord,
    /// Area: what a changed line had before.
    RemovedWord,
    /// Area: a button without the focus.
    Button,
    /// Area: the button with the focus.
    ButtonFocus,
    /// Area: characters that were made visible (controls, bidi marks).
    Hostile,
    /// Area: the `demo` label.
    Demo,
}

impl Role {
    /// It paints a background of its own, where the theme has colours.
    pub fn is_area(self) -> bool {
        matches!(
            self,
            Self::Ground
                | Self::Band
                | Self::Raised
                | Self::Selection
                | Self::MatchCurrent
                | Self::AddedBand
                | Self::RemovedBand
                | Self::AddedWord
                | Self::RemovedWord
                | Self::Button
                | Self::ButtonFocus
                | Self::Hostile
                | Self::Demo
        )
    }

    /// The role of a name in a theme file. `Some(None)`: a name of an earlier version for something that is no longer
    /// drawn, which is accepted and has no effect.
    pub fn of_name(name: &str) -> Option<Option<Self>> {
        if let Some((role, _)) = Self::ALL.iter().find(|(_, n)| *n == name) {
            return Some(Some(*role));
        }
        Self::EARLIER.iter().find(|(n, _)| *n == name).map(|(_, role)| *role)
    }

    /// Names that theme files of earlier versions use.
    pub const EARLIER: &[(&str, Option<Self>)] = &[
        ("dialog", Some(Self::Band)),
        ("bar", None),
        ("border_focus", None),
        ("skipped", None),
        ("risky", None),
        ("hunk", None),
    ];
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
    Ground "ground", Band "band", Raised "raised", Selection "selection",
    Text "text", Dim "dim", Strong "strong", Accent "accent",
    User "user", Agent "agent", Vendor "vendor",
    Thinking "thinking", Code "code", Heading "heading", Link "link", Quote "quote",
    Border "border", Match "match", MatchCurrent "match_current",
    Ok "ok", Running "running", Waiting "waiting", Error "error",
    ModeRead "mode_read", ModeAsk "mode_ask", ModeEdit "mode_edit", ModeAuto "mode_auto",
    Added "added", Removed "removed", AddedBand "added_band", RemovedBand "removed_band",
    AddedWord "added_word", RemovedWord "removed_word",
    Button "button", ButtonFocus "button_focus", Hostile "hostile", Demo "demo",
}
