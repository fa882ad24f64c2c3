//! What a definition holds.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;
use tiller_protocol::{AgentLimits, Effort, MemoryRights, Profile};

/// One kind of agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Definition {
    /// Small letters, digits and `-`; what `@name` and `delegate_task` call it.
    pub name: String,
    /// One line: when to use it.
    pub description: String,
    pub from: Origin,
    /// `None`: built in.
    pub file: Option<PathBuf>,
    #[serde(flatten)]
    pub pick: Pick,
    /// How much its model thinks; `None`: as in the session that starts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    pub tools: Tools,
    /// Names of skills that it starts with.
    pub skills: Vec<String>,
    pub permissions: Narrowing,
    /// `None` of them: what the settings say. A cost of 0: nothing may be spent.
    pub limits: AgentLimits,
    /// A program of another vendor that does the work.
    pub cli: Option<String>,
    /// The terminal where its commands run; `None`: as the agent that starts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal: Option<String>,
    /// Layers of the system prompt that it gets besides its own prompt; `None`: all.
    pub may: Option<BTreeSet<String>>,
    /// What it may do with memory; `None`: what its place allows, which is nothing below the main agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryRights>,
    /// The body of the file.
    #[serde(skip)]
    pub prompt: String,
}

impl Definition {
    /// May this layer be in its system prompt? `prompt` and `session` always are: they are what it is, and what
    /// it may do.
    pub fn may(&self, layer: &str) -> bool {
        matches!(layer, "prompt" | "session") || self.may.as_ref().is_none_or(|m| m.contains(layer))
    }
}

/// Where a definition is from, from general to particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    BuiltIn,
    /// A plugin that the person installed.
    Plugin,
    User,
    Project,
}

impl Origin {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Self::BuiltIn => "built in",
            Self::Plugin => "plugin",
            Self::User => "yours",
            Self::Project => "project",
        }
    }
}

/// Models by role, as in `[tiers]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    Fast,
    Main,
    Deep,
}

impl Tier {
    /// Every tier, the cheapest first.
    pub const ALL: [Self; 3] = [Self::Fast, Self::Main, Self::Deep];

    /// The tier with this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.word() == name)
    }

    /// As in a file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Main => "main",
            Self::Deep => "deep",
        }
    }
}

/// Which model it runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// The model of the agent that starts it.
    #[default]
    Inherit,
    Tier(Tier),
    /// `provider/model`.
    Model(String),
}

impl Pick {
    /// For people: `fast tier`, `anthropic/x`, or nothing.
    pub fn words(&self) -> String {
        match self {
            Self::Inherit => String::new(),
            Self::Tier(tier) => format!("{} tier", tier.word()),
            Self::Model(model) => model.clone(),
        }
    }
}

/// Which tools it sees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tools {
    /// The set of its depth.
    #[default]
    Default,
    All,
    /// These, by name. May be none.
    Only(BTreeSet<String>),
}

impl Tools {
    /// Does the definition grant the tool of this name? `None`: its depth decides. Depth and the parent's own
    /// tools can still take away what is granted here.
    pub fn grants(&self, tool: &str) -> Option<bool> {
        match self {
            Self::Default => None,
            Self::All => Some(true),
            Self::Only(names) => Some(names.contains(tool)),
        }
    }
}

/// What it may do less than its parent. It can never do more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Narrowing {
    /// The stricter one of this and the parent's holds.
    pub profile: Option<Profile>,
    /// Rules, each `tool(argument)`.
    pub ask: Vec<String>,
    pub deny: Vec<String>,
}
