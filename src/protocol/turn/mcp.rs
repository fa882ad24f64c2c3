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
    /// Why it failed, or what changed.
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
    pub name: String,
    /// The first line of its description.
    pub summary: String,
    /// Estimated tokens of it.
    pub tokens: u64,
    /// The server says that it changes nothing.
    #[serde(default)]
    pub read_only: bool,
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
