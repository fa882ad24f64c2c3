//! What the rooms that may not know the tools need of them: permission rules, agent definitions and the screen.

use std::sync::Arc;

use serde_json::Value;

use crate::{ToolVerb, Touch};

/// The fixed facts about one tool. The tool states them in its own file.
#[derive(Clone, Debug)]
pub struct ToolInfo {
    /// As models call it and as rules name it. Never changes: it is stored in sessions.
    pub name: &'static str,
    /// The set that an agent definition grants it with.
    pub set: ToolSet,
    /// Which agents have it when no agent definition decides that.
    pub grant: ToolGrant,
    /// Whether a call starts agents. Agents at the greatest depth do not have such a tool.
    pub starts_agents: bool,
    /// What a call touches, in kind.
    pub touch: Touch,
    /// What the argument of a permission rule about it is compared with.
    pub rule: RuleArgument,
    /// Names that other programs give to such a tool, in small letters; offered where a rule misspells its name.
    pub aliases: &'static [&'static str],
    /// What its row on the screen says before the target.
    pub verb: ToolVerb,
    /// What the row shows besides the verb (a path, a command, a pattern), from the arguments of a call. Not cleaned for
    /// a terminal.
    pub target: fn(&Value) -> String,
}

/// Which agents have a tool when no agent definition grants or withholds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolGrant {
    /// Every agent.
    All,
    /// The main agent only: the tool changes the user's own state.
    Main,
    /// No agent, except the main one where the settings say so (`agents.all_tools`). Agents that may delegate can be
    /// granted it by a definition, even where the agent above them does not have it.
    Named,
    /// The agents of a delegation that shares a blackboard. A definition does not change that.
    Siblings,
}

/// Sets of tools that an agent definition can grant by one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolSet {
    /// Looks at files and at earlier sessions.
    Read,
    /// Changes files.
    Edit,
    /// Runs commands.
    Run,
    /// Reaches the network.
    Web,
    /// Acts on web pages.
    Browser,
    /// Asks the person, keeps the plan and the checkpoints.
    Plan,
    /// Works with other agents.
    Crew,
    /// Runs scripts that call tools.
    Code,
    /// Makes and reads images, speech, diagrams and documents, and asks several models.
    Media,
    /// Keeps what is known across sessions.
    Memory,
}

impl ToolSet {
    /// Every set, in the order in which they are listed.
    pub const ALL: [Self; 10] = [
        Self::Read,
        Self::Edit,
        Self::Run,
        Self::Web,
        Self::Browser,
        Self::Plan,
        Self::Crew,
        Self::Code,
        Self::Media,
        Self::Memory,
    ];

    /// As in an agent definition.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Run => "run",
            Self::Web => "web",
            Self::Browser => "browser",
            Self::Plan => "plan",
            Self::Crew => "crew",
            Self::Code => "code",
            Self::Media => "media",
            Self::Memory => "memory",
        }
    }

    /// The set of this name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.word() == word)
    }
}

/// What the argument of a permission rule, `tool(argument)`, is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleArgument {
    /// The simple commands of a shell command line.
    Command,
    /// A path whose content the tool shows.
    ReadPath,
    /// A path that the tool writes without showing what was there.
    WritePath,
    /// A path that the tool writes by what it contains, and shows.
    EditPath,
    /// The address or the host of a request.
    Address,
    /// The arguments as text.
    Text,
}

impl RuleArgument {
    /// Whether it is a path.
    pub fn is_path(self) -> bool {
        matches!(self, Self::ReadPath | Self::WritePath | Self::EditPath)
    }

    /// Whether the tool shows what a path contains.
    pub fn shows_path(self) -> bool {
        matches!(self, Self::ReadPath | Self::EditPath)
    }

    /// Whether the tool changes a path.
    pub fn changes_path(self) -> bool {
        matches!(self, Self::WritePath | Self::EditPath)
    }
}

/// The tools of this process, sorted by name. The composition root makes it from the registry and hands it down. Cheap
/// to clone.
#[derive(Clone, Debug, Default)]
pub struct ToolCatalog(Arc<[ToolInfo]>);

impl ToolCatalog {
    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&ToolInfo> {
        self.0.binary_search_by(|t| t.name.cmp(name)).ok().and_then(|at| self.0.get(at))
    }

    /// Whether there is a tool of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// All of them, by name.
    pub fn iter(&self) -> std::slice::Iter<'_, ToolInfo> {
        self.0.iter()
    }

    /// Their names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<'_> {
        self.0.iter().map(|t| t.name)
    }

    /// The names of a set's tools, sorted.
    pub fn of_set(&self, set: ToolSet) -> impl Iterator<Item = &'static str> + use<'_> {
        self.0.iter().filter(move |t| t.set == set).map(|t| t.name)
    }
}

impl FromIterator<ToolInfo> for ToolCatalog {
    fn from_iter<I: IntoIterator<Item = ToolInfo>>(tools: I) -> Self {
        let mut tools: Vec<ToolInfo> = tools.into_iter().collect();
        tools.sort_by_key(|t| t.name);
        tools.dedup_by_key(|t| t.name);
        Self(tools.into())
    }
}
