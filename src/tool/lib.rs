//! The tools that models call: one file each, listed in `registry.rs`.
//!
//! A tool declares what *this very call* touches ([`Tool::access`]) and runs only after the engine has checked that
//! against the permission rules. It reaches files, processes and the engine through [`ToolCx`] alone.
//!
//! | folder | tools |
//! | --- | --- |
//! | `files` | read, search, write and patch files |
//! | `shell` | commands, and processes in the background |
//! | `web` | fetching pages |
//! | `browser` | acting on pages |
//! | `plan` | the todo list, the plan, questions to the user |
//! | `checkpoint`, `session_search` | named states of the files; earlier sessions |
//! | `crew` | working with other agents |
//! | `code` | scripts that call tools |
//! | `media` | images, speech, several models at once |
//! | `pdf` | no tool: the text of PDF files |
//!
//! It may use `protocol`, `text`, `fs` and `http`. What is not here: permission rules (`permit`), the shell's grammar (`shell`), and
//! the scheduling of agents (`agents`). Those rooms learn about the tools from the catalog that [`Registry::catalog`]
//! makes.

pub mod aliases;
pub mod browser;
pub mod checkpoint;
mod child_env;
pub mod code;
pub mod crew;
pub mod cx;
pub mod deferred;
pub mod files;
pub mod foreign;
pub mod guard;
pub mod mcp;
pub mod media;
pub mod output;
mod pdf;
pub mod plan;
pub mod proxy;
pub mod registry;
pub mod schema;
pub mod session_search;
pub mod shell;
pub mod state;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
pub mod web;

pub use child_env::{ChildEnv, Vars};
pub use cx::{
    AskedWrite, CommandPorts, CommandProfile, CommandRun, Limits, MemoryOrigin, MemoryPorts, Ports,
    Protected, Secrets, ServerCost, ServerPorts, ToolCx, ToolFolders, Unreachable, Unreadable, Workspace,
};
pub use files::{attachable_image, image_info, patched};
pub use guard::{MASKED, access_guarded, run_guarded};
pub use output::{ToolError, ToolOutput};
pub use registry::Registry;

use async_trait::async_trait;
use serde_json::Value;
use tiller_protocol::{Access, ToolInfo, ToolSpec, ToolVerb, Touch};

/// What the approval dialog shows of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// The exact difference that the call would make (unified).
    pub diff: Option<String>,
    /// Lines of text.
    pub lines: Vec<String>,
    /// Folder with the state that the call would make of a skill: it can be tried, and its `SKILL.md` edited. It is deleted
    /// when the user denies the call.
    pub draft: Option<String>,
    /// The call with the user's own text: its arguments, and the one that takes the text. `None`: it cannot be edited, or
    /// it is a command.
    pub edit: Option<(Value, &'static str)>,
}

impl Preview {
    /// A difference alone.
    pub fn of(diff: Option<String>) -> Self {
        Self { diff, ..Self::default() }
    }
}

/// One tool.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What is fixed about it: its name, kind, set, verb, and how permission rules match it.
    fn info(&self) -> ToolInfo;

    /// As the model calls it.
    fn name(&self) -> &'static str {
        self.info().name
    }

    /// Whether it is used so seldom that the list of tools has only a line for it (see [`deferred`]).
    fn seldom(&self) -> bool {
        false
    }

    /// In kind. Calls of `Read` tools may run side by side; the others run in order.
    fn touch(&self) -> Touch {
        self.info().touch
    }

    /// Word for the row on the screen.
    fn verb(&self) -> ToolVerb {
        self.info().verb
    }

    /// What the row shows besides the verb. Not cleaned for a terminal.
    fn target(&self, args: &Value) -> String {
        (self.info().target)(args)
    }

    /// Name, description (from the `.md` beside the code) and schema (derived from the input type).
    fn spec(&self) -> ToolSpec;

    /// Checks the arguments and says what this call needs. Does not change anything.
    ///
    /// # Errors
    /// [`ToolError::Tell`] when the arguments are wrong.
    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError>;

    /// The shell that runs the call's command, when it is a shell of Tiller that obeys [`ToolCx::variables`].
    fn shell(&self, _cx: &ToolCx) -> Option<tiller_protocol::ShellState> {
        None
    }

    /// Whether the call could succeed now. Checked before the user is asked to allow it, so that the user is not asked
    /// about a call that would fail. `show`: the error may quote the content of files. Changes nothing but the record
    /// of the files that the agent has read.
    ///
    /// # Errors
    /// As [`Tool::run`] would fail.
    async fn ready(&self, _args: &Value, _cx: &ToolCx, _show: bool) -> Result<(), ToolError> {
        Ok(())
    }

    /// What the approval dialog shows of the call.
    async fn preview(&self, _args: &Value, _cx: &ToolCx) -> Preview {
        Preview::default()
    }

    /// Runs the call. Must end soon after `cx.cancel` fires.
    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError>;
}
