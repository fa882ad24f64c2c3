//! The thing that a row of the agents' tree shows.

use tiller_protocol::AgentId;

/// The thing that a row shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RowTarget {
    Agent(AgentId),
    Tool(String),
    /// A workflow by its id.
    Flow(String),
    /// A background process by its id.
    Process(String),
    /// The children of this agent that have ended, folded.
    Fold(AgentId),
}
