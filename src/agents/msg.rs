//! Messages of the crew's own tasks: timers, loads from the store, workflows.

use tiller_engine::Envelope;
use tiller_engine::crew::{ChildServices, LoadedSession};
use tiller_protocol::{AgentId, SessionId};
use tiller_store::{StoreError, WorkflowRow};

use crate::roster::member::StoredAgent;
use crate::workflow::state::WorkflowMsg;

/// To the crew, from its own tasks.
pub(crate) enum TaskMsg {
    /// The time of the wait with this number is over.
    WaitTimedOut(u64),
    /// From a task for the agent `id` while its session is `session`.
    Member {
        id: AgentId,
        session: SessionId,
        msg: MemberTaskMsg,
    },
    Workflow(WorkflowMsg),
    /// The agents of the session that was opened.
    AgentsLoaded(Result<Vec<StoredAgent>, StoreError>),
    /// The workflows of the session that was opened. They follow its agents.
    WorkflowsLoaded(Result<Vec<WorkflowRow>, StoreError>),
}

/// From a task for one agent.
pub(crate) enum MemberTaskMsg {
    /// The worktree for it was made, or could not be made. The result is its path.
    Folder(Result<String, String>),
    /// Its session was loaded from the store; `then` are the commands that wait for it.
    Reloaded { services: ChildServices, loaded: Result<LoadedSession, StoreError>, then: Vec<Envelope> },
}
