//! Messages of the crew: to the main agent's loop, to a child, and from an external program.

use std::sync::Arc;

use tiller_protocol::Transport;
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{AgentId, AgentView, Cost, EntryId, Notice, SessionId, Usage};
use tiller_store::StoreError;
use tiller_tool::Workspace;
use tiller_tool::crew::{CrewReply, CrewRequest};
use tokio::sync::oneshot;

use crate::bus::Envelope;
use crate::core::services::Services;
use crate::crew::child::identity::Work;
use crate::crew::external::FilesTrust;
use crate::crew::roster::member::StoredAgent;
use crate::crew::workflow::state::WorkflowMsg;
use crate::session::load::Loaded;

/// WaitKind a run of an agent ended.
pub(crate) struct RunEnd {
    pub(crate) status: TurnStatus,
    /// Its last message.
    pub(crate) text: String,
    /// Why it is not done.
    pub(crate) why: Option<Notice>,
    /// Files that it changed, relative to its folder.
    pub(crate) files: Vec<String>,
    /// Tool calls.
    pub(crate) calls: u32,
    /// Time at work.
    pub(crate) seconds: f64,
    /// Its own children whose end it has received and not reported.
    pub(crate) unannounced: Vec<AgentId>,
}

impl RunEnd {
    /// The end of an agent that did nothing.
    pub(crate) fn without_work(status: TurnStatus, why: Option<Notice>) -> Self {
        let (text, files, unannounced) = (String::new(), Vec::new(), Vec::new());
        Self { status, text, why, files, calls: 0, seconds: 0.0, unannounced }
    }
}

/// To the main agent's loop, about the crew.
pub(crate) enum CrewMsg {
    /// A tool call of an agent sends a request.
    Request {
        by: AgentId,
        /// The id of the call; empty: the user asked.
        call: String,
        /// The entry with that call.
        entry: Option<EntryId>,
        request: CrewRequest,
        reply: oneshot::Sender<Result<CrewReply, String>>,
    },
    /// A call that sent a request has ended, with or without its reply.
    RequestEnded,
    /// The time of the wait with this number is over.
    WaitTimedOut(u64),
    /// From or about the agent `id` while its session is `session`. Ignored when another session is open, in which
    /// another agent may have the same id.
    Member {
        id: AgentId,
        session: SessionId,
        msg: Box<MemberMsg>,
    },
    /// From a task of the session `root` that may outlive it. Ignored when another session is open.
    Session {
        root: SessionId,
        msg: Box<Self>,
    },
    Workflow(WorkflowMsg),
    /// The agents of a session that was opened.
    Restored {
        root: SessionId,
        rows: Result<Vec<StoredAgent>, StoreError>,
    },
}

/// From or about one child.
pub(crate) enum MemberMsg {
    /// Its row has changed.
    View(Box<AgentView>),
    /// What it has done so far.
    Work(Work),
    /// Its run has ended.
    Ended(Box<RunEnd>),
    /// The session and transport of its external program; `None`: unchanged.
    ProgramSession {
        session: Option<String>,
        transport: Option<Transport>,
        /// Cost and usage that have been recorded for that session.
        booked: Option<(Cost, Usage)>,
    },
    /// The user chose another model of its external program.
    ProgramModel(String),
    /// Its task has ended. `run` is the number of the run, because the next run has the same id.
    TaskEnded { run: u64 },
    /// The worktree for it was made, or could not be made.
    Folder(Result<Workspace, String>),
    /// Its session was loaded from the store; `then` are the commands that wait for it.
    Reloaded { services: Arc<Services>, loaded: Box<Result<Loaded, StoreError>>, then: Vec<Envelope> },
}

/// To a child, from the main agent's loop and from its own timers.
pub(crate) enum ChildMsg {
    /// Pause or resume.
    Pause(bool),
    /// Stop the turn; `hard`: kill what runs.
    Stop { hard: bool },
    /// The limits that the user set.
    Limits(tiller_protocol::AgentLimits),
    /// The profile of the main agent has changed.
    Profile(tiller_protocol::Profile),
    /// A child of the child has ended.
    ChildEnded { id: AgentId, text: String },
    /// The time limit of this turn may be reached.
    TimeUp { turn: u64 },
    /// A reservation was settled: this turn may get its own.
    BudgetChanged { turn: u64 },
    /// What the turn did to the files is stored, so that its end can be reported.
    Ended {
        /// Number of turns that had begun.
        turns: u64,
        status: tiller_protocol::event::TurnStatus,
        text: String,
        why: Option<tiller_protocol::Notice>,
    },
}

/// From the external program that does an agent's work.
pub(crate) enum ExternalMsg {
    /// Whether the configuration files that the program of this turn would read are trusted.
    ProgramTrust { turn: u64, found: FilesTrust },
    /// A message of the program in this turn.
    Said { turn: u64, said: Box<tiller_external::AgentEvent> },
    /// No output of this call followed piece number `piece` for a moment.
    OutputRests { turn: u64, call: String, piece: u64 },
    /// The interval between two titles of the program's terminal is over.
    Titled { turn: u64 },
}
