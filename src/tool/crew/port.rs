//! What tools ask of the crew of agents, what comes back, and the two traits between tools, engine and `tiller-agents`.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::{AgentSummary, Note, Report};
use super::task::{Task, Workflow};
use crate::{ToolCx, ToolError};

/// The task of one agent. The schema names only the common fields; `delegate.md` describes the rest, because the schema is
/// sent with every session.
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
    /// Where its commands run: a terminal of the settings, or `local`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub terminal: Option<String>,
    /// External program: claude, codex, gemini, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub cli: Option<String>,
    /// Id of the todo item
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub todo: Option<String>,
    /// The id of the board of notes that it shares with its siblings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub board: Option<String>,
    /// The step of a workflow that it works on: `w1/build`; `w1/build#2`: it reviews that step in the second round. Set by
    /// the engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub step: Option<String>,
    /// It has no tools: it only judges or writes.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(skip)]
    pub bare: bool,
    /// Whether the result of an earlier agent of this session may be returned; `None`: as the settings say.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub reuse: Option<bool>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
pub(super) fn is_false(b: &bool) -> bool {
    !*b
}

/// A goal that is split into parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    pub goal: String,
    pub context: String,
    /// Most parts, from 1 to [`super::task::MOST`].
    pub parts: usize,
}

/// A request to the crew.
#[derive(Clone, Debug, PartialEq)]
pub enum CrewRequest {
    /// Run tasks that may depend on each other, and wait for all of them.
    Tasks(Vec<Task>),
    /// Split a goal into parts, run them, and combine their results.
    Goal(Goal),
    /// Run a checked workflow, and wait for all of it.
    Workflow(Box<Workflow>),
    /// Start an agent and wait for its end.
    Run(Box<Brief>),
    /// Send another message to an agent that has ended, and wait for its end.
    Again { agent: String, text: String },
    /// Continue an interrupted agent, and wait for its end.
    Continue { agent: String },
    /// Start agents in the background.
    Start(Vec<Brief>),
    /// The agents below the caller, and the available roles.
    List,
    /// The report of an agent so far; does not wait.
    Result { agent: String },
    /// What an agent or a background process does now.
    Info { agent: String },
    /// Send an agent a message.
    Send { agent: String, text: String },
    /// Wait for all of these agents (`any`: for the first that ends), at most this many seconds.
    Wait { agents: Vec<String>, any: bool, seconds: u64 },
    /// Cancel an agent and all below it.
    Cancel { agent: String },
    /// Write a note of the shared board (key, text, the version that is replaced) or read one; without both: list them.
    Board { put: Option<(String, String, Option<u64>)>, key: Option<String> },
}

/// The answer to a [`CrewRequest`].
#[derive(Clone, Debug, PartialEq)]
pub enum CrewReply {
    Report(Box<Report>),
    /// In the order of the request. The status of an agent that still works is its state.
    Reports(Vec<Report>),
    Agents {
        agents: Vec<AgentSummary>,
        /// Names and descriptions.
        roles: Vec<(String, String)>,
        /// Names and descriptions.
        skills: Vec<(String, String)>,
        /// What remains of the limits, as a sentence.
        remaining: String,
    },
    Notes(Vec<Note>),
    /// A sentence for the model.
    Text(String),
}

/// Where delegated tasks get their agents from: a tool call, or a workflow, which also keeps the state of its steps.
#[async_trait]
pub trait CrewPort: Send + Sync {
    /// Sends a request and waits for the reply.
    ///
    /// # Errors
    /// A sentence for the model or the user that asked.
    async fn request(&self, request: CrewRequest) -> Result<CrewReply, String>;

    /// Whether nothing more is to be started.
    fn stopped(&self) -> bool;

    /// Whether the user abandoned this step.
    fn abandoned(&self, _step: &str) -> bool {
        false
    }

    /// The report of a step that was done in an earlier run.
    fn earlier_report(&self, _step: &str) -> Option<Report> {
        None
    }

    /// Records that a step starts. Returns the name of the agent that was interrupted at it, if that can continue.
    async fn step_started(&self, _step: &str, _brief: &mut Brief) -> Option<String> {
        None
    }

    /// Records that a step has ended or was skipped.
    async fn step_ended(&self, _step: &str, _report: &Report) {}
}

/// Shared by tasks that run concurrently.
pub type SharedCrew = Arc<dyn CrewPort>;

#[async_trait]
impl CrewPort for ToolCx {
    async fn request(&self, request: CrewRequest) -> Result<CrewReply, String> {
        self.ports.crew(self, request).await
    }

    fn stopped(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

/// Runs tasks with the agents of a [`CrewPort`]: order, retries, reviews, checks of answers. `tiller-agents` implements it; the
/// composition root hands it to the engine. Input has been checked.
#[async_trait]
pub trait Delegation: Send + Sync {
    /// Runs tasks that may depend on each other; the reports are in the order of `tasks`.
    async fn tasks(&self, tasks: Vec<Task>, crew: SharedCrew) -> Vec<Report>;

    /// Splits a goal into parts, runs them, and combines the results; the combined report is first.
    ///
    /// # Errors
    /// When the goal could not be split.
    async fn goal(&self, goal: Goal, crew: SharedCrew) -> Result<Vec<Report>, String>;
}

/// Sends the request of a call that waits for reports. The agents of the call run in the foreground: they are stopped when it
/// is cancelled, with `interrupted` as the message.
pub(super) async fn reports(
    request: CrewRequest,
    interrupted: &str,
    cx: &ToolCx,
) -> Result<Vec<Report>, ToolError> {
    tokio::select! {
        biased;
        () = cx.cancel.cancelled() => Err(ToolError::Interrupted(interrupted.into())),
        reply = cx.ports.crew(cx, request) => match reply {
            Ok(CrewReply::Reports(reports)) => Ok(reports),
            Ok(_) => {
                Err(ToolError::Tell("the engine returned an unexpected answer; this is a bug in Tiller".into()))
            }
            Err(why) => Err(ToolError::Tell(why)),
        }
    }
}
