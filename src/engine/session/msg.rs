//! What tasks report about the open session.

use crate::undo::OpTitle;
use std::sync::Arc;

use tiller_protocol::{
    Ask, CommandId, Entry, EntryBody, EntryId, Message, Notice, OpId, Queued, Taint, TodoItem,
};
use tiller_store::{Result, Running, StoreError, Tail};

use crate::bus::ClientId;
use crate::files::msg::UndoRest;
use crate::session::lease_guard::LeaseGuard;
use crate::session::load::SessionData;

/// Reports about a loaded session, or a branch that was made, opened or summarised.
pub(crate) enum SessionMsg {
    Opened {
        /// The number of the [`crate::prompts::doing::RunningJob`] that waits for it.
        no: u64,
        client: ClientId,
        cause: CommandId,
        result: Box<Result<SessionData, StoreError>>,
    },
    ForkReport(Box<ForkReport>),
    BranchLoaded(Box<BranchLoaded>),
    /// A branch was summarised.
    CarryReport(Box<CarryReport>),
}

/// A change to another branch, with its text for the log.
#[derive(Clone, Debug)]
pub(crate) struct BranchChange {
    pub(crate) head: String,
    /// Its title in the log.
    pub(crate) title: OpTitle,
    /// The operation that this undoes or redoes. Such a change never ends in read-only mode.
    pub(crate) of: Option<OpId>,
    /// Where the branch begins when it must be made again.
    pub(crate) at: Option<Option<EntryId>>,
    /// What is undone after it.
    pub(crate) rest: Option<UndoRest>,
}

/// A branch, as the store gives it.
pub(crate) struct BranchLoaded {
    pub(crate) no: u64,
    pub(crate) client: ClientId,
    pub(crate) cause: CommandId,
    pub(crate) going: BranchChange,
    /// `Ok(None)`: the branch no longer exists.
    pub(crate) result: Result<Option<BranchState>, StoreError>,
}

/// The state of a branch.
pub(crate) struct BranchState {
    pub(crate) held: LeaseGuard,
    /// The other process that has it open.
    pub(crate) holder: Option<String>,
    pub(crate) label: String,
    pub(crate) archived: bool,
    pub(crate) path: Vec<Arc<Entry>>,
    pub(crate) tail: Tail,
    pub(crate) turns: Vec<tiller_protocol::restore::TurnChanges>,
    pub(crate) todos: Vec<TodoItem>,
    pub(crate) queue: Vec<Queued>,
    pub(crate) asks: Vec<Ask>,
    pub(crate) pending: Vec<EntryBody>,
    pub(crate) running: Option<Running>,
}

/// A summary of a branch, or why there is none.
pub(crate) struct CarryReport {
    pub(crate) no: u64,
    pub(crate) client: ClientId,
    pub(crate) cause: CommandId,
    pub(crate) from: EntryId,
    pub(crate) focus: Option<String>,
    pub(crate) result: Result<String, Notice>,
    /// Of what was summed up.
    pub(crate) taint: Taint,
}

/// A branch, as the store gives it.
pub(crate) struct ForkReport {
    pub(crate) no: u64,
    pub(crate) client: ClientId,
    pub(crate) cause: CommandId,
    pub(crate) how: ForkOptions,
    pub(crate) result: Result<ForkedBranch>,
}

/// How a branch begins, with its text for the log.
pub(crate) struct ForkOptions {
    pub(crate) title: OpTitle,
    pub(crate) of: Option<OpId>,
    /// The operation that this one belongs to.
    pub(crate) with: Option<OpId>,
    /// `None`: a new one.
    pub(crate) head: Option<String>,
    /// What is undone after it.
    pub(crate) rest: Option<UndoRest>,
}

#[derive(Default)]
pub(crate) struct ForkedBranch {
    pub(crate) head: Option<EntryId>,
    pub(crate) draft: Option<Message>,
    pub(crate) path: Vec<Arc<Entry>>,
    pub(crate) tail: Tail,
    pub(crate) todos: Vec<TodoItem>,
}
