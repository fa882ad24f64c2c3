//! Names of things that can be done. Each panel and dialog declares its own next to the code that does them.

/// An action by its id, `group.verb`, for instance `composer.send`. Key files use the same ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Action(pub &'static str);

/// Begins a sequence with the leader key.
pub const LEADER: Action = Action("global.leader");

/// The groups of the box after the leader key and of the palette.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Menu {
    /// Places to go to, and searches.
    Go,
    /// The session as a whole: open, name, undo, leave.
    Session,
    /// The agents, their model and their questions.
    Agents,
    /// How the screen looks.
    View,
    /// The message that is being written.
    Write,
}

impl Menu {
    /// In the order of the box.
    pub const ALL: [Self; 5] = [Self::Go, Self::Session, Self::Agents, Self::View, Self::Write];

    /// Its title.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Go => "Go",
            Self::Session => "Session",
            Self::Agents => "Agents",
            Self::View => "View",
            Self::Write => "Write",
        }
    }
}

/// An action, as help, palette, footer and key files know it.
#[derive(Clone, Copy, Debug)]
pub struct ActionSpec {
    pub action: Action,
    /// Short, for the footer: `send`, `stop`.
    pub label: &'static str,
    /// One sentence, for help and palette.
    pub help: &'static str,
    /// True when the palette offers it.
    pub palette: bool,
    /// Its group in the palette and in the box after the leader key; `None`: the box leaves it out.
    pub menu: Option<Menu>,
    /// It approves something dangerous: key files may not bind it to Enter or Space.
    pub yes: bool,
    /// It grants, ends or removes something at once: a dialog accepts it only after it was readable for a moment.
    pub decides: bool,
    /// It stops, ends or clears something, or lets more run without asking: no list selects it by itself, and a list
    /// accepts it only once its row was readable.
    pub ends: bool,
}

impl ActionSpec {
    /// An action that the palette offers.
    pub const fn new(id: &'static str, label: &'static str, help: &'static str) -> Self {
        let action = Action(id);
        Self { action, label, help, palette: true, menu: None, yes: false, decides: false, ends: false }
    }

    /// An action that makes sense only by key (moving a cursor).
    pub const fn key_only(id: &'static str, label: &'static str, help: &'static str) -> Self {
        Self { palette: false, ..Self::new(id, label, help) }
    }

    /// An action that approves. It decides, too.
    pub const fn yes(id: &'static str, label: &'static str, help: &'static str) -> Self {
        Self { yes: true, decides: true, ..Self::key_only(id, label, help) }
    }

    /// The same action, marked: it grants, ends or removes something at once.
    #[must_use]
    pub const fn deciding(self) -> Self {
        Self { decides: true, ..self }
    }

    /// The same action in a group of the palette and of the box after the leader key.
    #[must_use]
    pub const fn menu(self, menu: Menu) -> Self {
        Self { menu: Some(menu), ..self }
    }

    /// The same action, marked so that no list selects it by itself.
    #[must_use]
    pub const fn ending(self) -> Self {
        Self { ends: true, ..self }
    }
}
