//! Names of things that can be done. Each panel and dialog declares its own next to the code that does them.

/// An action by its id, `group.verb`, for instance `composer.send`. Key files use the same ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Action(pub &'static str);

/// Begins a sequence with the leader key.
pub const LEADER: Action = Action("global.leader");

/// What help, palette, footer and key files know of an action.
#[derive(Clone, Copy, Debug)]
pub struct ActionSpec {
    pub action: Action,
    /// Short, for the footer: `send`, `stop`.
    pub label: &'static str,
    /// One sentence, for help and palette.
    pub help: &'static str,
    /// Whether the palette offers it.
    pub palette: bool,
    /// It approves something dangerous: key files may not bind it to Enter or Space.
    pub yes: bool,
    /// It grants, ends or removes something at once: a dialog accepts it only after it was readable for a moment.
    pub decides: bool,
}

impl ActionSpec {
    /// An action that the palette offers.
    pub const fn new(id: &'static str, label: &'static str, help: &'static str) -> Self {
        Self { action: Action(id), label, help, palette: true, yes: false, decides: false }
    }

    /// An action that makes sense only by key (moving a cursor).
    pub const fn key_only(id: &'static str, label: &'static str, help: &'static str) -> Self {
        Self { palette: false, ..Self::new(id, label, help) }
    }

    /// An action that approves. It decides, too.
    pub const fn yes(id: &'static str, label: &'static str, help: &'static str) -> Self {
        Self { yes: true, decides: true, ..Self::key_only(id, label, help) }
    }

    /// The same action, marked as one that grants, ends or removes something at once.
    #[must_use]
    pub const fn deciding(self) -> Self {
        Self { decides: true, ..self }
    }
}
