//! What the main agent's task hears of its crew.

use std::sync::Arc;

use tiller_protocol::event::TurnStatus;
use tiller_protocol::{AgentId, AgentView, Cost, EntryId, Notice, SessionId, Usage};
use tiller_store::StoreError;
use tiller_tool::Workspace;
use tiller_tool::crew::{CrewReply, CrewRequest};
use tokio::sync::oneshot;

use crate::bus::Envelope;
use crate::core::services::Services;
use crate::session::load::Loaded;

/// How a child's turn ended.
pub(crate) struct Over {
    pub(crate) status: TurnStatus,
    pub(crate) text: String,
    pub(crate) why: Option<Notice>,
    pub(crate) files: Vec<String>,
    pub(crate) calls: u32,
    pub(crate) seconds: f64,
    /// Ends of its own children that it heard of and did not come to.
    pub(crate) untold: Vec<AgentId>,
}

impl Over {
    /// The end of one that did nothing.
    pub(crate) fn idle(status: TurnStatus, why: Option<Notice>) -> Self {
        let (text, files, untold) = (String::new(), Vec::new(), Vec::new());
        Self { status, text, why, files, calls: 0, seconds: 0.0, untold }
    }
}

pub(crate) enum CrewMsg {
    /// A tool of `by` asks, in the call `call`.
    Asked {
        by: AgentId,
        call: String,
        /// The entry with that call.
        entry: Option<EntryId>,
        ask: CrewRequest,
        reply: oneshot::Sender<Result<CrewReply, String>>,
    },
    /// A call that asked has ended, one way or another.
    Ended,
    /// Who waited for others does not want to wait any longer.
    Late(u64),
    /// From or about a child of this session of its own. One of a session that was left may still have news, when
    /// another one has its name already.
    Of { id: AgentId, session: SessionId, msg: Box<Self> },
    /// From what works for the session `root` and may outlive it.
    In { root: SessionId, msg: Box<Self> },
    /// A child's row changed.
    View(Box<AgentView>),
    /// What a child has done so far.
    Work { id: AgentId, work: super::identity::Work },
    /// A child's turn ended.
    Over { id: AgentId, over: Box<Over> },
    /// A program's own name for the talk, and how it is driven.
    Theirs {
        id: AgentId,
        session: Option<String>,
        transport: Option<String>,
        /// Costs and tokens.
        booked: Option<(Cost, Usage)>,
    },
    /// The person chose another model of a program's.
    TheirModel { id: AgentId, model: String },
    /// A child's task has ended; `run` tells it from the next one of the same agent.
    Gone { id: AgentId, run: u64 },
    /// A folder of its own is there, or not.
    Folder { id: AgentId, made: Result<Workspace, String> },
    /// A child that ended was read again from the store.
    Revived { id: AgentId, w: Arc<Services>, loaded: Box<Result<Loaded, StoreError>>, then: Vec<Envelope> },
    /// Of a workflow.
    Flow(crate::crew::flow_state::FlowMsg),
    /// The agents of a session that was opened.
    Kept { root: SessionId, rows: Result<Vec<crate::crew::state::Kept>, StoreError> },
}

/// To a child from the main agent, and about the child's own limits.
pub(crate) enum ChildMsg {
    Pause(bool),
    Stop {
        hard: bool,
    },
    Limits(tiller_protocol::AgentLimits),
    Profile(tiller_protocol::Profile),
    /// A child of the child has ended.
    ChildEnded {
        id: AgentId,
        text: String,
    },
    /// The agent has used its time.
    TimeUp {
        turn: u64,
    },
    /// The budget may have room again for the turn that waits.
    BudgetChanged {
        turn: u64,
    },
    /// What the child's turn did to the files is stored: now its end is reported.
    Ended {
        /// Turns that it had begun.
        turns: u64,
        status: tiller_protocol::event::TurnStatus,
        text: String,
        why: Option<tiller_protocol::Notice>,
    },
}

/// From the external program that does an agent's work.
pub(crate) enum ExternalMsg {
    /// Whether files of the folder may steer the program of this turn.
    ProgramTrust { turn: u64, found: super::FilesTrust },
    /// The program said something in this turn.
    Said { turn: u64, said: Box<tiller_external::AgentEvent> },
    /// Nothing came after this piece of the output of a call of the program.
    OutputRests { turn: u64, call: String, piece: u64 },
    /// A program in a terminal may report its title again.
    Titled { turn: u64 },
}
