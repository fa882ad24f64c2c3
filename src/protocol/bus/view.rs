//! Whole states, from which a client that connects or lagged rebuilds its own.

use crate::base::word::{text_form, word_enum};
use serde::{Deserialize, Serialize};

use crate::agents::agent::AgentView;
use crate::agents::workflow::WorkflowView;
use crate::base::clock::Time;
use crate::base::ids::{EntryId, SessionId};
use crate::base::usage::{Cost, Usage};
use crate::bus::queue::Queued;
use crate::session::branch::BranchName;
use crate::session::entry::Entry;
use crate::turn::ask::Ask;
use crate::turn::feed::FileChange;
use crate::turn::permission::PermissionOutcome;
use crate::turn::todo::TodoItem;
use crate::turn::tool::ToolOutcome;

/// `provider/model`, for instance `anthropic/claude-x`. The model part may hold slashes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModelRef(pub String);

impl ModelRef {
    /// Name of the provider of the built-in demo model.
    pub const DEMO: &str = "demo";

    /// It is a provider's model: neither none nor the demo model.
    pub fn is_real(&self) -> bool {
        !self.provider().is_empty() && !self.is_demo()
    }

    /// It is the built-in demo model, which costs nothing.
    pub fn is_demo(&self) -> bool {
        self.provider() == Self::DEMO
    }

    /// The part before the first slash; empty when there is none.
    pub fn provider(&self) -> &str {
        self.0.split_once('/').map_or("", |(p, _)| p)
    }

    /// The part after the first slash.
    pub fn model(&self) -> &str {
        self.0.split_once('/').map_or(self.0.as_str(), |(_, m)| m)
    }
}

impl std::fmt::Display for ModelRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Permission mode.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// No edits, no commands.
    ReadOnly,
    /// No edits or commands until a plan is approved.
    Plan,
    /// Reads run; everything else needs approval.
    #[default]
    Ask,
    /// Edits inside the workspace run; commands need approval.
    AutoEdit,
    /// Everything runs except denied, protected and dangerous actions.
    Full,
}

impl Profile {
    /// Every profile, in the order in which the key cycles them.
    pub const ALL: [Self; 5] = [Self::ReadOnly, Self::Plan, Self::Ask, Self::AutoEdit, Self::Full];

    /// Whether the profile only reads: no writes and no commands, whatever the rules allow.
    pub fn only_looks(self) -> bool {
        matches!(self, Self::ReadOnly | Self::Plan)
    }

    /// The word in the header.
    pub fn word(self) -> &'static str {
        match self {
            Self::ReadOnly => "READ",
            Self::Plan => "PLAN",
            Self::Ask => "ASK",
            Self::AutoEdit => "EDIT",
            Self::Full => "AUTO",
        }
    }

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::AutoEdit => "auto-edit",
            Self::Full => "full",
        }
    }
}

impl std::str::FromStr for Profile {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|p| p.name() == s)
            .ok_or_else(|| format!("unknown mode '{s}': use read-only, plan, ask, auto-edit or full"))
    }
}

/// Size of one layer of the system prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerCost {
    pub name: String,
    /// Where it came from: a path, or `built in`.
    pub source: String,
    pub tokens: u64,
    pub budget: u64,
    /// True when it was shortened to fit.
    #[serde(default)]
    pub shortened: bool,
    /// Its text in the system prompt, with its heading: start and end in bytes. `None`: it has none, or is of an earlier
    /// version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<(usize, usize)>,
}

/// The report of `/context`: use of the context window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextReport {
    pub model: ModelRef,
    /// `None`: the window is not known.
    pub window: Option<u64>,
    pub used: u64,
    pub layers: Vec<LayerCost>,
    /// The system prompt as it is sent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub system: String,
    pub tools: u64,
    /// Names, descriptions and schemas of the tools.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool_texts: String,
    pub messages: u64,
    /// Whether `used` is the provider's own count rather than an estimate.
    pub exact: bool,
}

/// What a compaction would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactPreview {
    pub tokens_before: u64,
    pub tokens_after: u64,
    /// Entries that would be summarised.
    pub summarised: u64,
    pub kept: u64,
    /// First lines of the entries that would be summarised, each after its author.
    pub goes: Vec<String>,
    /// Tokens that would be summarised, by author.
    #[serde(default)]
    pub by_role: Vec<RoleTokens>,
}

/// A row of `by_role`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleTokens {
    pub role: EntryAuthor,
    pub entries: u64,
    /// Approximate number.
    pub tokens: u64,
}

word_enum! {
    /// Where an entry of the conversation comes from, for the user.
    pub enum EntryAuthor {
        User = "you",
        Agent = "agent",
        ToolResult = "result",
        /// A message that the engine wrote.
        Engine = "Tiller",
        Compaction = "earlier summary",
        BranchSummary = "summary of a branch",
        Note = "note",
    }
}

/// One row of the session list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionSummary {
    pub id: SessionId,
    pub title: String,
    /// Absolute path of the workspace.
    pub project: String,
    pub created: Time,
    /// Last action of the person; the list is sorted by it.
    pub used: Time,
    pub entries: u64,
    pub model: ModelRef,
    #[serde(default)]
    pub cost: Option<Cost>,
    #[serde(default)]
    pub archived: bool,
    /// Made by a run without a screen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exec: bool,
    /// The process that has it open: its `pid` as text.
    #[serde(default)]
    pub open_in: Option<String>,
    /// What was interrupted, when the last process ended in the middle of a turn.
    #[serde(default)]
    pub interrupted: Option<String>,
    #[serde(default)]
    pub preview: String,
    /// The git branch that was checked out at its last turn; empty: none is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub git_branch: String,
}

/// Where a model is known from. It is sent as text: `local server on 11434`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelSource {
    BuiltIn,
    Config,
    Environment,
    /// A server on this machine that answers on this port.
    Local {
        port: u16,
    },
    /// A source that this version does not know, as it was written.
    Other(String),
}

impl ModelSource {
    const LOCAL: &str = "local server on ";
}

impl std::fmt::Display for ModelSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::Config => f.write_str("config"),
            Self::Environment => f.write_str("environment"),
            Self::Local { port } => write!(f, "{}{port}", Self::LOCAL),
            Self::Other(words) => f.write_str(words),
        }
    }
}

impl From<&str> for ModelSource {
    /// From the form in which it is sent.
    fn from(text: &str) -> Self {
        let port = text.strip_prefix(Self::LOCAL).and_then(|port| port.parse().ok());
        match (text, port) {
            ("built in", _) => Self::BuiltIn,
            ("config", _) => Self::Config,
            ("environment", _) => Self::Environment,
            (_, Some(port)) => Self::Local { port },
            _ => Self::Other(text.to_owned()),
        }
    }
}

text_form!(ModelSource);

/// A model that can be chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelChoice {
    pub model: ModelRef,
    pub window: Option<u64>,
    /// Dollars per million tokens, input and output.
    pub price: Option<(f64, f64)>,
    /// The same for prompts with more tokens than the first number, in ascending order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub long: Vec<(u64, f64, f64)>,
    pub source: ModelSource,
    /// Why it cannot be used now; `None` when it can.
    #[serde(default)]
    pub unavailable: Option<String>,
}

/// The whole state of a session as a client shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Events up to this number are included.
    pub seq: u64,
    pub session: SessionSummary,
    pub model: ModelRef,
    pub profile: Profile,
    #[serde(default)]
    pub effort: Box<crate::session::effort::EffortView>,
    /// True when this process may not change the session.
    pub read_only: bool,
    pub head: Option<EntryId>,
    /// The branch that is open.
    #[serde(default, skip_serializing_if = "BranchName::is_empty")]
    pub branch: BranchName,
    /// The last entries of the path, oldest first.
    pub entries: Vec<Entry>,
    /// Number of earlier entries of the path.
    pub earlier: u64,
    /// What turns of these entries changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<crate::session::restore::TurnChanges>,
    /// The reply in flight.
    #[serde(default)]
    pub partial: Vec<crate::session::message::Block>,
    pub todo: Vec<TodoItem>,
    pub agents: Vec<AgentView>,
    /// Workflows of the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workflows: Vec<WorkflowView>,
    pub queue: Vec<Queued>,
    pub asks: Vec<Ask>,
    pub feed: Vec<FileChange>,
    pub usage: Usage,
    pub cost: Option<Cost>,
    pub running: bool,
    /// Git branch and number of changed files, when known.
    #[serde(default)]
    pub git: Option<GitState>,
    /// What confines commands; `None`: the self-test has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Box<crate::turn::sandbox::SandboxState>>,
    /// The main agent's goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<Box<crate::turn::goal::GoalView>>,
    /// The person's shell lines that run or wait, in the order in which they were typed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shell_lines: Vec<ShellLineView>,
}

/// A `!` or `!!` line that has not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellLineView {
    /// Id in events about its output, and for `stop_tool`.
    pub call_id: String,
    pub line: String,
    /// It is a `!` line: the model receives the output.
    pub shared: bool,
    /// It waits for the line before it.
    #[serde(default)]
    pub waits: bool,
}

/// For the header.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitState {
    pub branch: String,
    pub changed: u32,
    #[serde(default)]
    pub under_way: GitOperation,
}

word_enum! {
    /// An operation of git that was begun in the repository and has not ended.
    #[derive(Default)]
    pub enum GitOperation {
        #[default]
        None = "",
        Rebasing = "rebasing",
        Merging = "merging",
        CherryPicking = "cherry-picking",
        Reverting = "reverting",
        Bisecting = "bisecting",
    }
}

impl GitOperation {
    /// Whether no operation is under way.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// One row of the audit table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditRow {
    pub time: Time,
    pub session: SessionId,
    pub agent: String,
    pub tool: String,
    /// The command, path or address, redacted.
    pub what: String,
    /// In JSON the word of [`PermissionOutcome::audit_word`].
    pub decision: PermissionOutcome,
    /// The rule that decided, or the person.
    pub by: String,
    /// Run time in seconds.
    pub seconds: f64,
    pub outcome: AuditOutcome,
}

word_enum! {
    /// How a call ended, in the audit.
    #[derive(Default)]
    pub enum AuditOutcome {
        /// The call has not ended.
        #[default]
        None = "",
        Ok = "ok",
        Error = "error",
        /// Of a program of another vendor: it was allowed to do what it asked for; what came of it is not known.
        Allowed = "allowed",
        Denied = "denied",
        Interrupted = "interrupted",
        TimedOut = "timed out",
    }
}

impl From<ToolOutcome> for AuditOutcome {
    fn from(outcome: ToolOutcome) -> Self {
        match outcome {
            ToolOutcome::Ok => Self::Ok,
            ToolOutcome::Error => Self::Error,
            ToolOutcome::Denied => Self::Denied,
            ToolOutcome::Interrupted => Self::Interrupted,
            ToolOutcome::TimedOut => Self::TimedOut,
        }
    }
}

/// One row of `/cost` and `tiller costs`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostRow {
    /// Agent, model or day.
    pub key: String,
    pub calls: u64,
    pub usage: Usage,
    /// `None` when no call of it had a known price.
    pub cost: Option<Cost>,
    /// Calls whose price is not known.
    pub unpriced: u64,
    /// Calls whose tokens are estimated, at least in part.
    #[serde(default, skip_serializing_if = "crate::base::usage::zero")]
    pub estimated: u64,
}

/// What `@` names. It is sent as text: `file`, `folder`, `fn parse`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MentionKind {
    File,
    Folder,
    /// A definition (`fn parse`) or another thing, in a few words.
    Described(String),
}

impl std::fmt::Display for MentionKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::File => "file",
            Self::Folder => "folder",
            Self::Described(words) => words,
        })
    }
}

impl From<&str> for MentionKind {
    /// From the form in which it is sent.
    fn from(text: &str) -> Self {
        match text {
            "file" => Self::File,
            "folder" => Self::Folder,
            words => Self::Described(words.to_owned()),
        }
    }
}

text_form!(MentionKind);

/// A file or other thing that `@` can name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mention {
    pub kind: MentionKind,
    /// The text after the `@`.
    pub name: String,
    /// Bytes, when known.
    #[serde(default)]
    pub size: Option<u64>,
    /// About how many tokens it adds to the message.
    #[serde(default)]
    pub tokens: Option<u64>,
    /// First lines, for the preview pane.
    #[serde(default)]
    pub preview: String,
}
