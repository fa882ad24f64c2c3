//! Memory across sessions: where an entry that an agent writes comes from, the person's changes, and following the branches of
//! the session. The files themselves are in the room `memory`.

pub(crate) mod branches;
pub(crate) mod commands;
pub(crate) mod condense;
pub(crate) mod free_programs;
pub(crate) mod handle;
pub(crate) mod msg;
pub(crate) mod origin;
pub(crate) mod save;
