//! One call for a script: what the tool asks the engine for, and what it gets.

use async_trait::async_trait;
use serde_json::Value;
use tiller_protocol::ask::PermissionAsk;
use tiller_protocol::tool::InnerCall;
use tiller_protocol::{AgentId, AskBody, AskReply};

use crate::{Tool, ToolCx};

/// What the engine does for scripts.
#[async_trait]
pub trait ScriptPorts: Send + Sync {
    /// The tools of this agent.
    fn tools(&self) -> Vec<&'static dyn Tool>;
    /// Makes a call for the running one of `cx`, with the rules, hooks and the audit of a direct call. `Err`: there is none.
    async fn call(&self, cx: &ToolCx, call: CallForScript) -> Result<InnerReply, String>;
    /// Asks about a script that has run in part: it is not to be asked about after a restart.
    async fn ask(&self, agent: &AgentId, body: AskBody) -> Result<AskReply, String>;
}

/// A call that a running tool makes.
#[derive(Clone, Debug)]
pub struct CallForScript {
    /// Number of the call within the run, from 1, and how many the run may make.
    pub number: u32,
    pub most: u32,
    /// Name of the tool.
    pub tool: String,
    pub args: Value,
    pub consent: CallConsent,
}

/// What the call may do without a further question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallConsent {
    /// What the rules allow.
    Rules,
    /// What the rules allow, if it only reads. Anything else waits.
    Reads,
    /// What the rules allow, and the call that was asked about with this hash.
    Given(String),
}

/// What became of it.
#[derive(Clone, Debug)]
pub enum InnerReply {
    Ran(Box<InnerResult>),
    /// It was not carried out: the user has to be asked, or it does more than read.
    Waits(Box<WaitingCall>),
}

/// The result of a call, or why there is none.
#[derive(Clone, Debug)]
pub struct InnerResult {
    /// As a model would read it.
    pub text: String,
    /// The exit code of a command.
    pub exit: Option<i32>,
    /// It only read.
    pub read: bool,
    /// For the screen and the transcript.
    pub row: InnerCall,
}

/// A call that was not carried out yet.
#[derive(Clone, Debug)]
pub struct WaitingCall {
    /// The question about it alone.
    pub ask: PermissionAsk,
    /// The rules allow it: only its effects are shown.
    pub allowed: bool,
    pub row: InnerCall,
}
