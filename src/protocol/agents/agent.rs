//! Agents: their state as clients show it, and the commands that control them.

use serde::{Deserialize, Serialize};

use crate::agents::backend::Backend;
use crate::agents::pane::PaneView;
use crate::base::clock::Time;
use crate::base::ids::{AgentId, SessionId};
use crate::base::usage::{Cost, Usage};
use crate::base::word::text_form;
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
    /// Whether it has work: it runs, waits, or is about to start.
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

/// Limits of an agent, or what it has used. In limits `None` means no limit of its own; in sums it means unknown.
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

/// What an agent does now. It is sent as text: `thinking`, `edit src/x.rs`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Act {
    #[default]
    Nothing,
    /// A request to the model streams.
    Thinking,
    CheckingGoal,
    WaitingToRetry,
    Compacting,
    /// It runs a tool: the verb and the target.
    Call(String),
}

impl Act {
    const WORDS: [(Self, &str); 5] = [
        (Self::Nothing, ""),
        (Self::Thinking, "thinking"),
        (Self::CheckingGoal, "checking the goal"),
        (Self::WaitingToRetry, "waiting to retry"),
        (Self::Compacting, "compacting"),
    ];

    /// As it is shown; empty: nothing.
    pub fn words(&self) -> &str {
        match self {
            Self::Call(text) => text,
            fixed => Self::WORDS.iter().find(|(act, _)| act == fixed).map_or("", |(_, words)| words),
        }
    }

    /// It does nothing.
    pub fn is_nothing(&self) -> bool {
        *self == Self::Nothing
    }
}

impl From<&str> for Act {
    /// From the form in which it is sent.
    fn from(text: &str) -> Self {
        let fixed = Self::WORDS.into_iter().find(|(_, words)| *words == text);
        fixed.map_or_else(|| Self::Call(text.to_owned()), |(act, _)| act)
    }
}

impl std::fmt::Display for Act {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.words())
    }
}

text_form!(Act);

/// An agent as clients show it. The tree follows from `parent`; clients compute the sums of branches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentView {
    pub id: AgentId,
    pub parent: Option<AgentId>,
    pub label: String,
    pub state: AgentState,
    #[serde(default)]
    pub act: Act,
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
    /// Set for child agents only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<Box<ChildView>>,
}

/// The part of an agent's state that only child agents have: those started by another agent or by the person.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChildView {
    /// Its own conversation.
    pub session: Option<SessionId>,
    /// Name of its definition, for instance `coder`; empty: none.
    pub role: String,
    /// What does the work. In JSON empty for Tiller itself, else the program and how it is driven: `claude, acp`.
    pub backend: Backend,
    /// Its task, as its parent or the person gave it.
    pub task: String,
    /// Its result, in a few sentences; empty until it ends.
    pub result: String,
    /// Its parent does not wait for it.
    pub background: bool,
    /// The parent's call that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The item of the parent's todo list that it works on.
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
    /// A call of it needed an approval or an answer that no user was present to give, in this run of Tiller.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// The agent's own working folder; empty when it works in the session's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// The terminal elsewhere where its commands run; empty: where those of the main agent run.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub terminal: String,
    /// Set while it is a program that runs in a terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pane: Option<Box<PaneView>>,
    /// Exit code of the program of another vendor that did its work, or 128 and the number of the signal that ended it;
    /// `None` while it runs, and where Tiller ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// Its goal, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<Box<crate::turn::goal::GoalView>>,
}

/// Delivery state of a message to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Receipt {
    /// It waits for the agent's next step.
    Queued,
    /// Delivered at this step of its work (requests so far).
    Delivered { step: u32 },
    /// The agent ended before the message could be delivered.
    Missed { why: String },
}

/// Commands about the agents of a session. Sending a message to an agent, stopping its turn or changing its model uses
/// the same commands as for the main agent, with [`crate::Command::agent`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentCommand {
    /// Start an agent in the background. Answered by `done_reply` or `error_reply`.
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
    /// Pause at the next safe point; at once while it waits for a model.
    Pause { id: AgentId },
    /// Continue after a pause or an interruption.
    Resume { id: AgentId },
    /// Continue all interrupted agents.
    ResumeAll,
    /// End it; with `subtree` also every agent below it.
    Cancel { id: AgentId, subtree: bool },
    /// End all child agents.
    CancelAll,
    /// Move the agents that the main agent waits for to the background, as before its turn is stopped.
    BackgroundAll,
    /// Run the same task again as a new agent, with a note of the person's.
    Retry {
        id: AgentId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// New limits; a limit that is left out stays as it is.
    Raise { id: AgentId, limits: AgentLimits },
    /// Move it to the background: the parent stops waiting, and the result is announced when it comes.
    Background { id: AgentId },
    /// Ask for the changes that it made. Answered by `diff_reply`.
    Diff { id: AgentId },
    /// Start a workflow by the name of its file. Answered by `done_reply` or `error_reply`.
    Workflow { name: String },
    /// Continue all unfinished steps of a workflow: interrupted, failed, and skipped because of a failure.
    WorkflowResume { id: String },
    /// Stop a workflow and the agents of its steps. Finished steps stay finished.
    WorkflowCancel { id: String },
    /// Pause a workflow (its agents pause and no step starts) or continue it.
    WorkflowPause { id: String, paused: bool },
    /// Run a step again, and all steps that need it, with a note of the person's. Other finished steps stay finished.
    WorkflowRetry {
        id: String,
        step: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Cancel one step; steps that need it are skipped.
    WorkflowCancelStep { id: String, step: String },
}
