//! Recordings of requests and replies, and replaying them.

pub mod record;
pub(crate) mod redact;
