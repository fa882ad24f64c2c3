//! The typed form of `config.toml`. The JSON schema that `tiller config --schema` prints is derived
//! from these types, and their comments are the descriptions in it.

mod browser;
mod embeddings;
mod files;
mod hooks;
mod limits;
mod mcp;
mod media;
mod memory;
mod provider;
mod screen;
mod skills;
mod terminals;
mod web;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tiller_protocol::{Effort, Profile};

pub use browser::{Browser, BrowserBackend};
pub use embeddings::Embeddings;
pub use files::{OnSnapshotFailure, Snapshots, Watch};
pub use hooks::{Hook, HookFormat, Hooks};
pub use limits::{Agents, Budget, Code, Context, Limits, Reuse};
pub use mcp::{McpCompany, McpLogin, McpLoginKind, McpServer, McpTransport};
pub use media::{Media, MediaMixture, MediaServer};
pub use memory::{LearningsSetting, Memory, MemoryApproval};
pub use provider::{LongPrompt, ModelInfo, Provider, ProviderKind, ProviderKinds, Timeouts};
pub use screen::{BranchSummary, Detach, EnterWhileRunning, Images, OnHangup, Ui};
pub use skills::{SkillApproval, SkillOffer, SkillSettings};
pub use terminals::{Terminal, TerminalFiles, TerminalKind, unknown_terminal};
pub use web::{SearchEngine, Web};

/// All settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Model for new sessions, as `provider/model`.
    pub model: Option<String>,
    /// Permission mode at the start of a session.
    pub profile: Profile,
    /// How much the model thinks: `off`, `low`, `medium`, `high`, `max`, or `default` (the provider's default).
    pub effort: Effort,
    /// Which commands the kernel confines, where it can.
    pub sandbox: Sandbox,
    /// Package managers whose caches commands in the sandbox may write. What is in a cache may be run outside later, so
    /// the list is empty by default; without it the caches can be read.
    pub sandbox_caches: Vec<PackageCache>,
    /// Domains that commands confined to the workspace may connect to, on ports 80 and 443: `crates.io` is one name,
    /// `*.crates.io` all names below it, `*` the whole network. Empty: none. Without bubblewrap this needs
    /// a kernel with seccomp user notification, except for `*`.
    pub sandbox_network: Vec<String>,
    /// Models by role.
    pub tiers: Tiers,
    /// Model providers, by name.
    pub providers: BTreeMap<String, Provider>,
    /// Budgets.
    pub budget: Budget,
    /// Limits on turns, tool calls and commands.
    pub limits: Limits,
    /// Scripts that call tools (`execute_code`).
    pub code: Code,
    /// The model's context.
    pub context: Context,
    /// The screen.
    pub ui: Ui,
    /// The file watcher.
    pub watch: Watch,
    /// Snapshots for restore and undo.
    pub snapshots: Snapshots,
    /// Limits of agents.
    pub agents: Agents,
    /// Detaching from running work.
    pub detach: Detach,
    /// Commands that run when something happens, by event.
    pub hooks: Hooks,
    /// The browser of agents.
    pub browser: Browser,
    /// Places where commands of agents run, by name.
    pub terminals: BTreeMap<String, Terminal>,
    /// Web search.
    pub web: Web,
    /// Images, speech, and questions to several models.
    pub media: Media,
    /// A model that makes vectors of texts, for search by meaning.
    pub embeddings: Embeddings,
    /// Skills.
    pub skills: SkillSettings,
    /// Memory across sessions.
    pub memory: Memory,
    /// MCP servers, by name.
    pub mcp: BTreeMap<String, McpServer>,
}

impl Config {
    /// The fault of the name of a terminal; `None`: the settings have it, or it is this machine.
    pub fn no_such_terminal(&self, name: &str) -> Option<String> {
        let known = name.is_empty() || name == "local" || self.terminals.contains_key(name);
        (!known).then(|| unknown_terminal(name, self.terminals.keys().cloned().collect()))
    }
}

/// Which commands the kernel confines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sandbox {
    /// All commands of agents: those that run without asking can only read; the others write in the workspace only and
    /// reach no network.
    #[default]
    #[serde(alias = "workspace")]
    Auto,
    /// Only commands that run without asking because they only read.
    Read,
    /// No command.
    Off,
}

/// A package manager whose cache commands in the sandbox may write. What is in a cache may be run outside the sandbox later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PackageCache {
    Cargo,
    Go,
    Gradle,
    Maven,
    Npm,
    Pip,
    Pnpm,
    Uv,
    Yarn,
}

/// Models by role, each `provider/model`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tiers {
    /// Model for titles and summaries; the main model by default.
    pub fast: Option<String>,
    /// Model for the conversation; `model` by default.
    pub main: Option<String>,
    /// Expensive model for hard tasks; used only after you approve it.
    pub deep: Option<String>,
    /// Use the deep tier without asking.
    pub deep_allowed: bool,
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
