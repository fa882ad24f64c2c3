//! The typed form of `config.toml`. The JSON schema that `tiller config --schema` prints is derived
//! from these types.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tiller_protocol::{Effort, Profile};

/// Everything that can be set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `provider/model`.
    pub model: Option<String>,
    /// Permission profile at the start of a session.
    pub profile: Profile,
    /// How much the model thinks: `off`, `low`, `medium`, `high`, `max`, or `default`, as the vendor has it.
    pub effort: Effort,
    pub tiers: Tiers,
    pub providers: BTreeMap<String, Provider>,
    pub budget: Budget,
    pub limits: Limits,
    pub context: Context,
    pub ui: Ui,
    pub watch: Watch,
    pub snapshots: Snapshots,
    pub agents: Agents,
    pub detach: Detach,
}

/// Models by role, each `provider/model`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tiers {
    /// Titles and summaries. Without it the main model does them.
    pub fast: Option<String>,
    pub main: Option<String>,
    /// Never used without the person's yes.
    pub deep: Option<String>,
    /// Standing yes for the deep tier.
    pub deep_allowed: bool,
}

/// Wire formats.
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
    pub kind: ProviderKind,
    #[serde(default)]
    pub base_url: Option<String>,
    /// Name of the variable that holds the key.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// Command whose first output line is the key.
    #[serde(default)]
    pub api_key_command: Option<String>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub timeouts: Timeouts,
    /// Replay: the recording. Others: write a recording here.
    #[serde(default)]
    pub recording: Option<String>,
    /// Demo: milliseconds between two pieces of text; 0 is at once.
    #[serde(default)]
    pub speed: Option<u64>,
    /// Prices and windows of models that the built-in table does not know, by id pattern.
    #[serde(default)]
    pub models: BTreeMap<String, ModelInfo>,
}

/// Seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Until connected.
    pub connect: f64,
    /// Until the first byte of the reply.
    pub first_byte: f64,
    /// Between two bytes.
    pub idle: f64,
    /// Of nothing but pings.
    pub pings_only: f64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: 15.0, first_byte: 120.0, idle: 90.0, pings_only: 300.0 }
    }
}

/// What is known of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelInfo {
    /// Tokens.
    pub window: Option<u64>,
    pub max_output: Option<u64>,
    /// Dollars per million tokens.
    pub input: Option<f64>,
    pub output: Option<f64>,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
    /// What longer prompts cost.
    pub long: Vec<LongPrompt>,
    pub images: Option<bool>,
    pub thinking: Option<bool>,
    /// Levels of thinking effort in the vendor's words: `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`.
    pub effort: Vec<String>,
    pub tools: Option<bool>,
}

/// Prices of a whole request, answer included, whose prompt is longer than `over`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LongPrompt {
    /// Tokens of the prompt, cached ones included.
    pub over: u64,
    /// Dollars per million tokens.
    pub input: f64,
    pub output: f64,
    #[serde(default)]
    pub cache_read: Option<f64>,
    #[serde(default)]
    pub cache_write: Option<f64>,
}

/// Dollars. Soft warns, hard stops and asks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    pub session_soft: Option<f64>,
    pub session_hard: Option<f64>,
    pub day_soft: Option<f64>,
    pub day_hard: Option<f64>,
    /// Per day, by tier name.
    pub tiers: BTreeMap<String, f64>,
}

/// Counts that end loops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Requests to a model in one turn.
    pub turns: u32,
    /// Tries of one request.
    pub attempts: u32,
    /// Seconds; the longest wait that a server may ask for before another try, where no person can skip it
    /// (`tiller exec` and the like). 0: any.
    pub longest_wait: u64,
    /// Rounds of the same calls with the same results after which you are asked whether the agent goes on; where
    /// nobody can answer, the turn ends. 0: never.
    pub repeats: u32,
    /// Calls of read-only tools at once.
    pub parallel: usize,
    /// Tool calls taken from one reply; the rest get an error result.
    pub calls_per_reply: usize,
    /// Seconds; default and longest time of a command.
    pub command: u64,
    pub command_max: u64,
    /// Processes that a command may have at once, with all that it starts; at least 16. Holds on Linux.
    pub command_processes: u64,
    /// Percent of the machine's memory that they may hold together. Holds on Linux.
    pub command_memory: u64,
    /// The same of another vendor's program that works as an agent.
    pub program_processes: u64,
    pub program_memory: u64,
    /// Bytes of a tool result that the model sees.
    pub output_bytes: usize,
    /// May `web_fetch` reach private addresses?
    pub fetch_private: bool,
    /// Names of variables that commands see besides the usual harmless ones, even if they hold keys. Holds from
    /// the next start on.
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

/// What the model sees, in tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Context {
    /// Compact when the request has more tokens; `None`: at 80 % of the model's window.
    pub compact_tokens: Option<u64>,
    /// Compact when the path has more messages.
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

/// Whether a branch that is left is summed up on the one that is gone to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BranchSummary {
    #[default]
    Ask,
    Never,
    Always,
}

/// What becomes of the work when the terminal is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnHangup {
    /// It goes on while something works, and then ends.
    #[default]
    Work,
    /// It is stopped and saved.
    End,
}

/// Leaving the screen while the work goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Detach {
    /// The workbench can be left at work, and come back to.
    pub enabled: bool,
    /// When the window is closed or the line breaks: `work` goes on while something works, `end` stops it.
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
    /// Theme name, or `auto` for the pair below.
    pub theme: String,
    pub theme_dark: String,
    pub theme_light: String,
    /// Keymap preset: default, vim, emacs.
    pub keymap: String,
    pub enter_while_running: EnterWhileRunning,
    /// A summary of what was done on a branch, when it is left: `ask`, `never`, `always`.
    pub branch_summary: BranchSummary,
    /// Linear text without redraws.
    pub plain: bool,
    pub reduced_motion: bool,
    /// ASCII marks and borders.
    pub ascii: bool,
    /// Width of ambiguous characters is 2.
    pub ambiguous_wide: bool,
    pub mouse_wheel: bool,
    pub mouse_click: bool,
    pub mouse_motion: bool,
    /// Milliseconds until the which-key box.
    pub which_key_delay: u64,
    /// Milliseconds in which a new approval dialog is deaf.
    pub approval_deaf: u64,
    /// Seconds after which an approval that nobody answered is a no; 0: it waits for ever.
    pub approval_timeout: u64,
    /// Command whose first output line stands in the header's right corner. It gets the state as JSON on
    /// its standard input, and 300 milliseconds.
    pub statusline: Option<String>,
    pub notifications: bool,
    /// Copy when a drag ends.
    pub copy_on_select: bool,
    /// Leave the last exchange in the scrollback at exit.
    pub leave_last: bool,
    /// Columns of text at most.
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

/// What the workspace's files were, kept outside of it, so that they can be restored. Holds from the next start on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Snapshots {
    pub enabled: bool,
    /// MiB; a larger file is not covered.
    pub file_mb: u64,
    /// MiB that the snapshots of one folder may take; the oldest go first.
    pub quota_mb: u64,
    /// With more files than this, only files that an agent edits are covered.
    pub files: usize,
    /// What is done with a call when the files before it could not be kept (a full disk, say), so that what it changes
    /// cannot be undone.
    pub on_failure: OnSnapshotFailure,
}

/// What is done with a call when the files before it could not be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnSnapshotFailure {
    /// Asks the person, in every profile; where no one can answer, the call is refused.
    #[default]
    Ask,
    /// It runs, and a notice says that it cannot be undone.
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

/// Agents that work for the main one. Their limits hold for each that is started from then on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Agents {
    /// How many may stand below each other; 0: there are none.
    pub depth: u32,
    /// At work at once; more wait.
    pub running: usize,
    /// In one session.
    pub total: usize,
    /// Requests of one agent.
    pub turns: u32,
    /// Seconds at work of one agent.
    pub seconds: u64,
    /// Tokens of one agent, and of all together.
    pub tokens: Option<u64>,
    pub tree_tokens: Option<u64>,
    /// Dollars of one agent, and of all together.
    pub cost: Option<f64>,
    pub tree_cost: Option<f64>,
    /// The main agent has all tools for agents, not only the usual ones.
    pub all_tools: bool,
    /// Seconds after the person's last key in a program's terminal in which nothing is typed into it for them.
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
    pub enabled: bool,
    /// Milliseconds of quiet before a change is reported.
    pub debounce: u64,
    /// Patterns (gitignore style) besides .gitignore.
    pub ignore: Vec<String>,
    /// Start a turn at a comment that ends in `tiller!`.
    pub comments: bool,
    /// Poll instead of using the system's events.
    pub poll: bool,
}

impl Default for Watch {
    fn default() -> Self {
        Self { enabled: true, debounce: 200, ignore: Vec::new(), comments: false, poll: false }
    }
}
