//! Commands for agents, queued messages and workflows.

pub(super) mod btw;
pub(super) mod queue;
pub(super) mod spawn;
pub(super) mod stop;
pub(super) mod workflow;
