//! Hooks: commands that run when something happens in a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hooks by event. A project's hooks are in `.tiller/hooks.toml`, in the same form without `hooks.`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Hooks {
    /// A session was opened.
    pub session_start: Vec<Hook>,
    /// A session ends.
    pub session_end: Vec<Hook>,
    /// A message is about to be sent to an agent. It can be denied, and text can be added at its end.
    pub user_prompt: Vec<Hook>,
    /// A tool is about to be called. The call can be denied, and its arguments can be changed.
    pub before_tool_call: Vec<Hook>,
    /// A tool has been called. Its result can be replaced or withheld, and text can be added at its end.
    pub after_tool_call: Vec<Hook>,
    /// A turn is about to end with this answer. A denial sends its reason to the model, which goes on.
    pub before_response: Vec<Hook>,
    /// A conversation is about to be summarized. It can be denied, and what the summary keeps can be named.
    pub context_compact: Vec<Hook>,
    /// An agent is about to start. It can be denied.
    pub agent_start: Vec<Hook>,
    /// An agent has ended.
    pub agent_end: Vec<Hook>,
    /// Files in the folder were changed.
    pub file_changed: Vec<Hook>,
    /// A question or a notice is shown.
    pub notification: Vec<Hook>,
}

/// A command that runs when something happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// Command line for `/bin/sh`, started in the project's folder, in the sandbox and without keys. It gets the event
    /// as JSON on standard input. Exit code 2 denies, with standard error as the reason.
    pub command: String,
    /// Name to show; the command by default.
    #[serde(default)]
    pub name: Option<String>,
    /// Calls of tools that it runs for, written as a permission rule: `terminal(git push*)`. For `file-changed` a
    /// pattern of paths. Everything by default.
    #[serde(default, rename = "match")]
    pub matches: Option<String>,
    /// Seconds that it may take.
    #[serde(default = "seconds")]
    pub timeout: u64,
    /// Deny when the command fails or takes too long. Otherwise a call asks when the command did not get to decide, and
    /// other failures are only reported.
    #[serde(default)]
    pub blocking: bool,
    /// Form of the JSON that it reads and writes.
    #[serde(default)]
    pub format: HookFormat,
}

/// Seconds that a hook may take unless it says otherwise.
fn seconds() -> u64 {
    30
}

/// Form of the JSON that a hook reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HookFormat {
    #[default]
    Tiller,
    /// That of Claude Code, for hooks written for it.
    Claude,
}
