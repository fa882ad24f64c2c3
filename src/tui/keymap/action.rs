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
    /// It says yes to something dangerous: key files may not bind it to Enter or Space.
    pub yes: bool,
}

impl ActionSpec {
    /// An action that the palette offers.
    pub const fn new(id: &'static str, label: &'static str, help: &'static str) -> Self {
        Self { action: Action(id), label, help, palette: true, yes: false }
    }

    /// One that makes sense only by key (moving a cursor).
    pub const fn key_only(id: &'static str, label: &'static str, help: &'static str) -> Self {
        Self { action: Action(id), label, help, palette: false, yes: false }
    }

    /// One that approves.
    pub const fn yes(id: &'static str, label: &'static str, help: &'static str) -> Self {
        Self { action: Action(id), label, help, palette: false, yes: true }
    }
}
