//! Offers before anything runs: kinds of agents, and keys of the environment.

use tiller_protocol::ModelRef;

/// A key that is in the environment, by the name of its variable. Its value is not here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundKey {
    pub variable: String,
    pub provider: String,
    /// The provider is ready, and begins with this model; `None`: it needs the person's yes first.
    pub model: Option<ModelRef>,
}

/// A kind of agent that can be started by hand, by its definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentKind {
    pub name: String,
    /// When to use it, in a line.
    pub about: String,
}
