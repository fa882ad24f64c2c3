//! The slices of the model that belong to no single agent.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use tiller_protocol::agent::{AgentView, Receipt};
use tiller_protocol::view::Snapshot;
use tiller_protocol::{AgentId, Ask, AskId, FileChange, ProcessRow, SandboxState, ToolCatalog, WorkflowView};

use super::kinds::{AgentKind, FoundKey};

/// The agents of the session, their workflows and terminals.
#[derive(Default)]
pub struct CrewModel {
    pub agents: Vec<AgentView>,
    /// Workflows of the session, in the order in which they were started.
    pub workflows: Vec<WorkflowView>,
    /// How far the last message to each agent has come.
    pub receipts: HashMap<AgentId, Receipt>,
    /// Kinds of agents that can be started by hand.
    pub kinds: Vec<AgentKind>,
    /// The agent whose terminal is shown, or was last.
    pub pane: Option<AgentId>,
    /// For each agent's terminal, the number of bells that the person has seen.
    pub bells: HashMap<AgentId, u32>,
}

impl CrewModel {
    pub(super) fn snapshot(&mut self, s: &Snapshot) {
        self.agents.clone_from(&s.agents);
        self.workflows.clone_from(&s.workflows);
        let agents = &self.agents;
        self.receipts.retain(|id, _| agents.iter().any(|a| a.id == *id));
    }

    pub(super) fn agent_changed(&mut self, view: &AgentView) {
        match self.agents.iter_mut().find(|a| a.id == view.id) {
            Some(a) => a.clone_from(view),
            None => self.agents.push(view.clone()),
        }
    }

    pub(super) fn workflow_changed(&mut self, view: &WorkflowView) {
        match self.workflows.iter_mut().find(|w| w.id == view.id) {
            Some(w) => w.clone_from(view),
            None => self.workflows.push(view.clone()),
        }
    }
}

/// Questions of all agents that wait for an answer.
#[derive(Default)]
pub struct Questions {
    /// Oldest first.
    pub open: Vec<Ask>,
    /// When an approval without an answer is denied (monotonic), where a time limit is set.
    pub deadlines: HashMap<AskId, Duration>,
}

/// File changes and background processes.
#[derive(Default)]
pub struct WorkspaceModel {
    /// Changes of files, oldest first.
    pub feed: Vec<FileChange>,
    /// Background processes of this session, as of the last answer of the engine.
    pub processes: Vec<ProcessRow>,
}

impl WorkspaceModel {
    /// Replaces the background processes, with their texts cleaned.
    pub(super) fn take_processes(&mut self, rows: &[ProcessRow]) {
        let text = |t: &str| crate::text::clean::plain(t.trim()).into_owned();
        let clean = |row: &ProcessRow| ProcessRow {
            id: text(&row.id),
            state: row.state.clone(),
            intervention: text(&row.intervention),
            command: text(&row.command),
            last: text(&row.last),
        };
        self.processes = rows.iter().filter(|row| !row.id.is_empty()).map(clean).collect();
    }

    /// Adds changes of files; the oldest ones go when there are too many.
    pub(super) fn changed(&mut self, changes: &[FileChange]) {
        /// Changes that are kept.
        const FEED: usize = 1000;
        self.feed.extend(changes.iter().cloned());
        let over = self.feed.len().saturating_sub(FEED);
        self.feed.drain(..over);
    }
}

/// State of the engine.
#[derive(Default)]
pub struct EngineModel {
    /// The engine has answered: a snapshot is here.
    pub ready: bool,
    /// Why the store does not save; `None`: it saves.
    pub not_saving: Option<String>,
    /// The confinement of commands; `None`: the self-test has not ended.
    pub sandbox: Option<Box<SandboxState>>,
}

/// Facts about the machine and this process that no event reports.
#[derive(Default)]
pub struct Environment {
    /// Where files of the screen are kept.
    pub folders: Folders,
    /// Output of the person's status line command, cleaned; empty: none.
    pub status_line: String,
    /// The folder contains settings or rules that are not trusted and therefore not used.
    pub restricted: bool,
    /// The screen can be left while the work goes on.
    pub detachable: bool,
    /// The tools of this program: how calls are described.
    pub tools: ToolCatalog,
    /// Names of agent programs that are installed here.
    pub found_agents: Vec<String>,
    /// Keys of the environment that can be offered by name.
    pub found_keys: Vec<FoundKey>,
}

/// Places of the screen's own files.
#[derive(Clone, Debug, Default)]
pub struct Folders {
    /// The person's configuration: `keys.toml`, `themes/`; `None`: nothing can be kept.
    pub config: Option<PathBuf>,
    /// The person's data: memory files; `None`: nothing can be kept.
    pub data: Option<PathBuf>,
    /// The folder of this workspace's drafts; `None`: they are not kept.
    pub draft: Option<PathBuf>,
    /// Files for the external editor.
    pub scratch: PathBuf,
    /// The workspace as it is named and as it really is: rows name what is in it without it.
    pub workspace: Vec<String>,
}

/// The terminal's window.
#[derive(Default)]
pub struct WindowModel {
    /// Columns and rows of the screen.
    pub screen: (u16, u16),
    /// The window has lost the focus (never true where terminals do not report it).
    pub away: bool,
    /// When the window got the focus back (monotonic).
    pub back: Duration,
    /// The terminal supports left and right margins (mode 69).
    pub sides: bool,
    /// Pixels of a cell where pictures are shown as the terminal's graphics; `None`: in cells only.
    pub pictures: Option<(u16, u16)>,
}
