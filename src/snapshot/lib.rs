//! Snapshots: states of the workspace's files, kept in a store outside of it, and restored without losing
//! a byte of anybody's work.
//!
//! # Rules
//! - **The workspace's own `.git` is never opened for writing**, and no git runs: the store is a bare repository
//!   of its own in git's format (SHA-256), written here. `git --git-dir=STORE/repo ls-tree -r SNAPSHOT` reads it.
//! - **A snapshot says what it does not cover** ([`Snapshot::uncovered`], [`Snapshot::notice`]). What git would
//!   ignore is not covered, unless an agent edited it by name ([`Shadow::snapshot_touched`]).
//! - **A restore first keeps what it replaces**, and only replaces bytes that were kept: each file is swapped out,
//!   looked at, and swapped back when somebody changed it meanwhile.
//! - **What somebody else changed is a conflict** ([`Conflict`]) and stays, unless the answer says otherwise.
//! - **A kill at any moment** leaves each file old or new; the next [`Shadow::open`] finishes or takes back.
//! - Links are never followed, folders that hold anything are never deleted, repositories are left whole.
//! - One process changes a store at a time, by a lock that its death frees; readers need none.
//!
//! # How it is used
//! ```text
//! let mut shadow = Shadow::open(workspace, store, Limits { home, ..Limits::default() }, clock)?;
//! if let Some(r) = shadow.recovered() { tell(r.sentence()) }
//! let c0 = shadow.snapshot()?;                             // a user message: an automatic checkpoint
//! shadow.snapshot_touched(&["a.rs"])?;                     // before a named edit
//! let after = shadow.snapshot_touched(&["a.rs"])?;         // after it (a shell command: snapshot() on both sides)
//! let plan = shadow.plan(&Goal::back(c0.id, vec![Step { before: c0.id, after: after.id }]))?;
//! let done = shadow.restore(&plan, &BTreeMap::new())?;     // conflicts are kept unless answered
//! let undo = shadow.plan(&done.undo())?;
//! ```
//!
//! # Map
//! | folder or file | holds |
//! | --- | --- |
//! | `shadow`, `open` | the snapshots of one workspace: taking, what is remembered; opening |
//! | `scan` | looking at the folder: stamps, descriptors, ignore rules, what git tracks, attributes |
//! | `objects` | git's format, the store's folder and locks, flushing, age, quota, damage |
//! | `pack` | packs: reading, writing, deltas, joining them in the background |
//! | `view` | what a snapshot knows, what differs, lines and merges |
//! | `restore` | plans, the journal, replacing files, recovery; what interrupted calls did |
//! | `calls` | records of the calls that are changing files |
//! | `report`, `names`, `error` | what callers receive, names of files as bytes, failures |
//! | `steps` | the gate before each change, for tests |
//!
//! What is not here: when a state is taken and whose change it was (`engine`, `watch`).

mod calls;
mod error;
mod names;
mod objects;
mod open;
mod pack;
mod report;
mod restore;
mod scan;
mod shadow;
mod steps;
mod view;

#[cfg(test)]
mod room_tests;

pub use calls::{CallNote, CutCall, OpenCall};
pub use error::{Result, SnapshotError};
pub use names::STAGING_PREFIX;
pub use objects::collect::{Collected, Verified};
pub use objects::id::{BadId, Id};
pub use objects::object::{Entry, Kind};
pub use objects::settle::Unsettled;
pub use pack::join::{Joined, join_store};
pub use report::{Dear, Limits, Mode, NAMED_BYTES, Reason, Snapshot, Uncovered};
pub use restore::goal::{Goal, Left, Recovered, Step, Why};
pub use restore::plan::{Conflict, Item, Plan};
pub use restore::{Answer, Restored};
pub use shadow::Shadow;
pub use view::State;
pub use view::compare::{Change, FileDiff};
pub use view::text::{Merged, TextChange, merge};
