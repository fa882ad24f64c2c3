//! Agents: what the panel shows of each, and what may be asked of the crew.

use serde::{Deserialize, Serialize};

use crate::agents::backend::Backend;
use crate::agents::pane::PaneView;
use crate::base::clock::Time;
use crate::base::ids::{AgentId, SessionId};
use crate::base::usage::{Cost, Usage};
use crate::bus::view::ModelRef;

/// What an agent is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    #[default]
    Idle,
    Queued,
    Running,
    /// Waits for a person's answer.
    Waiting,
    Paused,
    Done,
    Failed,
    Cancelled,
    Interrupted,
}

impl AgentState {
    /// Whether it has work: it runs, waits, or is about to.
    pub fn at_work(self) -> bool {
        matches!(self, Self::Queued | Self::Running | Self::Waiting | Self::Paused)
    }

    /// The word for models and scripts.
    pub fn word(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting for the user",
            Self::Paused => "paused",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }

    /// For a sentence about it: `is done`, `failed`.
    pub fn predicate(self) -> String {
        match self {
            Self::Failed => "failed".to_owned(),
            state => format!("is {}", state.word()),
        }
    }
}

/// What an agent may use, or has used. In limits `None` means no limit of its own; in sums it means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentLimits {
    /// Requests to the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// Seconds at work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Tokens in and out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl AgentLimits {
    /// Whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// An agent as the panel shows it. The tree follows from `parent`; sums of branches are made by who draws them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentView {
    pub id: AgentId,
    pub parent: Option<AgentId>,
    pub label: String,
    pub state: AgentState,
    /// What it does now, for instance `edit src/x.rs`; empty when nothing.
    #[serde(default)]
    pub act: String,
    pub model: ModelRef,
    #[serde(default)]
    pub usage: Usage,
    /// `None`: not known.
    #[serde(default)]
    pub cost: Option<Cost>,
    /// Tokens of the last request, and the model's window when known.
    #[serde(default)]
    pub context: u64,
    #[serde(default)]
    pub window: Option<u64>,
    /// When the current turn began; `None` while idle.
    #[serde(default)]
    pub since: Option<Time>,
    /// What only children have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<Box<ChildView>>,
}

/// The part of a row that only agents have which another agent, or the person, started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChildView {
    /// Its own conversation.
    pub session: Option<SessionId>,
    /// Name of its definition, for instance `coder`; empty: none.
    pub role: String,
    /// What does the work. In JSON empty for Tiller itself, else the program and how it is driven: `claude, acp`.
    pub backend: Backend,
    /// What it was asked to do.
    pub task: String,
    /// What came out, in a sentence or a few; empty until it ends.
    pub result: String,
    /// Its parent does not wait for it.
    pub background: bool,
    /// The parent's call that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Item of the parent's todo list that it works at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub todo: Option<String>,
    /// What it has used so far.
    pub used: AgentLimits,
    /// What it may use.
    pub limits: AgentLimits,
    /// Files that it changed.
    pub files: u32,
    /// Seconds from its start to its end; 0 while it works.
    pub took: f64,
    /// A call of it needed an approval or an answer that no one could give, in this run of Tiller.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// A folder of its own, when it does not work in the session's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// It is a program that runs in a terminal now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pane: Option<Box<PaneView>>,
    /// What it pursues by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<Box<crate::turn::goal::GoalView>>,
}

/// How far a message to an agent has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Receipt {
    /// It waits for the agent's next step.
    Queued,
    /// The agent has it, at this step of its work (requests so far).
    Delivered { step: u32 },
    /// It ended before.
    Missed { why: String },
}

/// What the person asks of the crew. (To talk to an agent, to stop its turn, to change its model: the same
/// commands as for the main one, with [`crate::Command::agent`].)
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentCommand {
    /// Start one by hand, in the background. Answered by `done_reply` or `error_reply`.
    Spawn {
        goal: String,
        /// A definition by name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<ModelRef>,
        /// An external program instead of Tiller itself: `claude`, `codex`, ...
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cli: Option<String>,
        /// In a git worktree of its own.
        #[serde(default)]
        isolated: bool,
    },
    /// Rest at the next safe point; at once while it waits for a model.
    Pause { id: AgentId },
    /// Go on after a pause, or after an interruption.
    Resume { id: AgentId },
    /// Go on with all that were interrupted.
    ResumeAll,
    /// End it; `subtree`: and all that it started.
    Cancel { id: AgentId, subtree: bool },
    /// End all of them.
    CancelAll,
    /// The same task once more, as a new agent, with a note of the person's.
    Retry {
        id: AgentId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// New limits; a limit that is left out stays as it is.
    Raise { id: AgentId, limits: AgentLimits },
    /// The parent does not wait for it any more; its result is announced when it comes.
    Background { id: AgentId },
    /// What it changed. Answered by `diff_reply`.
    Diff { id: AgentId },
    /// Start a workflow by its name (of its file). Answered by `done_reply` or `error_reply`.
    Workflow { name: String },
    /// Go on with all of it that is not done: what was interrupted, what failed, what was left out for that.
    WorkflowResume { id: String },
    /// Stop a workflow and the agents of its steps. What is done stays.
    WorkflowCancel { id: String },
    /// Let the agents of a workflow rest and begin no step, or go on.
    WorkflowPause { id: String, paused: bool },
    /// A step, and all that need it, once more, with a note of the person's. What else is done stays.
    WorkflowRetry {
        id: String,
        step: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Give one step up; what needs it is left out.
    WorkflowCancelStep { id: String, step: String },
}
