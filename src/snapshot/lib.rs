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
//! | file | holds |
//! | --- | --- |
//! | `shadow`, `cache` | a workspace's snapshots: opening, taking, what is remembered |
//! | `index`, `tracked` | what git tracks although it ignores it |
//! | `scan`, `disk`, `rules`, `model` | looking at the folder: stamps, descriptors, ignore rules |
//! | `fill`, `fold`, `notes`, `beside` | reading what changed, writing folders, saying what is covered, attributes |
//! | `id`, `object`, `delta`, `objects`, `place` | git's format, the store's folder and locks |
//! | `pack`, `pack_write`, `pack_mend`, `handles`, `bases` | packs: reading, writing, what is kept open and in memory of them |
//! | `join`, `repack` | joining packs in the background, so that their number stays small |
//! | `view`, `compare`, `text` | what a snapshot knows, what differs, lines and merges |
//! | `plan`, `restore`, `replace`, `journal`, `recover`, `amend` | restoring |
//! | `calls` | calls that are under way, and those that a kill cut off |
//! | `settle`, `flush`, `trust` | flushing, and what to believe after a loss of power |
//! | `collect` | age, quota, damage |
//! | `steps` | the gate before each change, for tests |

mod amend;
mod bases;
mod beside;
mod cache;
mod calls;
mod collect;
mod compare;
mod delta;
mod disk;
mod error;
mod fill;
mod flush;
mod fold;
mod handles;
mod id;
mod index;
mod join;
mod journal;
mod model;
mod names;
mod notes;
mod object;
mod objects;
mod pack;
mod pack_mend;
mod pack_write;
mod place;
mod plan;
mod recover;
mod repack;
mod replace;
mod report;
mod restore;
mod rules;
mod scan;
mod settle;
mod shadow;
mod steps;
mod text;
mod tracked;
mod trust;
mod view;

#[cfg(test)]
mod room_tests;

pub use calls::{CallNote, CutCall, OpenCall};
pub use collect::{Collected, Verified};
pub use compare::{Change, FileDiff};
pub use error::{Result, SnapshotError};
pub use id::{BadId, Id};
pub use join::{Joined, join_store};
pub use names::STAGING_PREFIX;
pub use object::{Entry, Kind};
pub use plan::{Conflict, Goal, Item, Left, Plan, Step, Why};
pub use recover::Recovered;
pub use report::{Dear, Limits, Mode, NAMED_BYTES, Reason, Snapshot, Uncovered};
pub use restore::{Answer, Restored};
pub use settle::Unsettled;
pub use shadow::Shadow;
pub use text::{Merged, TextChange, merge};
pub use view::State;
