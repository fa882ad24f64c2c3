//! The concerns of the store. Each has a handle that borrows the store; its methods are in the file of its concern.

use crate::open::Store;

/// Sessions: creating, finding, listing, naming, archiving.
#[derive(Clone, Copy, Debug)]
pub struct Sessions<'a> {
    pub(crate) store: &'a Store,
}

/// Sessions in the trash, and their removal for good.
#[derive(Clone, Copy, Debug)]
pub struct Trash<'a> {
    pub(crate) store: &'a Store,
}

/// The agents of a session, and their own sessions.
#[derive(Clone, Copy, Debug)]
pub struct Agents<'a> {
    pub(crate) store: &'a Store,
}

/// Turns that used a skill, and trials of skills.
#[derive(Clone, Copy, Debug)]
pub struct SkillUses<'a> {
    pub(crate) store: &'a Store,
}

/// Workflow runs and their steps.
#[derive(Clone, Copy, Debug)]
pub struct Workflows<'a> {
    pub(crate) store: &'a Store,
}

/// States of the workspace's files as a session saw them: ids of the snapshot store.
#[derive(Clone, Copy, Debug)]
pub struct Steps<'a> {
    pub(crate) store: &'a Store,
}

/// State of a head for the next process: queued messages, open questions, the running turn.
#[derive(Clone, Copy, Debug)]
pub struct Unfinished<'a> {
    pub(crate) store: &'a Store,
}

/// The to-do list of each head.
#[derive(Clone, Copy, Debug)]
pub struct Todos<'a> {
    pub(crate) store: &'a Store,
}

/// Permission rules that hold for one session.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    pub(crate) store: &'a Store,
}

/// Prompts that the person sent, for the composer's history.
#[derive(Clone, Copy, Debug)]
pub struct Prompts<'a> {
    pub(crate) store: &'a Store,
}

/// Decisions about the trust in folders.
#[derive(Clone, Copy, Debug)]
pub struct Trust<'a> {
    pub(crate) store: &'a Store,
}

/// Decisions about tool calls, and their outcomes.
#[derive(Clone, Copy, Debug)]
pub struct Audit<'a> {
    pub(crate) store: &'a Store,
}

/// Model calls with their costs, and sums of them.
#[derive(Clone, Copy, Debug)]
pub struct Costs<'a> {
    pub(crate) store: &'a Store,
}

/// Which process has a head open.
#[derive(Clone, Copy, Debug)]
pub struct Leases<'a> {
    pub(crate) store: &'a Store,
}

/// Full-text search over sessions and trees.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    pub(crate) store: &'a Store,
}

/// Sessions as JSON lines: export and import.
#[derive(Clone, Copy, Debug)]
pub struct Transfer<'a> {
    pub(crate) store: &'a Store,
}

/// Single entries: appending and reading.
#[derive(Clone, Copy, Debug)]
pub struct Entries<'a> {
    pub(crate) store: &'a Store,
}

/// Named pointers into the tree of entries.
#[derive(Clone, Copy, Debug)]
pub struct Heads<'a> {
    pub(crate) store: &'a Store,
}

/// Heads as the person sees them: labels, and which are archived.
#[derive(Clone, Copy, Debug)]
pub struct Branches<'a> {
    pub(crate) store: &'a Store,
}

/// Names for single entries.
#[derive(Clone, Copy, Debug)]
pub struct Tags<'a> {
    pub(crate) store: &'a Store,
}

/// Entries from a head or an entry up to the root.
#[derive(Clone, Copy, Debug)]
pub struct Paths<'a> {
    pub(crate) store: &'a Store,
}

/// A session as a tree for the browser: nodes first, their text on demand.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a> {
    pub(crate) store: &'a Store,
}

/// Changes of memory files.
#[derive(Clone, Copy, Debug)]
pub struct MemoryChanges<'a> {
    pub(crate) store: &'a Store,
}

/// Learnings: what failed, and what worked instead.
#[derive(Clone, Copy, Debug)]
pub struct Learnings<'a> {
    pub(crate) store: &'a Store,
}

/// What came of the rules of memory files.
#[derive(Clone, Copy, Debug)]
pub struct Receipts<'a> {
    pub(crate) store: &'a Store,
}

impl Store {
    /// Learnings: what failed, and what worked instead.
    pub fn learnings(&self) -> Learnings<'_> {
        Learnings { store: self }
    }

    /// What came of the rules of memory files.
    pub fn receipts(&self) -> Receipts<'_> {
        Receipts { store: self }
    }

    /// Sessions: creating, finding, listing, naming, archiving.
    pub fn sessions(&self) -> Sessions<'_> {
        Sessions { store: self }
    }

    /// Sessions in the trash, and their removal for good.
    pub fn trash(&self) -> Trash<'_> {
        Trash { store: self }
    }

    /// The agents of a session, and their own sessions.
    pub fn agents(&self) -> Agents<'_> {
        Agents { store: self }
    }

    /// Workflow runs and their steps.
    pub fn workflows(&self) -> Workflows<'_> {
        Workflows { store: self }
    }

    /// Turns that used a skill, and trials of skills.
    pub fn skill_uses(&self) -> SkillUses<'_> {
        SkillUses { store: self }
    }

    /// States of the workspace's files as a session saw them: ids of the snapshot store.
    pub fn steps(&self) -> Steps<'_> {
        Steps { store: self }
    }

    /// State of a head for the next process: queued messages, open questions, the running turn.
    pub fn unfinished(&self) -> Unfinished<'_> {
        Unfinished { store: self }
    }

    /// The to-do list of each head.
    pub fn todos(&self) -> Todos<'_> {
        Todos { store: self }
    }

    /// Permission rules that hold for one session.
    pub fn rules(&self) -> Rules<'_> {
        Rules { store: self }
    }

    /// Prompts that the person sent, for the composer's history.
    pub fn prompts(&self) -> Prompts<'_> {
        Prompts { store: self }
    }

    /// Decisions about the trust in folders.
    pub fn trust(&self) -> Trust<'_> {
        Trust { store: self }
    }

    /// Decisions about tool calls, and their outcomes.
    pub fn audit(&self) -> Audit<'_> {
        Audit { store: self }
    }

    /// Model calls with their costs, and sums of them.
    pub fn costs(&self) -> Costs<'_> {
        Costs { store: self }
    }

    /// Which process has a head open.
    pub fn leases(&self) -> Leases<'_> {
        Leases { store: self }
    }

    /// Full-text search over sessions and trees.
    pub fn search(&self) -> Search<'_> {
        Search { store: self }
    }

    /// Sessions as JSON lines: export and import.
    pub fn transfer(&self) -> Transfer<'_> {
        Transfer { store: self }
    }

    /// Single entries: appending and reading.
    pub fn entries(&self) -> Entries<'_> {
        Entries { store: self }
    }

    /// Named pointers into the tree of entries.
    pub fn heads(&self) -> Heads<'_> {
        Heads { store: self }
    }

    /// Heads as the person sees them: labels, and which are archived.
    pub fn branches(&self) -> Branches<'_> {
        Branches { store: self }
    }

    /// Names for single entries.
    pub fn tags(&self) -> Tags<'_> {
        Tags { store: self }
    }

    /// Entries from a head or an entry up to the root.
    pub fn paths(&self) -> Paths<'_> {
        Paths { store: self }
    }

    /// A session as a tree for the browser: nodes first, their text on demand.
    pub fn tree(&self) -> Tree<'_> {
        Tree { store: self }
    }

    /// Changes of memory files.
    pub fn memory_changes(&self) -> MemoryChanges<'_> {
        MemoryChanges { store: self }
    }
}
