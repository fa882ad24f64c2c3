//! What tasks report about states of the workspace's files.

use crate::undo::OpTitle;
use std::path::PathBuf;

use tiller_protocol::compare::TakeConflict;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::op::{OpChange, TurnOp};
use tiller_protocol::restore::{StepFile, TurnChanges};
use tiller_protocol::{CommandId, EntryId, Notice, OpId, RestorePreview, SessionId, Time};
use tiller_snapshot::{Id, OpenCall, Snapshot, SnapshotError, UnkeptChange};
use tiller_store::StepRow;
use tiller_tool::shell::Witness;
use tokio::sync::oneshot;

use crate::bus::ClientId;
use crate::files::others::SessionFiles;
use crate::files::outside::OldFile;
use crate::undo::Next;
use crate::undo::before::RejectedDiff;

/// Reports about snapshots, restores, reviews and undo.
pub(crate) enum FilesMsg {
    /// The operation that an undo or redo applies to.
    UndoFound(Box<NextUndo>),
    ReviewReport(Box<ReviewReport>),
    NotKept(Box<NotKept>),
    RestoreReport(Box<RestoreReport>),
    /// A tool names a state of the files, or restores one.
    FilesRequest(FilesRequest),
    /// The snapshots have a notice for the user.
    Notices,
    /// Files that a call changed, relative to the folder.
    Touched(Vec<String>),
    /// The changes of a turn that has ended.
    TurnChanged(Box<TurnReport>),
    /// Files that a call of this session changed and whose content before it is not kept.
    Unkept(SessionId, Vec<UnkeptChange>),
}

/// What a turn changed.
pub(crate) struct TurnReport {
    pub(crate) session: SessionId,
    pub(crate) changes: TurnChanges,
}

pub(crate) type ReplySender<T> = oneshot::Sender<Result<T, String>>;

/// A request of a tool.
pub(crate) enum FilesRequest {
    Name {
        name: String,
        call: String,
        reply: ReplySender<String>,
    },
    Preview {
        name: String,
        reply: ReplySender<(EntryId, RestorePreview)>,
    },
    Restore {
        entry: EntryId,
        call: String,
        reply: ReplySender<String>,
    },
    /// The restore was done, or failed.
    RestoreEnded {
        back: ToolRestore,
        result: Box<Result<RestoreOutcome, String>>,
        reply: ReplySender<String>,
    },
}

/// A restore that a tool requested.
pub(crate) struct ToolRestore {
    pub(crate) entry: EntryId,
    pub(crate) call: String,
    pub(crate) op: OpId,
    /// Its title in the log.
    pub(crate) title: String,
}

/// A state that the agent named. It is kept already; its entry is added at the next safe point.
pub(crate) struct NamedState {
    pub(crate) name: String,
    /// The id that the entry will have.
    pub(crate) entry: EntryId,
}

/// A restore that was carried out, or could not be.
pub(crate) struct RestoreReport {
    pub(crate) no: u64,
    pub(crate) client: ClientId,
    pub(crate) cause: CommandId,
    pub(crate) session: SessionId,
    pub(crate) op: OpId,
    /// Its title in the log.
    pub(crate) title: OpTitle,
    pub(crate) of: Option<OpId>,
    /// The entry that the conversation returns to, too.
    pub(crate) talk: Option<EntryId>,
    pub(crate) entry: Option<EntryId>,
    /// What is undone after it.
    pub(crate) rest: Option<UndoRest>,
    /// Closes the operation that could not be undone and never can be.
    pub(crate) closes: Option<OpChange>,
    pub(crate) result: Result<RestoreOutcome, Notice>,
}

/// Result of a restore: the changed files, and changes by others before it.
pub(crate) struct RestoreOutcome {
    pub(crate) done: tiller_snapshot::RestoreResult,
    pub(crate) files: Vec<StepFile>,
    pub(crate) others: Option<StepRow>,
    pub(crate) way: RestoreKind,
}

/// The action that changed the files.
pub(crate) enum RestoreKind {
    /// A restore, or its undo.
    Back,
    /// The changes of a turn were taken back, or made again.
    Turn(Box<TurnOp>),
    /// Files were taken from another branch.
    Took(TakeOutcome),
    /// The diff review rejected whole files.
    Rejected,
}

/// Paths that were taken, and paths that were not.
pub(crate) struct TakeOutcome {
    pub(crate) from: String,
    pub(crate) not: Vec<TakeConflict>,
}

/// A kept state, or a change.
pub(crate) struct KeptState {
    /// Changes by others before it.
    pub(crate) others: Option<StepRow>,
    /// None for a point.
    pub(crate) before: Option<Id>,
    pub(crate) began: Option<Time>,
    pub(crate) after: Snapshot,
    pub(crate) files: Vec<StepFile>,
    /// Files that it changed and whose content before it is not kept.
    pub(crate) unkept: Vec<UnkeptChange>,
    /// The record that a killed process leaves until the rows are written.
    pub(crate) open: Option<OpenCall>,
}

/// The state after a call is being kept.
pub(crate) struct PendingStep(pub(crate) oneshot::Receiver<Result<KeptState, SnapshotError>>);

impl PendingStep {
    /// Waits for the result.
    pub(crate) async fn kept(self) -> Option<Result<KeptState, SnapshotError>> {
        self.0.await.ok()
    }
}

/// A state could not be kept.
pub(crate) struct NotKept(pub(crate) SnapshotError);

/// A rejection that was carried out.
pub(crate) struct ReviewReport {
    pub(crate) client: ClientId,
    pub(crate) cause: CommandId,
    pub(crate) reply: ReplyEvent,
    pub(crate) undo: Option<Vec<RejectedDiff>>,
    pub(crate) said: Vec<String>,
}

/// The next operation of the log for an undo or redo.
pub(crate) struct NextUndo {
    pub(crate) no: u64,
    pub(crate) client: ClientId,
    pub(crate) cause: CommandId,
    pub(crate) session: SessionId,
    pub(crate) redo: bool,
    pub(crate) result: tiller_store::Result<Option<Next>>,
}

/// Further operations of the same action that an undo continues with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UndoRest {
    pub(crate) root: OpId,
    pub(crate) redo: bool,
}

/// What is kept around one call.
pub(crate) enum CallScope {
    /// The call declares what it writes.
    Paths(Vec<PathBuf>),
    /// It runs a command, which may write anything.
    All,
}

/// The state before a call, and the files that are compared after it.
pub(crate) struct StateBefore {
    pub(crate) id: Id,
    pub(crate) began: Time,
    pub(crate) others: Option<StepRow>,
    pub(crate) what: CallScope,
    pub(crate) watched: SessionFiles,
    pub(crate) open: Option<OpenCall>,
    /// The witness of the changes of the call's programs; `None`: those of others are not known apart.
    pub(crate) witness: Option<Witness>,
    /// Copies of files that no snapshot covers.
    pub(crate) outside: Vec<OldFile>,
}

/// A state that is being kept.
pub(crate) type PendingState = oneshot::Receiver<Result<StateBefore, SnapshotError>>;
