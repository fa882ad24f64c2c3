//! What the user types, until it is an entry: attachments, names after `@`, commands after `!`, the queue.

pub(crate) mod aside;
pub(crate) mod comments;
pub(crate) mod compose;
pub(crate) mod doing;
pub(crate) mod files_read;
pub(crate) mod finder;
pub(crate) mod handle;
pub(crate) mod message_commands;
pub(crate) mod msg;
pub(crate) mod named;
pub(crate) mod part;
pub(crate) mod pending;
pub(crate) mod queue;
pub(crate) mod servers;
pub(crate) mod shell_line;
pub(crate) mod skills;
pub(crate) mod titles;
