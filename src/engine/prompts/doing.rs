//! What keeps new messages waiting although no turn runs.

use tiller_protocol::{CommandId, Message};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::bus::ClientId;

/// The thing under way. Dropping it stops it.
pub(crate) struct Busy {
    pub(crate) no: u64,
    pub(crate) doing: Doing,
    pub(crate) task: AbortOnDropHandle<()>,
}

/// What it is, and who hears of its end.
pub(crate) enum Doing {
    /// `client`: who sent it just now; `None`: it stands in the queue until it goes out.
    Message {
        client: Option<(ClientId, CommandId)>,
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

impl Doing {
    /// A turn comes of it.
    pub(crate) fn begins(&self) -> bool {
        matches!(self, Self::Message { .. } | Self::Continue { .. } | Self::Goal { .. })
    }
}

impl Busy {
    pub(crate) fn into_task(self) -> AbortOnDropHandle<()> {
        self.task
    }
}
