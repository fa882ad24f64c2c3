//! Limits on money, requests, commands, context and agents.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Budgets in US dollars. A soft limit warns; a hard limit stops and asks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Warning limit of a session.
    pub session_soft: Option<f64>,
    /// Hard limit of a session.
    pub session_hard: Option<f64>,
    /// Warning limit of a day.
    pub day_soft: Option<f64>,
    /// Hard limit of a day.
    pub day_hard: Option<f64>,
    /// Hard limit of a day for a tier, by the tier's name.
    pub tiers: BTreeMap<String, f64>,
}

/// Scripts that call tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Code {
    /// The Python interpreter: a name, or an absolute path. Takes effect at the next start.
    pub python: String,
    /// Maximum time of a script, in seconds.
    pub time: u64,
    /// Maximum tool calls of a script.
    pub calls: u32,
    /// Maximum bytes of a script's standard output that the model reads.
    pub output_bytes: usize,
    /// Maximum bytes of its standard error.
    pub error_bytes: usize,
}

impl Default for Code {
    fn default() -> Self {
        Self { python: "python3".into(), time: 120, calls: 50, output_bytes: 50_000, error_bytes: 10_000 }
    }
}

/// Limits on turns, tool calls and commands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Maximum model requests per turn.
    pub turns: u32,
    /// Maximum attempts per request.
    pub attempts: u32,
    /// Longest wait in seconds that a server may request before a retry when no one can skip the wait
    /// (`tiller exec`, for example); 0 for no limit.
    pub longest_wait: u64,
    /// Rounds of identical calls with identical results after which Tiller asks whether the agent should continue; if
    /// no one can answer, the turn ends. 0 turns this off.
    pub repeats: u32,
    /// Maximum read-only tool calls at the same time.
    pub parallel: usize,
    /// Maximum tool calls per reply; further calls get an error result.
    pub calls_per_reply: usize,
    /// Default timeout of a command, in seconds.
    pub command: u64,
    /// Maximum timeout of a command, in seconds.
    pub command_max: u64,
    /// Maximum processes of a command at the same time, including those that it starts; at least 16. Linux only.
    pub command_processes: u64,
    /// Maximum share of the machine's memory that a command's processes may use together, in percent. Linux only.
    pub command_memory: u64,
    /// Files that a command may remove without a question. Files that git has or ignores, that exist again, or that the
    /// command made itself do not count. Linux only.
    pub command_deletions: usize,
    /// As `command_processes`, for an external agent program.
    pub program_processes: u64,
    /// As `command_memory`, for an external agent program.
    pub program_memory: u64,
    /// Maximum size in bytes of a tool result that is sent to the model.
    pub output_bytes: usize,
    /// Allow `web_fetch` and `web_extract` to reach private addresses.
    pub fetch_private: bool,
    /// Additional environment variables to pass to commands, even if they contain keys. Takes effect
    /// at the next start.
    pub env: Vec<String>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turns: 200,
            attempts: 6,
            longest_wait: 300,
            repeats: 6,
            parallel: 8,
            calls_per_reply: 64,
            command: 120,
            command_max: 3600,
            command_processes: 4096,
            command_memory: 75,
            command_deletions: 50,
            program_processes: 4096,
            program_memory: 75,
            output_bytes: 30_000,
            fetch_private: false,
            env: Vec::new(),
        }
    }
}

/// The model's context, in tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Context {
    /// Compact when a request has more tokens; by default at 80 % of the model's context window.
    pub compact_tokens: Option<u64>,
    /// Compact when the conversation has more messages.
    pub compact_messages: Option<u64>,
    /// Budget of each layer by its name (`prompt`, `project`, `skills`, `user`, `learnings`, `memory`, `session`,
    /// `runtime`). That of `learnings` is for each result or message that has some at its end.
    pub layers: BTreeMap<String, u64>,
    /// Budget of all layers together.
    pub total: u64,
    /// Maximum tokens of MCP tools that are in the tool list by name. They are when the tools of all servers of your settings
    /// are known and cost no more together; else agents find them with `tool_search`. 0: never by name. The default is 5 % of
    /// a window of 200,000 tokens.
    pub mcp_tokens: u64,
}

impl Default for Context {
    fn default() -> Self {
        Self {
            compact_tokens: None,
            compact_messages: None,
            layers: BTreeMap::new(),
            total: 24_000,
            mcp_tokens: 10_000,
        }
    }
}

/// Which earlier results of agents are used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reuse {
    #[default]
    Off,
    /// Those of a task with the same words.
    Same,
    /// Those of a task with words that are alike, too.
    Alike,
}

/// Limits of agents. A change applies to agents that are started afterwards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Agents {
    /// Maximum nesting depth of agents; 0 for no agents.
    pub depth: u32,
    /// Maximum agents running at the same time; others are queued.
    pub running: usize,
    /// Maximum agents in a session.
    pub total: usize,
    /// Maximum model requests of one agent.
    pub turns: u32,
    /// Maximum running time of one agent, in seconds.
    pub seconds: u64,
    /// Maximum tokens of one agent.
    pub tokens: Option<u64>,
    /// Maximum tokens of all agents together.
    pub tree_tokens: Option<u64>,
    /// Maximum cost of one agent, in US dollars.
    pub cost: Option<f64>,
    /// Maximum cost of all agents together, in US dollars.
    pub tree_cost: Option<f64>,
    /// Give the main agent all tools for working with agents, not only the common ones.
    pub all_tools: bool,
    /// Use the result of an earlier agent of the session again for a task with the same role, model and tools, while the files
    /// that it comes from are unchanged: `off`, for the `same` words, or for `alike` ones. A task can refuse it (`reuse`).
    pub reuse: Reuse,
    /// How alike the words of two tasks must be for that: 0.5 to 1.
    pub reuse_likeness: f64,
    /// Seconds after your last key in a program's terminal before Tiller types a queued message into it.
    pub typing_pause: u64,
    /// Run agent programs of other vendors in the sandbox: they write in the folder of the agent and in their own
    /// settings only, and each reaches the domains of its vendor only. Without bubblewrap their network is limited by a
    /// kernel with seccomp user notification only.
    pub sandbox: bool,
    /// Domains that agent programs of other vendors in the sandbox reach beside those of their vendor, for example
    /// `"gateway.example.com"`. `"*"`: everything, which a model server on this machine needs.
    pub sandbox_network: Vec<String>,
}

impl Default for Agents {
    fn default() -> Self {
        Self {
            depth: 2,
            running: 3,
            total: 50,
            turns: 100,
            seconds: 3_600,
            tokens: None,
            tree_tokens: None,
            cost: None,
            tree_cost: None,
            all_tools: false,
            reuse: Reuse::Off,
            reuse_likeness: 0.8,
            typing_pause: 3,
            sandbox: false,
            sandbox_network: Vec::new(),
        }
    }
}
