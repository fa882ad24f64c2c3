//! States of the workspace's files: kept at each message and around each call that may change them, and restored on
//! demand. The snapshots themselves are in `tiller-snapshot`; this folder says when they are made and what they mean.
//!
//! | file | job |
//! | --- | --- |
//! | `keeper` | the thread that owns the snapshots of this workspace |
//! | `record` | points and steps of a session, as they come in |
//! | `others` | what somebody else changed in between |
//! | `back` | what going back means: the state at an entry, and the session's own steps since |
//! | `cut` | calls that a kill cut off |
//! | `crew` | what agents of the session did in its folder |
//! | `hunks` | some parts of a file's difference |
//! | `did` | between which states an entry stands |
//! | `by_tool` | the same, asked by the agent in the middle of a turn |
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
pub(crate) mod written;

pub use keeper::{Keeper, SnapshotOptions};
pub(crate) use msg::{NotKept, PendingStep, RestoreKind, RestoreOutcome, TakeOutcome};
pub(crate) use others::{LastState, SessionFiles};
pub(crate) use restore::{off, off_thread, unknown};
