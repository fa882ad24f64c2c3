//! What requests beside the conversation report to the engine's loop.

use tiller_protocol::SessionId;

use crate::context::compaction::Compacted;
use crate::context::side_call::SideMsg;
use crate::prompts::aside::Aside;

/// A report about a compaction, a question on the side, or a title.
pub(crate) enum ContextMsg {
    Compacted(Box<Compacted>),
    Aside(Box<Aside>),
    TitleFound {
        session: SessionId,
        title: String,
    },
    /// The cost of a side call, or that it waits before it is tried again.
    SideCall(SideMsg),
}
