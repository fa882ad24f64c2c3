//! Tables of what is kept across sessions, one file each.

pub(crate) mod learnings;
#[cfg(test)]
mod learnings_tests;
pub(crate) mod memory;
pub(crate) mod memory_seen;
pub(crate) mod memory_unfinished;
pub(crate) mod receipts;
pub(crate) mod skill_uses;
