//! The feed of file changes, with the author of each.

use serde::{Deserialize, Serialize};

use crate::base::clock::Time;
use crate::base::ids::AgentId;

/// The author of a file change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "who", rename_all = "snake_case")]
pub enum Who {
    /// The person, or a program of theirs.
    You,
    /// An agent's edit tool.
    Agent { agent: AgentId },
    /// A command that an agent ran.
    Shell { agent: AgentId },
    /// Git (checkout, commit, merge).
    Git,
}

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
    Renamed,
    /// Many paths at once: `path` is the folder, `count` how many.
    Storm,
    /// A change of git's state: the branch, a commit, a conflict. `path` holds the description.
    Git,
}

impl ChangeKind {
    /// Whether the path of such a change is one file.
    pub fn is_file(self) -> bool {
        !matches!(self, Self::Storm | Self::Git)
    }
}

/// One line of the feed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileChange {
    pub time: Time,
    pub kind: ChangeKind,
    /// Relative to the workspace, `/`-separated; bytes that are not UTF-8 are escaped as `\xNN`.
    pub path: String,
    #[serde(flatten)]
    pub who: Who,
    /// Number of changes that this line stands for.
    #[serde(default = "one")]
    pub count: u64,
    /// Lines added and removed, when a difference is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<(u32, u32)>,
    /// The agent's command that ran at the time. Changes of other writers at the same time are attributed to it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub during: Option<String>,
}

fn one() -> u64 {
    1
}
