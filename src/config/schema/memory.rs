//! Memory across sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Memory across sessions: MEMORY.md and USER.md.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Memory {
    /// What happens with an entry that an agent writes.
    pub approve: MemoryApproval,
    /// Before a compaction, and at the end of a session that did something, ask the model once what it wants to keep.
    pub save: bool,
    /// What happens when a call fails and a later one of the same kind succeeds.
    pub learnings: LearningsSetting,
}

impl Default for Memory {
    fn default() -> Self {
        Self { approve: MemoryApproval::default(), save: true, learnings: LearningsSetting::default() }
    }
}

/// What happens with an entry that an agent writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemoryApproval {
    /// It is written. Text that may come from web pages, files or commands waits for you in the memory browser, also where it is
    /// only for this project.
    #[default]
    Always,
    /// You are asked, with the exact difference.
    Ask,
    /// It is refused.
    Never,
}

/// What happens to learnings from failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LearningsSetting {
    /// Use them at once; those that come from the web wait for you.
    Save,
    /// Propose them: they wait in `/learnings`.
    #[default]
    Ask,
    /// Make none.
    Never,
}
