//! MCP servers as a client shows them.

use crate::base::word::word_enum;
use serde::{Deserialize, Serialize};

word_enum! {
    /// How far a server has come.
    #[derive(Default)]
    pub enum McpState {
        /// It stands in the settings; nothing is known of its tools.
        #[default]
        Configured = "configured",
        /// Its tools are known from an earlier start.
        Known = "known",
        /// It is being started, or connected to.
        Starting = "starting",
        /// It runs, or is connected to.
        Started = "started",
        /// It runs, and a tool of it was called.
        Used = "used",
        /// It ended, or could not be reached.
        Failed = "failed",
        /// The person turned it off.
        Disabled = "disabled",
        /// It comes from the project and waits for the person's yes.
        Unapproved = "not approved",
        /// Its tools differ from those that the person approved.
        Changed = "changed",
        /// It wants the person to log in.
        LoggedOut = "logged out",
    }
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// One server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServerView {
    pub name: String,
    pub state: McpState,
    /// `stdio`, `http` or `sse`.
    pub transport: String,
    /// Where it is configured.
    pub origin: String,
    /// The command line, or the address.
    pub command: String,
    /// The names of the variables or headers that it is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<String>,
    /// Its tools; `None`: they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<McpToolView>>,
    /// Estimated tokens of all its tools, as a model reads them.
    #[serde(default)]
    pub tokens: u64,
    /// How many resources are known of it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resources: usize,
    /// How many prompts are known of it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub prompts: usize,
    /// What changed since it was approved, and what was left out of its list, in sentences without a full stop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Names the state of what a yes at this row approves, for the command that says it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shown: String,
    /// Why it failed, or that tools of it are held back.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The end of its standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
    /// The revision of the protocol that it speaks; empty: not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
}

/// One tool of a server, as the server describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpToolView {
    /// The name that models and rules know it by.
    pub name: String,
    /// The server's own name for it, in quotes, where that is another one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub own: String,
    /// The first line of its description.
    pub summary: String,
    /// Estimated tokens of it.
    pub tokens: u64,
    /// The server says that it changes nothing.
    #[serde(default)]
    pub read_only: bool,
}

/// A resource of a server, which `@server:uri` names. Its texts come from the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpResourceView {
    pub server: String,
    pub uri: String,
    pub name: String,
    /// The first line of its description, or its type.
    #[serde(default)]
    pub summary: String,
    /// Bytes, when the server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// A prompt of a server, the command `/server:name`. Its texts come from the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpPromptView {
    pub server: String,
    /// The name of its command.
    pub name: String,
    /// The server's own name for it, where that is another one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub own: String,
    /// The first line of its description.
    #[serde(default)]
    pub summary: String,
    /// In the order in which they are given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<McpArgumentView>,
}

/// An argument of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpArgumentView {
    /// As it is typed.
    pub name: String,
    /// The server's own name for it, where that is another one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub own: String,
    #[serde(default)]
    pub required: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
}

impl McpArgumentView {
    /// Its name at the server.
    pub fn own_name(&self) -> &str {
        if self.own.is_empty() { &self.name } else { &self.own }
    }
}

impl McpPromptView {
    /// Its name at the server.
    pub fn own_name(&self) -> &str {
        if self.own.is_empty() { &self.name } else { &self.own }
    }

    /// The name of its command, without the slash.
    pub fn command(&self) -> String {
        format!("{}:{}", self.server, self.name)
    }

    /// How the command is written: `/notes:review FILE [depth]`.
    pub fn usage(&self) -> String {
        let argument = |a: &McpArgumentView| match a.required {
            true => format!(" {}", a.name.to_uppercase()),
            false => format!(" [{}]", a.name.to_uppercase()),
        };
        format!("/{}{}", self.command(), self.arguments.iter().map(argument).collect::<String>())
    }
}

word_enum! {
    /// What a person does to a server.
    #[derive(Default)]
    pub enum McpAct {
        /// End it, if it runs, and start it.
        #[default]
        Restart = "restart",
        /// Turn it off for this run.
        Disable = "disable",
        Enable = "enable",
        /// Say yes to its command and to its tools as they are now.
        Approve = "approve",
        /// Open the page of the server's login in the browser.
        LogIn = "log in",
    }
}

/// Server and tool of a tool that is listed by its own name, `mcp__SERVER__TOOL`, as a row shows them. `None`: it is another
/// tool.
pub fn named_target(name: &str) -> Option<String> {
    let (server, tool) = name.strip_prefix("mcp__")?.split_once("__")?;
    (!server.is_empty() && !tool.is_empty()).then(|| format!("{server} {tool}"))
}
