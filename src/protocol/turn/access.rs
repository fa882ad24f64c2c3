//! What one call of a tool touches. The tool declares it for each call, and `permit` decides by it.

use serde::{Deserialize, Serialize};

/// One access that a call needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "needs", rename_all = "snake_case")]
pub enum Access {
    /// Reads a path (absolute, links resolved as far as it exists).
    Read { path: String, inside: bool },
    /// Creates, changes, moves or deletes a path (absolute). `inside` the workspace or not.
    Write { path: String, inside: bool },
    /// Runs a shell command in `folder`.
    Run { command: String, folder: String, background: bool },
    /// Controls a background process of the session (poll, kill).
    Process { what: String },
    /// Types `text` into a background process of the session, which was started as `command` and now works in `folder`.
    /// `before` is earlier input that may belong to the same line or statement.
    Input { process: String, command: String, before: String, text: String, folder: String },
    /// Fetches `url` from `host`. `local`: a server of this machine, which only the user or a rule allows, never a mode.
    Net {
        url: String,
        host: String,
        #[serde(default)]
        local: bool,
    },
    /// Calls a tool of an MCP server. `arguments`: JSON, as it is shown.
    Mcp { server: String, tool: String, arguments: String },
    /// Runs a script that calls tools. Its calls are judged one by one.
    Script { code: String },
    /// Changes what Tiller keeps for later: memory, learnings, proposals, skills, the files of a checkpoint. `what` in words; `path`: the
    /// file that is written (absolute), where there is one that a rule may name.
    Store { what: String, path: Option<String> },
    /// Asks the person or edits the plan: never needs permission.
    Free,
}

/// The state of a shell session, as far as it decides what its commands do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellState {
    /// Its `PATH`. Empty: not known, so none of its programs is known.
    pub path: String,
    /// Names of its functions and aliases, and of programs that its exported variables redirect. `*`: every program.
    pub redefined: Vec<String>,
    /// Its commands run in the sandbox: they write the workspace only, and reach no network but the one of the settings.
    pub confined: bool,
}
