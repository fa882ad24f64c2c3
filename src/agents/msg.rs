//! Messages of the crew's own tasks (timers, loads from the store, workflows), and their queue.

use tiller_engine::Envelope;
use tiller_engine::crew::{ChildServices, CrewMailbox, EngineEnded, LoadedSession};
use tiller_protocol::{AgentId, SessionId};
use tiller_store::{StoreError, WorkflowRow};
use tokio::sync::mpsc;

use crate::reuse::ReuseCheck;
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
    /// The state of its folder was noted; empty: it could not be.
    Stamp(String),
    /// Whether its result can be used again for another task is known.
    Reuse(Box<ReuseCheck>),
    /// Its session was loaded from the store; `then` are the commands that wait for it.
    Reloaded { services: ChildServices, loaded: Result<LoadedSession, StoreError>, then: Vec<Envelope> },
}

/// Most messages that wait in the queue. Each one also takes a place in the inbox of the main agent's loop.
const WAITING: usize = 64;

/// The crew's end of the queue of its own tasks, each message with the session that it is for. The tasks hold the other ends
/// ([`TaskMailbox`]); it lives as long as the roster.
pub(crate) struct TaskQueue {
    tx: mpsc::Sender<(SessionId, TaskMsg)>,
    rx: mpsc::Receiver<(SessionId, TaskMsg)>,
}

impl Default for TaskQueue {
    fn default() -> Self {
        let (tx, rx) = mpsc::channel(WAITING);
        Self { tx, rx }
    }
}

impl TaskQueue {
    /// For a task of the session `root`. `crew` wakes the loop that owns the crew.
    pub(crate) fn mailbox(&self, crew: CrewMailbox, root: SessionId) -> TaskMailbox {
        TaskMailbox { queue: self.tx.clone(), crew, root }
    }

    /// The next message, without waiting.
    pub(crate) fn next(&mut self) -> Option<(SessionId, TaskMsg)> {
        self.rx.try_recv().ok()
    }
}

/// Sends messages of a task to the crew. They are ignored when another session is open by then.
#[derive(Clone)]
pub(crate) struct TaskMailbox {
    queue: mpsc::Sender<(SessionId, TaskMsg)>,
    crew: CrewMailbox,
    root: SessionId,
}

impl TaskMailbox {
    /// Sends a message; waits while the queue or the inbox of the loop is full.
    ///
    /// # Errors
    /// When the engine has ended.
    pub(crate) async fn send(&self, msg: TaskMsg) -> Result<(), EngineEnded> {
        let place = self.queue.reserve().await.map_err(|_| EngineEnded)?;
        let signal = self.crew.reserve().await?;
        place.send((self.root, msg));
        signal.send();
        Ok(())
    }
}
