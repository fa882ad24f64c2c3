//! Commands for the session and its conversation.

pub(super) mod branch;
pub(super) mod checkpoint;
pub(super) mod compact;
pub(super) mod compare;
pub(crate) mod goal;
pub(crate) mod init;
pub(super) mod new;
pub(super) mod plan;
pub(super) mod rename;
pub(super) mod resume;
pub(super) mod todo;
pub(super) mod undo;
