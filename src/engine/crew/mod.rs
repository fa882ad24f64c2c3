//! Several agents: the interface to the crew, and the engine of an agent that another one started.
//!
//! The crew (`tiller-agents`) is a client of engines: the main agent's loop owns it as a [`Crew`] and lends itself to it as a
//! [`CrewHost`]; children are engines like the main one, each on a task of its own with a session below the entry which
//! started it. So steering, interrupting, compaction, branches and restore work for a child as for the main agent.
//!
//! | module | contents |
//! | --- | --- |
//! | `port` | what the loop calls at the crew |
//! | `host` | what the crew calls at the loop: one trait for each concern |
//! | `msg`, `mailbox` | messages to the crew, and their way |
//! | `spawn` | engines of children: made, run, and their handles |
//! | `rights` | the services and the first message of a child |
//! | `child` | a child's side: reports to the main agent's loop, limits, pauses |
//! | `external` | programs of other vendors that do the work of an agent |
//! | `driver` | the types whose methods `child` and `external` implement |
//!
//! Not here: which agents there are, who starts when, workflows (`tiller-agents`).

pub(crate) mod child;
mod driver;
pub(crate) mod external;
mod host;
mod inputs;
mod mailbox;
pub(crate) mod msg;
mod port;
pub(crate) mod rights;
mod spawn;

use tiller_protocol::{GoalView, SessionId};
use tiller_store::{Store, StoreError};

pub(crate) use child::identity::AgentIdentity;
pub use child::identity::Work;
pub use external::{ProgramTrust, Programs};
pub use host::{
    CrewHost, FolderTask, HostBudget, HostChildren, HostEvents, HostSession, HostSettings, HostStorage,
    HostTasks,
};
pub use inputs::{Inputs, stamp};
pub use mailbox::{CrewMailbox, CrewSignal, EngineEnded, RequestGuard};
pub use msg::{CrewMsg, MemberMsg, RunEnd};
pub use port::{Crew, CrewRows, EndedWork, NoCrew, StoreReport};
pub use rights::{Grant, narrowed, profile_of};
pub use spawn::{
    COMMANDS, ChildEngine, ChildHandle, ChildServices, ChildSpec, CommandSlot, LoadedSession, ProgramSpec,
    SlotError,
};

/// The goal that an agent pursued when its session was left. Blocks.
///
/// # Errors
/// When the store cannot be read.
pub fn stored_goal(store: &Store, session: SessionId) -> Result<Option<GoalView>, StoreError> {
    Ok(crate::goal::pursuit::kept(store, session)?.map(|goal| goal.view))
}
