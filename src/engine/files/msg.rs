//! What tasks report about states of the workspace's files.

use std::path::PathBuf;

use tiller_protocol::compare::NotTaken;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::op::OpChange;
use tiller_protocol::restore::StepFile;
use tiller_protocol::{CommandId, EntryId, Notice, OpId, RestorePreview, SessionId, Time};
use tiller_snapshot::{Id, OpenCall, Snapshot, SnapshotError};
use tiller_store::StepRow;
use tokio::sync::oneshot;

use crate::bus::ClientId;
use crate::files::others::Watched;
use crate::files::outside::OldFile;
use crate::undo::Next;
use crate::undo::before::Saved;

/// A report about snapshots, restores, reviews and undo.
pub(crate) enum FilesMsg {
    /// What an undo or redo would take back.
    UndoFound(Box<Found>),
    Reviewed(Box<Reviewed>),
    NotKept(Box<NotKept>),
    Restored(Box<Restored>),
    /// A tool names a state of the files, or goes back to one.
    Asked(Asked),
    /// The snapshots have a notice for the person.
    Notices,
    /// Files that a call changed, relative to the folder.
    Touched(Vec<String>),
}

pub(crate) type Answer<T> = oneshot::Sender<Result<T, String>>;

/// What a tool asks.
pub(crate) enum Asked {
    Name {
        name: String,
        call: String,
        reply: Answer<String>,
    },
    Preview {
        name: String,
        reply: Answer<(EntryId, RestorePreview)>,
    },
    Restore {
        entry: EntryId,
        call: String,
        reply: Answer<String>,
    },
    /// It was done, or could not be.
    Gone {
        back: Back,
        gone: Box<Result<Gone, String>>,
        reply: Answer<String>,
    },
}

/// A way back that a tool goes.
pub(crate) struct Back {
    pub(crate) entry: EntryId,
    pub(crate) call: String,
    pub(crate) op: OpId,
    /// In the log.
    pub(crate) title: String,
}

/// A moment that the agent named. Its state is kept already; its entry comes at the next safe place.
pub(crate) struct Named {
    pub(crate) name: String,
    /// The id that the entry will have.
    pub(crate) entry: EntryId,
}

/// A restore that was carried out, or could not be.
pub(crate) struct Restored {
    pub(crate) no: u64,
    pub(crate) client: ClientId,
    pub(crate) cause: CommandId,
    pub(crate) session: SessionId,
    pub(crate) op: OpId,
    /// In the log.
    pub(crate) title: String,
    pub(crate) of: Option<OpId>,
    /// Where the conversation goes as well.
    pub(crate) talk: Option<EntryId>,
    pub(crate) entry: Option<EntryId>,
    /// What is undone after it.
    pub(crate) rest: Option<Rest>,
    /// It failed and always will: this closes the operation that it was to undo.
    pub(crate) closes: Option<OpChange>,
    pub(crate) result: Result<Gone, Notice>,
}

/// What was done, which files changed, and what somebody else had changed before.
pub(crate) struct Gone {
    pub(crate) done: tiller_snapshot::Restored,
    pub(crate) files: Vec<StepFile>,
    pub(crate) others: Option<StepRow>,
    pub(crate) way: Way,
}

/// What it was that changed them.
pub(crate) enum Way {
    /// Going back, or undoing that.
    Back,
    /// They were taken from another branch.
    Took(Took),
    /// The diff review took them back as a whole.
    Rejected,
}

/// What was taken, and what was not.
pub(crate) struct Took {
    pub(crate) from: String,
    pub(crate) not: Vec<NotTaken>,
}

/// One state that was kept, or one change.
pub(crate) struct Kept {
    /// What somebody else had changed before it.
    pub(crate) others: Option<StepRow>,
    /// None for a point.
    pub(crate) before: Option<Id>,
    pub(crate) began: Option<Time>,
    pub(crate) after: Snapshot,
    pub(crate) files: Vec<StepFile>,
    /// Until the rows are written, a kill leaves this.
    pub(crate) open: Option<OpenCall>,
}

/// The state after a call is being kept.
pub(crate) struct Waiting(pub(crate) oneshot::Receiver<Result<Kept, SnapshotError>>);

impl Waiting {
    /// What came of it.
    pub(crate) async fn kept(self) -> Option<Result<Kept, SnapshotError>> {
        self.0.await.ok()
    }
}

/// A state could not be kept.
pub(crate) struct NotKept(pub(crate) SnapshotError);

/// A rejection that was carried out.
pub(crate) struct Reviewed {
    pub(crate) client: ClientId,
    pub(crate) cause: CommandId,
    pub(crate) reply: ReplyEvent,
    pub(crate) undo: Option<Vec<Saved>>,
    pub(crate) said: Vec<String>,
}

/// What is to be done next, as the log says.
pub(crate) struct Found {
    pub(crate) no: u64,
    pub(crate) client: ClientId,
    pub(crate) cause: CommandId,
    pub(crate) session: SessionId,
    pub(crate) redo: bool,
    pub(crate) result: tiller_store::Result<Option<Next>>,
}

/// What goes on when an undo is done: what was done in one with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    pub(crate) root: OpId,
    pub(crate) redo: bool,
}

/// What is kept around one call.
pub(crate) enum What {
    /// The call declares what it writes.
    Paths(Vec<PathBuf>),
    /// It runs a command, which may write anything.
    All,
}

/// The state before a call, and what is to be looked at after it.
pub(crate) struct Before {
    pub(crate) id: Id,
    pub(crate) began: Time,
    pub(crate) others: Option<StepRow>,
    pub(crate) what: What,
    pub(crate) watched: Watched,
    pub(crate) open: Option<OpenCall>,
    /// Copies of files that no state covers.
    pub(crate) outside: Vec<OldFile>,
}

/// A state that is being kept.
pub(crate) type Beginning = oneshot::Receiver<Result<Before, SnapshotError>>;
