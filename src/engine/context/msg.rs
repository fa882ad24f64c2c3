//! What requests beside the conversation report to the engine's loop.

use std::sync::Arc;
use std::time::Duration;

use tiller_protocol::view::LayerCost;
use tiller_protocol::{ModelRef, Notice, SessionId, Usage};

use crate::bus::ClientId;
use crate::context::compaction::compact::Plan;
use crate::prompts::msg::Aside;

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

/// A summary, or why there is none.
pub(crate) struct Compacted {
    /// The turn that waits for it; `None`: the person asked.
    pub(crate) turn: Option<u64>,
    /// The provider asked for it: what goes wrong is said where the turn ends.
    pub(crate) overflow: bool,
    /// See `busy`; 0 within a turn.
    pub(crate) no: u64,
    pub(crate) client: Option<(ClientId, tiller_protocol::CommandId)>,
    pub(crate) focus: Option<String>,
    pub(crate) plan: Option<Plan>,
    pub(crate) result: Result<String, Notice>,
    pub(crate) prefix: Prefix,
}

/// What side calls report to the engine.
pub(crate) enum SideMsg {
    /// A request has ended.
    Spent(Box<Spent>),
    /// A request waits before it is tried again; `None`: the wait is over.
    Waits(Option<Wait>),
    /// A server refused a request of about so many tokens as too long, in these words.
    TooLong { model: ModelRef, said: String, request: u64 },
}

/// What a request used.
pub(crate) struct Spent {
    pub(crate) session: SessionId,
    pub(crate) model: ModelRef,
    pub(crate) tier: &'static str,
    pub(crate) usage: Usage,
}

/// A wait before the next try.
pub(crate) struct Wait {
    pub(crate) attempt: u32,
    pub(crate) of: u32,
    pub(crate) wait: Duration,
    pub(crate) why: String,
}

/// The system prompt, and what each layer of it costs.
pub(crate) type Prefix = Arc<(String, Vec<LayerCost>)>;
