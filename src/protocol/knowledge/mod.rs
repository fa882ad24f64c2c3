//! What agents keep across sessions.

pub mod memory;
