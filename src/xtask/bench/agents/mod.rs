//! Cases of agents and their tool calls.

pub(crate) mod crew;
pub(crate) mod tools;
