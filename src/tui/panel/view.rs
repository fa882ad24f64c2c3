//! The views of the screen by name.

/// The views that Alt-1 to Alt-7 show, and the composer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum View {
    Composer,
    Conversation,
    Todo,
    Agents,
    Watch,
    Sessions,
    Diff,
    Terminals,
}

impl View {
    /// The composer, then the seven views in the order of their digits.
    pub const ALL: [Self; 8] = [
        Self::Composer,
        Self::Conversation,
        Self::Todo,
        Self::Agents,
        Self::Watch,
        Self::Sessions,
        Self::Diff,
        Self::Terminals,
    ];

    /// The digit of Alt-1 to Alt-7; 0 is the composer.
    pub fn digit(self) -> usize {
        Self::ALL.iter().position(|v| *v == self).unwrap_or(0)
    }

    /// Returns what its title begins with.
    pub fn name(self) -> &'static str {
        match self {
            Self::Composer => "Message",
            Self::Conversation => "Conversation",
            Self::Todo => "Todo",
            Self::Agents => "Agents",
            Self::Watch => "Changes",
            Self::Sessions => "Session tree",
            Self::Diff => "Diff",
            Self::Terminals => "Terminals",
        }
    }

    /// The action that goes to it.
    pub fn action(self) -> &'static str {
        match self {
            Self::Composer => "view.composer",
            Self::Conversation => "view.conversation",
            Self::Todo => "view.todo",
            Self::Agents => "view.agents",
            Self::Watch => "view.watch",
            Self::Sessions => "view.sessions",
            Self::Diff => "view.diff",
            Self::Terminals => "view.terminals",
        }
    }
}
