//! The network: HTTP clients, event streams, timers, retries, and the meaning of refusals.

pub(crate) mod answer;
pub(crate) mod fault;
pub mod http;
pub(crate) mod overflow;
pub mod retry;
pub mod sse;
pub(crate) mod stream;
pub(crate) mod timer;
