//! What agents keep across sessions.

pub mod learning;
pub mod memory;
pub mod skill;
