//! The typed form of `config.toml`. The JSON schema that `tiller config --schema` prints is derived
//! from these types.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tiller_protocol::{Effort, Profile};

/// All settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Model for new sessions, as `provider/model`.
    pub model: Option<String>,
    /// Permission profile at the start of a session.
    pub profile: Profile,
    /// How much the model thinks: `off`, `low`, `medium`, `high`, `max`, or `default` (the provider's default).
    pub effort: Effort,
    /// Models by role.
    pub tiers: Tiers,
    /// Model providers, by name.
    pub providers: BTreeMap<String, Provider>,
    /// Budgets.
    pub budget: Budget,
    /// Limits on turns, tool calls and commands.
    pub limits: Limits,
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

/// API format of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderKind {
    Anthropic,
    OpenaiChat,
    OpenaiResponses,
    Gemini,
    Demo,
    Replay,
}

/// One model server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// API format.
    pub kind: ProviderKind,
    /// Base URL of the server; by default that of the provider.
    #[serde(default)]
    pub base_url: Option<String>,
    /// Name of the environment variable that contains the key.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// Command that prints the key on its first output line.
    #[serde(default)]
    pub api_key_command: Option<String>,
    /// Additional HTTP headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Timeouts in seconds.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// `replay`: the recording to play back; any other kind: write a recording to this file.
    #[serde(default)]
    pub recording: Option<String>,
    /// `demo`: milliseconds between two pieces of text; 0 for no delay.
    #[serde(default)]
    pub speed: Option<u64>,
    /// Prices and context windows of models that the built-in table does not list, by ID pattern.
    #[serde(default)]
    pub models: BTreeMap<String, ModelInfo>,
}

/// Timeouts in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Until the connection is established.
    pub connect: f64,
    /// Until the first byte of the reply.
    pub first_byte: f64,
    /// Between two bytes of the reply.
    pub idle: f64,
    /// While the server sends only keep-alive signals.
    pub pings_only: f64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: 15.0, first_byte: 120.0, idle: 90.0, pings_only: 300.0 }
    }
}

/// Properties of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelInfo {
    /// Context window in tokens.
    pub window: Option<u64>,
    /// Maximum output tokens per reply.
    pub max_output: Option<u64>,
    /// Price of input, in US dollars per million tokens.
    pub input: Option<f64>,
    /// Price of output, in US dollars per million tokens.
    pub output: Option<f64>,
    /// Price of input read from the cache, in US dollars per million tokens.
    pub cache_read: Option<f64>,
    /// Price of input written to the cache, in US dollars per million tokens.
    pub cache_write: Option<f64>,
    /// Prices for longer prompts.
    pub long: Vec<LongPrompt>,
    /// The model accepts images.
    pub images: Option<bool>,
    /// The model supports thinking.
    pub thinking: Option<bool>,
    /// Levels of thinking effort by the provider's names: `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`.
    pub effort: Vec<String>,
    /// The model supports tool calls.
    pub tools: Option<bool>,
}

/// Prices of a whole request, including the reply, whose prompt is longer than `over`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LongPrompt {
    /// Tokens of the prompt, including cached ones.
    pub over: u64,
    /// Price of input, in US dollars per million tokens.
    pub input: f64,
    /// Price of output, in US dollars per million tokens.
    pub output: f64,
    /// Price of input read from the cache, in US dollars per million tokens.
    #[serde(default)]
    pub cache_read: Option<f64>,
    /// Price of input written to the cache, in US dollars per million tokens.
    #[serde(default)]
    pub cache_write: Option<f64>,
}

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
    /// As `command_processes`, for an external agent program.
    pub program_processes: u64,
    /// As `command_memory`, for an external agent program.
    pub program_memory: u64,
    /// Maximum size in bytes of a tool result that is sent to the model.
    pub output_bytes: usize,
    /// Allow `web_fetch` to reach private addresses.
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
    /// Budget of each layer by its name (`prompt`, `project`, `user`, `session`, `runtime`, ...).
    pub layers: BTreeMap<String, u64>,
    /// Budget of all layers together.
    pub total: u64,
}

impl Default for Context {
    fn default() -> Self {
        Self { compact_tokens: None, compact_messages: None, layers: BTreeMap::new(), total: 24_000 }
    }
}

/// What Enter does while a turn runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EnterWhileRunning {
    #[default]
    Steer,
    Queue,
}

/// Whether to summarize a branch when you switch to another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BranchSummary {
    #[default]
    Ask,
    Never,
    Always,
}

/// What happens to running work when the terminal is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnHangup {
    /// Running work continues; Tiller ends when it is done.
    #[default]
    Work,
    /// Running work is stopped and saved.
    End,
}

/// Detaching from running work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Detach {
    /// Allow detaching and reattaching.
    pub enabled: bool,
    /// When the window is closed or the connection is lost: `work` continues running work, `end` stops and saves it.
    pub on_hangup: OnHangup,
}

impl Default for Detach {
    fn default() -> Self {
        Self { enabled: true, on_hangup: OnHangup::Work }
    }
}

/// The screen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ui {
    /// Theme name, or `auto` to use `theme_dark` or `theme_light`.
    pub theme: String,
    /// Theme for a dark terminal background.
    pub theme_dark: String,
    /// Theme for a light terminal background.
    pub theme_light: String,
    /// Keymap preset: default, vim, emacs.
    pub keymap: String,
    /// What Enter does while a turn is running: `steer` or `queue`.
    pub enter_while_running: EnterWhileRunning,
    /// Summarize a branch when you leave it: `ask`, `never`, `always`.
    pub branch_summary: BranchSummary,
    /// Linear text without redraws.
    pub plain: bool,
    /// Reduce motion.
    pub reduced_motion: bool,
    /// Draw signs and borders in plain ASCII.
    pub ascii: bool,
    /// Treat characters of ambiguous width as two columns wide.
    pub ambiguous_wide: bool,
    /// Scroll with the mouse wheel.
    pub mouse_wheel: bool,
    /// Select with a mouse click.
    pub mouse_click: bool,
    /// Select text by dragging.
    pub mouse_motion: bool,
    /// Milliseconds until the key box is shown.
    pub which_key_delay: u64,
    /// Milliseconds for which a new question ignores keys.
    pub approval_deaf: u64,
    /// Seconds after which an unanswered approval is denied; 0 for never.
    pub approval_timeout: u64,
    /// Command whose first output line is shown at the right of the header. It gets the state as JSON on
    /// standard input and must end within 300 milliseconds.
    pub statusline: Option<String>,
    /// Notify when the window is not in front.
    pub notifications: bool,
    /// Copy when a drag ends.
    pub copy_on_select: bool,
    /// Leave the last exchange in the scrollback at exit.
    pub leave_last: bool,
    /// Maximum text width in columns.
    pub measure: u16,
}

impl Default for Ui {
    fn default() -> Self {
        Self {
            theme: "auto".into(),
            theme_dark: "ansi".into(),
            theme_light: "ansi".into(),
            keymap: "default".into(),
            enter_while_running: EnterWhileRunning::Steer,
            branch_summary: BranchSummary::Ask,
            plain: false,
            reduced_motion: false,
            ascii: false,
            ambiguous_wide: false,
            mouse_wheel: true,
            mouse_click: true,
            mouse_motion: true,
            which_key_delay: 250,
            approval_deaf: 400,
            approval_timeout: 0,
            statusline: None,
            notifications: true,
            copy_on_select: true,
            leave_last: false,
            measure: 100,
        }
    }
}

/// Snapshots of the workspace's files, stored outside the workspace, for restore and undo. Changes take effect at the
/// next start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Snapshots {
    /// Take snapshots.
    pub enabled: bool,
    /// Maximum file size in MiB; larger files are not covered.
    pub file_mb: u64,
    /// Maximum size in MiB of the snapshots of one folder; the oldest are removed first.
    pub quota_mb: u64,
    /// In a folder with more files than this, only files that an agent edits are covered.
    pub files: usize,
    /// What to do with a tool call when the file states before it cannot be saved (on a full disk, for example) and its
    /// changes could not be undone.
    pub on_failure: OnSnapshotFailure,
}

/// What to do with a tool call when the file states before it cannot be saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnSnapshotFailure {
    /// Ask, in every profile; if no one can answer, refuse the call.
    #[default]
    Ask,
    /// Run the call and show a notice that it cannot be undone.
    Run,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self {
            enabled: true,
            file_mb: 16,
            quota_mb: 2048,
            files: 200_000,
            on_failure: OnSnapshotFailure::default(),
        }
    }
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
    /// Seconds after your last key in a program's terminal before Tiller types a queued message into it.
    pub typing_pause: u64,
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
            typing_pause: 3,
        }
    }
}

/// The file watcher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Watch {
    /// Watch the files of the folder.
    pub enabled: bool,
    /// Milliseconds without further changes before a change is reported.
    pub debounce: u64,
    /// Patterns to ignore in addition to .gitignore, in its syntax.
    pub ignore: Vec<String>,
    /// Start a turn at a comment that ends in `tiller!`.
    pub comments: bool,
    /// Poll for changes instead of using file system events.
    pub poll: bool,
}

impl Default for Watch {
    fn default() -> Self {
        Self { enabled: true, debounce: 200, ignore: Vec::new(), comments: false, poll: false }
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
