//! Tools that depend on the settings or on what this machine has.

pub(crate) mod browser;
pub(crate) mod learnings;
pub(crate) mod media;
pub(crate) mod memory;
pub(crate) mod search;
pub(crate) mod skills;
