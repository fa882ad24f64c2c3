//! The job that keeps new messages waiting although no turn runs.

use tiller_protocol::{CommandId, Message, QueueId};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::bus::ClientId;

/// The running job. Dropping it stops it.
pub(crate) struct RunningJob {
    pub(crate) no: u64,
    pub(crate) doing: JobKind,
    pub(crate) task: AbortOnDropHandle<()>,
}

/// The kind of a job, and the client that gets its result.
pub(crate) enum JobKind {
    /// A message is being prepared. `client`: the client that sent it, or asked to continue with a waiting one; `None`: the
    /// queue goes on by itself, or an agent begins its task.
    Message {
        client: Option<(ClientId, CommandId)>,
        /// Its place in the queue, if it has one: it stays there until it is sent.
        queued: Option<QueueId>,
        message: Message,
    },
    Continue {
        cause: CommandId,
    },
    /// The check of a goal; firing the token ends it.
    Goal {
        cancel: CancellationToken,
    },
    /// Opening, branching, compacting.
    Other {
        client: ClientId,
        cause: CommandId,
    },
}

impl JobKind {
    /// Whether it leads to a turn.
    pub(crate) fn begins(&self) -> bool {
        matches!(self, Self::Message { .. } | Self::Continue { .. } | Self::Goal { .. })
    }
}

impl RunningJob {
    pub(crate) fn into_task(self) -> AbortOnDropHandle<()> {
        self.task
    }
}
