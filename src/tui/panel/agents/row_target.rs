//! The thing that a row of the panel shows.

use tiller_protocol::AgentId;

/// The thing that a row shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RowTarget {
    /// The name of a group, or a blank row between two: never selected.
    Heading,
    Agent(AgentId),
    Tool(String),
    /// A workflow by its id.
    Flow(String),
    /// A background process by its id.
    Process(String),
    /// The agents that have ended, folded or not.
    Finished,
}
