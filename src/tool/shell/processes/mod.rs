//! Processes of this machine: starting them, finding those that a command left, bounding and ending them.

pub(crate) mod bounds;
pub(crate) mod end;
pub(crate) mod environment;
pub(crate) mod forks;
pub(crate) mod guardian;
pub(crate) mod launch;
pub(crate) mod mark;
mod memory;
pub(crate) mod proc_fs;
