//! Bytes of the network: clients, event streams, timers, retries, and what a refusal means.

pub(crate) mod alarm;
pub(crate) mod answer;
pub(crate) mod fault;
pub mod http;
pub mod retry;
pub mod sse;
pub(crate) mod stream;
