//! Tools as the bus describes them. The room `tool` runs them.

use crate::base::word::word_enum;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The description of a tool that a model receives. Part of the frozen prefix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON schema of the arguments (an object).
    pub schema: Value,
}

/// The tool by which models call those that have no schema in the list, but a line `NAME(arguments): words` in its
/// description.
pub const USE_TOOL: &str = "use_tool";

impl crate::ToolCall {
    /// Whether it asks [`USE_TOOL`] for another tool.
    pub fn is_use_tool(&self) -> bool {
        self.name == USE_TOOL
    }
}

impl ToolSpec {
    /// Whether a tool of this name can be called by it: its own spec, or a line of [`USE_TOOL`].
    pub fn lists(&self, name: &str) -> bool {
        let named = |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with('('));
        self.name == name || self.name == USE_TOOL && self.description.lines().any(named)
    }
}

/// The kind of thing that a tool touches. Decides which calls may run in parallel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Touch {
    Read,
    Write,
    Execute,
    Network,
    Agent,
    /// Asks the person, or edits the plan.
    Plan,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    Ok,
    /// It failed; the content says why.
    Error,
    /// A rule or the person refused.
    Denied,
    /// Stopped by the person, or by the end of the process.
    Interrupted,
    TimedOut,
}

impl ToolOutcome {
    /// True only for [`ToolOutcome::Ok`].
    pub fn ok(self) -> bool {
        self == Self::Ok
    }
}

/// What the screen shows of a result in addition to its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "show", rename_all = "snake_case")]
pub enum Display {
    /// Files changed, as unified differences with 3 lines of context.
    Diff { files: Vec<FileDiff> },
    /// Measure for the folded row, for instance `412 lines` or `3 hits`.
    Measure { text: String },
    /// Calls that a script made, in their order; `most`: how many it may make. `tail` is the end of what it printed.
    Calls { calls: Vec<InnerCall>, most: u32, tail: String },
    /// Output of a command; `tail` is its last lines, cleaned. `full` names the spill file.
    Output {
        tail: String,
        exit: Option<i32>,
        #[serde(default)]
        full: Option<String>,
    },
}

impl Display {
    /// The files that the call changed, as far as its result shows them.
    pub fn files(&self) -> Vec<&FileDiff> {
        match self {
            Self::Diff { files } => files.iter().collect(),
            Self::Calls { calls, .. } => calls.iter().flat_map(|call| &call.files).collect(),
            Self::Measure { .. } | Self::Output { .. } => Vec::new(),
        }
    }
}

/// A call that another call made: of a script. Part of the transcript, never of what a model receives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InnerCall {
    /// From 1, in the order in which the script made its calls.
    pub number: u32,
    pub name: String,
    pub verb: ToolVerb,
    pub target: String,
    /// `None`: it runs, or waits for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ToolOutcome>,
    /// It was not carried out yet: the user is asked about the calls of the script together.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    #[serde(default)]
    pub seconds: f64,
    /// The exact arguments.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub arguments: serde_json::Value,
    /// The beginning of its result.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// The files that it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileDiff>,
    /// What was decided about it, and by what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<crate::turn::permission::PermissionOutcome>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}

impl InnerCall {
    /// The id of call `number` of the call `outer`, by which it is stopped and its result is read.
    pub fn id(outer: &str, number: u32) -> String {
        format!("{outer}.{number}")
    }

    /// The outer call and the number that an id of [`Self::id`] names.
    pub fn split_id(id: &str) -> Option<(&str, u32)> {
        let (outer, number) = id.rsplit_once('.')?;
        Some((outer, number.parse().ok()?))
    }

    /// Only what its row shows: the rest stands in its own entry.
    #[must_use]
    pub fn row(&self) -> Self {
        Self {
            arguments: serde_json::Value::Null,
            output: String::new(),
            files: Vec::new(),
            decision: None,
            by: String::new(),
            ..self.clone()
        }
    }
}

/// One changed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDiff {
    pub path: String,
    pub kind: crate::turn::feed::ChangeKind,
    pub added: u32,
    pub removed: u32,
    /// Unified difference; empty for binary files.
    pub diff: String,
}

word_enum! {
    /// What a tool does, as its row says it before the target: `read src/x.rs`. Programs of other vendors are described
    /// with the same words.
    #[derive(Default)]
    pub enum ToolVerb {
        /// Nothing is known of the call but its name.
        #[default]
        Unnamed = "",
        Read = "read",
        Write = "write",
        Edit = "edit",
        Patch = "patch",
        List = "list",
        Search = "search",
        Shell = "shell",
        Script = "script",
        Process = "process",
        Fetch = "fetch",
        Browse = "browse",
        Plan = "plan",
        Think = "think",
        Todo = "todo",
        Ask = "ask",
        Recall = "recall",
        Checkpoint = "checkpoint",
        Restore = "restore",
        Delegate = "delegate",
        Spawn = "spawn",
        Tell = "tell",
        WaitFor = "wait for",
        Result = "result",
        Agents = "agents",
        LookAt = "look at",
        Cancel = "cancel",
        Orchestrate = "orchestrate",
        Note = "note",
        Draw = "draw",
        Speak = "speak",
        Consult = "consult",
        Memory = "memory",
        /// A program's own agent.
        Agent = "agent",
        /// A program's tool of which no more is known.
        Tool = "tool",
    }
}
