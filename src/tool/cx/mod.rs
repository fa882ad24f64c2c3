//! The context of a call: what a tool can use.

use std::path::PathBuf;
use std::sync::Arc;

use tiller_protocol::{AgentId, Clock, SessionId};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::shell::{Confiner, Witness};

mod command_run;
mod limits;
mod ports;
mod workspace;

pub use command_run::{CommandProfile, CommandRun};
pub use limits::Limits;
pub use ports::{AskedWrite, CommandPorts, MemoryOrigin, MemoryPorts, Ports, ServerCost, ServerPorts};
pub use workspace::{Protected, Secrets, SeenFile, Unreachable, Unreadable, Workspace};

/// Folders of a session, each for its owner only (0700) and made when first needed.
#[derive(Clone, Debug)]
pub struct ToolFolders {
    /// Full outputs.
    pub spill: PathBuf,
    /// Plans.
    pub plans: PathBuf,
}

/// The context of one call. Cheap to clone.
#[derive(Clone)]
pub struct ToolCx {
    pub session: SessionId,
    pub agent: AgentId,
    pub call_id: String,
    pub workspace: Arc<Workspace>,
    /// Fires when the call must end. TERM first; see `hard`.
    pub cancel: CancellationToken,
    /// Fires when the person stopped a second time: KILL at once.
    pub hard: CancellationToken,
    /// Live output, cleaned by the reader. Bounded: use `try_send`, drop when full.
    pub progress: mpsc::Sender<String>,
    pub ports: Arc<dyn Ports>,
    pub clock: Arc<dyn Clock>,
    pub limits: Arc<Limits>,
    pub folders: ToolFolders,
    /// The whole environment of children that are started now: allow-listed, without keys.
    pub child_env: Arc<Vec<(String, String)>>,
    /// How its command is confined.
    pub run: Arc<CommandRun>,
    /// Which files its programs change.
    pub witness: Witness,
    /// State that tools keep between calls (shells, background processes), by tool.
    pub state: Arc<crate::state::ToolState>,
}

impl ToolCx {
    /// What is set over the environment of this call's command alone.
    pub fn variables(&self) -> &[(String, String)] {
        &self.run.variables
    }

    /// Notes that its command failed because of the sandbox, where it is confined.
    pub(crate) fn block(&self) {
        if self.workspace.confines(self.run.profile) {
            self.run.block();
        }
    }

    /// What confines its command in a terminal of its own; `None`: it runs as it is.
    pub(crate) fn terminal_confiner(&self) -> Option<Arc<dyn Confiner>> {
        let confiner = self.confiner()?;
        Some(confiner.in_terminal().unwrap_or_else(|| Arc::clone(confiner)))
    }

    /// What confines a program of the call on this machine, wherever its commands run; `None`: it runs as it is.
    pub(crate) fn local_confiner(&self) -> Option<&Arc<dyn Confiner>> {
        self.workspace.local_confiner(self.run.profile)
    }

    /// What confines a program on this machine that only reads, whatever the call was allowed; `None`: it runs as it is.
    pub(crate) fn reading_confiner(&self) -> Option<&Arc<dyn Confiner>> {
        self.workspace.local_confiner(CommandProfile::Read)
    }

    /// What confines its command; `None`: it runs as it is.
    pub(crate) fn confiner(&self) -> Option<&Arc<dyn Confiner>> {
        self.workspace.confiner(self.run.profile)
    }
}
