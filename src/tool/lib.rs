//! Tools: what the model can do, one file each, listed in `registry.rs`.
//!
//! A tool declares what *this very call* touches ([`Tool::access`]), and runs only after the engine has
//! judged that. It sees its world through [`ToolCx`], never the engine.

pub mod checkpoint;
mod child_env;
pub mod crew;
pub mod cx;
pub mod files;
pub mod guard;
pub mod output;
pub mod plan;
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
pub use cx::{Limits, Ports, Protected, Secrets, ToolCx, Unreadable, Workspace};
pub use files::image_info;
pub use guard::{MASKED, access_guarded, run_guarded};
pub use output::{ToolError, ToolOutput};
pub use registry::Registry;

use async_trait::async_trait;
use serde_json::Value;
use tiller_protocol::{Access, ToolInfo, ToolSpec, ToolVerb, Touch};

/// One tool.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What is fixed about it: its name, kind, set, verb, and how permission rules match it.
    fn info(&self) -> ToolInfo;

    /// As the model calls it.
    fn name(&self) -> &'static str {
        self.info().name
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

    /// The shell that runs the call's command, when that is one of ours which obeys [`ToolCx::variables`].
    fn shell(&self, _cx: &ToolCx) -> Option<tiller_protocol::ShellState> {
        None
    }

    /// Whether the call could be done as things are now; looked at before anybody is asked to allow it, so that
    /// no yes is spent on a call that fails anyway. `show`: the agent may be told what the files hold. Changes
    /// nothing but what the agent knows.
    ///
    /// # Errors
    /// As [`Tool::run`] would fail.
    async fn ready(&self, _args: &Value, _cx: &ToolCx, _show: bool) -> Result<(), ToolError> {
        Ok(())
    }

    /// The exact difference that the call would make, for the approval dialog (unified).
    async fn preview(&self, _args: &Value, _cx: &ToolCx) -> Option<String> {
        None
    }

    /// Does it. Must end soon after `cx.cancel` fires.
    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError>;
}
