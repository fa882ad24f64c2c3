//! Messages to the crew.

use tiller_protocol::Transport;
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{AgentId, AgentView, Cost, EntryId, Notice, SessionId, Usage};
use tiller_tool::crew::{CrewReply, CrewRequest};
use tokio::sync::oneshot;

use crate::crew::child::identity::Work;
use crate::crew::inputs::Inputs;

/// How a run of an agent ended.
pub struct RunEnd {
    pub status: TurnStatus,
    /// Its last message.
    pub text: String,
    /// Why it is not done.
    pub why: Option<Notice>,
    /// Files that it changed, relative to its folder.
    pub files: Vec<String>,
    /// Tool calls.
    pub calls: u32,
    /// Time at work.
    pub seconds: f64,
    /// Its own children whose end it has received and not reported.
    pub unannounced: Vec<AgentId>,
    /// What its result depends on.
    pub inputs: Inputs,
}

impl RunEnd {
    /// The end of an agent that did nothing.
    pub fn without_work(status: TurnStatus, why: Option<Notice>) -> Self {
        let (text, files, unannounced) = (String::new(), Vec::new(), Vec::new());
        Self { status, text, why, files, calls: 0, seconds: 0.0, unannounced, inputs: Inputs::default() }
    }
}

/// To the main agent's loop, about the crew.
pub enum CrewMsg {
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
    /// The turn is stopped for a message: the agents that it waits for go on in the background.
    Released,
    /// From or about the agent `id` while its session is `session`. Ignored when another session is open, in which
    /// another agent may have the same id.
    Member { id: AgentId, session: SessionId, msg: Box<MemberMsg> },
    /// From a task of the session `root` that may outlive it. Ignored when another session is open.
    Session { root: SessionId, msg: Box<Self> },
    /// The crew's own queue, which only the crew knows, has messages of its tasks ([`CrewMailbox::reserve`]).
    ///
    /// [`CrewMailbox::reserve`]: crate::crew::CrewMailbox::reserve
    Queued,
}

/// From or about one child.
pub enum MemberMsg {
    /// Its row has changed.
    View(Box<AgentView>),
    /// What it has done so far.
    Work(Work),
    /// Its run has ended.
    Ended(Box<RunEnd>),
    /// Files that it changed, relative to its folder. Those of a run that is not reported yet follow with its end.
    Files(Vec<String>),
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
}
