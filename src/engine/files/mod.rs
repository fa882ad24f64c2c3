//! States of the workspace's files: kept at each message and around each call that may change them, and restored on
//! demand. The snapshots themselves are in `tiller-snapshot`; this folder says when they are made and what they mean.
//!
//! | file | job |
//! | --- | --- |
//! | `keeper` | the thread that owns the snapshots of this workspace |
//! | `record` | points and steps of a session, recorded as they arrive |
//! | `others` | changes by others in between |
//! | `witnessed` | changes by others while a command ran |
//! | `back` | what a restore to an entry means: the state there, and the session's own steps since |
//! | `cut` | calls that the death of a process interrupted |
//! | `crew` | changes by agents of the session in its folder |
//! | `hunks` | applying some hunks of a difference |
//! | `did` | the states before and after an entry |
//! | `by_tool` | naming and restoring states by a tool, in the middle of a turn |
//! | `turn` | what a turn changed: its figures, its differences, its row of the log |
//! | `restore` | the commands: preview, restore, undo, checkpoint |

mod crew;
pub mod cut;
pub(crate) mod did;
pub(crate) mod doings;
pub(crate) mod handle;
pub mod keeper;
pub(crate) mod msg;
mod others;
pub(crate) mod outside;
pub(crate) mod part;
pub(crate) mod record;
pub mod restore;
pub(crate) mod session_diff;
pub(crate) mod turn;
mod witnessed;
pub(crate) mod written;

pub use keeper::{Keeper, SnapshotOptions};
pub(crate) use msg::{NotKept, PendingStep, RestoreKind, RestoreOutcome, TakeOutcome};
pub(crate) use others::{LastState, SessionFiles};
pub(crate) use restore::{off, off_thread, unknown};

#[cfg(test)]
mod swap_tests;
