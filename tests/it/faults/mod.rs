//! Rows of the fault matrix, tested with the whole program. The name of a test names its row.

pub(crate) mod exits;
pub(crate) mod file_bytes;
pub(crate) mod full_disk;
pub(crate) mod hostile_repository;
pub(crate) mod killed;
pub(crate) mod malformed_replies;
pub(crate) mod power_loss;
pub(crate) mod process_hardening;
pub(crate) mod read_only_commands;
pub(crate) mod secrets;
