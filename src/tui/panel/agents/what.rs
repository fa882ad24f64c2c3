//! What a row of the agents' tree stands for.

use tiller_protocol::AgentId;

/// What a row stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Agent(AgentId),
    Tool(String),
    /// A workflow by its id.
    Flow(String),
    /// A background process by its id.
    Process(String),
    /// The children of this agent that have ended, folded.
    Fold(AgentId),
}
