//! Traffic written to a file, and played back.

pub mod record;
pub(crate) mod redact;
