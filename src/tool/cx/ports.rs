//! What the engine does for tools.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tiller_protocol::{
    AgentId, AskBody, AskReply, Cost, EntryId, MemoryRights, ModelRef, Provenance, RestorePreview,
    SearchPage, SearchQuery, SessionId, TodoItem, Usage,
};

use super::ToolCx;
use crate::code::ScriptPorts;
use crate::crew::{CrewReply, CrewRequest};
use crate::shell::{Deletion, HeldAnswer, HeldWrite};

/// What the engine does for tools that ask servers of the settings.
#[async_trait]
pub trait ServerPorts: Send + Sync {
    /// Whether the budgets allow a request to a server of the settings that costs `price`; `None`: its price is not known.
    /// `Err` is a sentence without a full stop.
    async fn may_spend(&self, price: Option<Cost>) -> Result<(), String> {
        let _ = price;
        Ok(())
    }
    /// Counts a request to a server of the settings. Does not wait.
    fn server_cost(&self, cost: ServerCost) {
        let _ = cost;
    }
    /// An image that the person attached to this conversation, in base64. `number`: from 1, in their order. `Err` is a
    /// sentence without a full stop.
    async fn attached_image(&self, number: usize) -> Result<Arc<str>, String> {
        let _ = number;
        Err("there are no attached images here".into())
    }
}

/// What the engine does for tools that write memory.
#[async_trait]
pub trait MemoryPorts: Send + Sync {
    /// Where an entry of memory with this text comes from, and what the agent may do with memory.
    async fn memory_origin(&self, agent: &AgentId, text: &str) -> Result<MemoryOrigin, String> {
        let _ = (agent, text);
        Ok(MemoryOrigin::default())
    }
    /// Asks the person about a change of a memory file. `None`: none can answer.
    async fn confirm_memory(&self, agent: &AgentId, write: AskedWrite) -> Option<bool> {
        let _ = (agent, write);
        None
    }
}

/// The engine's decisions about what a command has done.
#[async_trait]
pub trait CommandPorts: Send + Sync {
    /// Decides whether files that a command wrote and that are held back stay, by mode, rules and the person. `more`: how many
    /// others stay out, since no question can show them.
    async fn confirm_held(&self, agent: &AgentId, files: Vec<HeldWrite>, more: usize) -> HeldAnswer {
        let _ = (agent, files, more);
        HeldAnswer::default()
    }
}

/// What the engine does for tools.
#[async_trait]
pub trait Ports: ServerPorts + MemoryPorts + CommandPorts {
    /// Puts a question to the person and waits. `Err`: why there is no answer.
    async fn ask(&self, agent: &AgentId, body: AskBody) -> Result<AskReply, String>;
    /// The todo list now, and the number of tool calls since its last change.
    fn todos(&self, agent: &AgentId) -> (Vec<TodoItem>, u32);
    /// Replaces the list (saved with the session, shown at once).
    async fn set_todos(&self, agent: &AgentId, todos: Vec<TodoItem>) -> Result<(), String>;
    /// Looks for words in earlier sessions. `Err` says why it cannot.
    async fn search_sessions(&self, query: SearchQuery) -> Result<SearchPage, String>;
    /// Names this state of the files and this place of the conversation; a sentence comes back.
    async fn checkpoint(&self, name: &str) -> Result<String, String>;
    /// What going back to the last checkpoint of this name would do to the files.
    async fn restore_preview(&self, name: &str) -> Result<(EntryId, RestorePreview), String>;
    /// Brings the files back to what they were at an entry, but for those that others changed. A sentence comes back.
    async fn restore(&self, entry: EntryId) -> Result<String, String>;
    /// Sends a request to the crew of agents and waits for the reply. `Err` is a sentence for the model.
    async fn crew(&self, cx: &ToolCx, request: CrewRequest) -> Result<CrewReply, String>;
    /// Whether a command may lose these files, and more. A no where no person can answer.
    async fn confirm_deletion(&self, agent: &AgentId, deletion: Deletion) -> bool {
        let _ = (agent, deletion);
        false
    }
    /// What the engine does for scripts; `None`: nothing.
    fn scripts(&self) -> Option<&dyn ScriptPorts> {
        None
    }
    /// Marks paths as about to be written by this call, so that the watcher attributes the changes to `agent`.
    fn writing(&self, agent: &AgentId, paths: &[PathBuf]);
    /// The files under these paths changed (called after writing).
    fn wrote(&self, agent: &AgentId, paths: &[PathBuf]);
}

/// Where an entry of memory comes from, and what its agent may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryOrigin {
    pub provenance: Provenance,
    pub rights: MemoryRights,
    /// The file of the agent's own definition, absolute or relative to the project; `None`: it is built in, or a plugin's.
    pub definition: Option<PathBuf>,
}

/// A change of a memory file that the person is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedWrite {
    /// The file, for people.
    pub path: String,
    /// The exact difference (unified).
    pub diff: String,
    /// A rule is made, changed or removed.
    pub rule: bool,
}

/// What a request to a server of the settings used.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerCost {
    /// The session of the call.
    pub session: SessionId,
    /// The tool's section of the settings, and the model.
    pub model: ModelRef,
    pub usage: Usage,
    /// `None`: the price is not known.
    pub cost: Option<Cost>,
}
