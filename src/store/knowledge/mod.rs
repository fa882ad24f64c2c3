//! Tables of what is kept across sessions, one file each.

pub(crate) mod memory;
