//! Settings of this process itself: no core dumps, and a folder for temporary files.

pub(crate) mod core_dumps;
pub(crate) mod temporary;
