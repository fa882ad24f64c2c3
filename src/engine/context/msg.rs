//! Reports of side calls to the engine's loop.

use std::sync::Arc;
use std::time::Duration;
use tiller_config::agents::Tier;

use tiller_protocol::view::LayerCost;
use tiller_protocol::{Cost, ModelRef, Notice, SessionId, Taint, Usage};
use tiller_provider::ProviderError;
use tiller_tool::ServerCost;
use tokio::sync::oneshot;

use crate::bus::ClientId;
use crate::context::compaction::compact::Plan;
use crate::memory::msg::MemoryMsg;
use crate::prompts::msg::Aside;

/// A report about a compaction, a question on the side, or a title.
pub(crate) enum ContextMsg {
    Compacted(Box<CompactionResult>),
    Aside(Box<Aside>),
    TitleFound {
        session: SessionId,
        title: String,
    },
    /// What tools ask about memory, and what became of the files.
    Memory(MemoryMsg),
    /// The cost of a side call, or its wait before a retry.
    SideCall(SideMsg),
}

/// A summary, or why there is none.
pub(crate) struct CompactionResult {
    /// The turn that waits for it; `None`: a client requested it.
    pub(crate) turn: Option<u64>,
    /// The provider rejected the request as too long: a failure is reported where the turn ends.
    pub(crate) overflow: bool,
    /// Number of the [`crate::prompts::doing::RunningJob`] that waits for it; 0 within a turn.
    pub(crate) no: u64,
    pub(crate) client: Option<(ClientId, tiller_protocol::CommandId)>,
    pub(crate) focus: Option<String>,
    pub(crate) plan: Option<Plan>,
    pub(crate) result: Result<String, Notice>,
    pub(crate) prefix: Prefix,
    /// Of what was summed up.
    pub(crate) taint: Taint,
}

/// What side calls report to the engine.
pub(crate) enum SideMsg {
    /// A request has ended.
    SideCallCost(Box<SideCallCost>),
    /// A request waits before its retry; `None`: the wait is over.
    Waits(Option<Wait>),
    /// A tool has asked a server of the settings.
    ServerCost(Box<ServerCost>),
    /// A tool asks whether the budgets allow a request.
    MaySpend { price: Option<Cost>, reply: oneshot::Sender<Result<(), String>> },
    /// A tool wants an image that the user attached, by its number from 1.
    AttachedImage { number: usize, reply: oneshot::Sender<Result<Arc<str>, String>> },
    /// A server rejected a request of about `request` tokens as too long.
    TooLong { model: ModelRef, error: ProviderError, request: u64 },
}

/// What a request used.
pub(crate) struct SideCallCost {
    pub(crate) session: SessionId,
    pub(crate) model: ModelRef,
    pub(crate) tier: Tier,
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
