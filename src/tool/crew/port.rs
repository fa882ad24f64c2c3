//! What the tools ask of the engine's crew.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What one agent is to do: the part that the engine needs. The schema names what is used often; the rest stands in
/// the words of `delegate_task`, because every byte of it is sent with every session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Brief {
    pub goal: String,
    /// All it must know; it does not see this conversation
    pub context: String,
    /// Role (list_agents)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Or fast, main, deep
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Only these tools or sets
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub tools: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub skills: Vec<String>,
    /// To look at first
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub files: Vec<String>,
    /// Own git worktree
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(skip)]
    pub isolated: bool,
    /// External program: claude, codex, gemini, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub cli: Option<String>,
    /// Id of the todo item
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub todo: Option<String>,
    /// The board of notes that it shares with its siblings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub board: Option<String>,
    /// The step of a workflow that it works at: `w1/build`; `w1/build#2`: it looks at that in the second round. Set by
    /// the engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub step: Option<String>,
    /// It judges; it has no tools.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(skip)]
    pub bare: bool,
    /// Take the result of an earlier agent of this session that was given exactly the same.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(skip)]
    pub reuse: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
pub(super) fn is_false(b: &bool) -> bool {
    !*b
}

/// How an agent ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// Its name, `a1`.
    pub agent: String,
    pub label: String,
    /// `done`, `failed`, `cancelled`, `interrupted`, `background`.
    pub status: String,
    /// Its last words.
    pub summary: String,
    /// The points of its last words, where it made a list of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Files that it changed, relative to its folder.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    pub tool_calls: u32,
    pub tokens: u64,
    /// Dollars; `None`: not known.
    pub cost: Option<f64>,
    pub seconds: f64,
    /// Its own folder, where it had one. It stays.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// Why it did not end well.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The answer in the shape that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// What a critic says of it: `valid`, `invalid`, `unknown`, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Value>,
    /// An earlier result for the same task.
    #[serde(skip_serializing_if = "is_false")]
    pub reused: bool,
}

impl Report {
    /// Whether it did what it was asked to.
    pub fn done(&self) -> bool {
        self.status == "done"
    }
}

/// One agent of the list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub agent: String,
    pub label: String,
    pub state: String,
    pub role: String,
    pub act: String,
    pub tokens: u64,
    pub seconds: f64,
}

/// A note on the shared board.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Note {
    pub key: String,
    pub value: String,
    /// Grows with each change.
    pub version: u64,
    pub by: String,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum CrewAsk {
    /// Start an agent and wait for its end.
    Run(Box<Brief>),
    /// Tell one that has ended something more, and wait for its end.
    Again {
        agent: String,
        text: String,
    },
    /// Let one go on that was interrupted, and wait for its end.
    Continue {
        agent: String,
    },
    /// Run a workflow that was checked, and wait for all of it.
    Workflow(Box<super::Workflow>),
    /// Start agents in the background.
    Start(Vec<Brief>),
    /// The agents of this one, and the roles that there are.
    List,
    /// What one brought; without waiting.
    Result {
        agent: String,
    },
    /// What one does now.
    Info {
        agent: String,
    },
    /// Say something to one.
    Send {
        agent: String,
        text: String,
    },
    /// Wait for all of these (`any`: for one of them), at most so many seconds.
    Wait {
        agents: Vec<String>,
        any: bool,
        seconds: u64,
    },
    /// End one and all below it.
    Cancel {
        agent: String,
    },
    Board {
        put: Option<(String, String, Option<u64>)>,
        key: Option<String>,
    },
}

/// What comes back.
#[derive(Clone, Debug, PartialEq)]
pub enum CrewReply {
    Report(Box<Report>),
    /// In the order that was asked in; who still works has the status of its work.
    Reports(Vec<Report>),
    Rows {
        rows: Vec<Row>,
        roles: Vec<(String, String)>,
        /// What they may be taught: names and when they are of use.
        skills: Vec<(String, String)>,
        left: String,
    },
    Notes(Vec<Note>),
    /// A sentence.
    Said(String),
}
