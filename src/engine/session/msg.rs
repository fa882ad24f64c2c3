//! What tasks report about the open session.

use tiller_protocol::CommandId;
use tiller_store::StoreError;

use crate::bus::ClientId;
use crate::session::branch::Went;
use crate::session::carry::Carried;
use crate::session::fork::Forked;
use crate::session::load::Loaded;

/// A session was loaded, or a branch was made, entered or summarised.
pub(crate) enum SessionMsg {
    Opened {
        /// The number of the [`crate::core::busy::Busy`] that waits for it.
        no: u64,
        client: ClientId,
        cause: CommandId,
        result: Box<Result<Loaded, StoreError>>,
    },
    Forked(Box<Forked>),
    Went(Box<Went>),
    /// A branch was summarised.
    Carried(Box<Carried>),
}
