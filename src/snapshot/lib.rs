//! Snapshots: states of the workspace's files, kept in a store outside of it, and restored without losing any data.
//!
//! # Rules
//! - **The workspace's own `.git` is never opened for writing**, and no git runs: the store is a bare repository of its
//!   own in git's format (SHA-256). `git --git-dir=STORE/repo ls-tree -r SNAPSHOT` reads it.
//! - **A snapshot lists what it does not cover** ([`Snapshot::uncovered`], [`Snapshot::notice`]), and keeps stamps of
//!   these files, so that each change of them is named ([`Shadow::unkept`], [`SkipReason::Changed`]). Small files that git
//!   ignores are covered like others; build output (folders such as `target`, and folders of many files) is neither covered
//!   nor watched, unless an agent edited a file there by name ([`Shadow::snapshot_touched`]).
//! - **A restore first saves what it replaces**, and only replaces saved bytes: each file is swapped out, compared, and
//!   swapped back when it was changed in the meantime.
//! - **A change that the session did not make is a conflict** ([`Conflict`]) and stays, unless the answer says
//!   otherwise.
//! - **A kill at any moment** leaves each file old or new; the next [`Shadow::open`] finishes or rolls back.
//! - Links are never followed, folders with content are never deleted, repositories are left intact.
//! - One process changes a store at a time, by a lock that is released when the process ends; readers need none.
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
//! | `shadow`, `open` | the snapshots of one workspace: taking them, the state between two of them; opening |
//! | `scan` | reading the workspace: stamps, descriptors, ignore rules, what git tracks, attributes |
//! | `objects` | git's format, the store's folder and locks, flushing, age, quota, damage |
//! | `pack` | packs: reading, writing, deltas, joining in the background |
//! | `view` | what a snapshot knows of a path, comparisons, diffs and merges |
//! | `restore` | plans, the journal, replacing files, recovery; changes of interrupted calls |
//! | `calls` | records of the calls that are changing files |
//! | `report`, `names`, `error` | results for callers, file names as bytes, errors |
//! | `steps` | a hook before each change, for tests |
//!
//! May use: `protocol`, `fs`. Not here: when a snapshot is taken (`engine`), and the author of a change (`watch`).

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
pub use objects::collect::{CollectReport, VerifyReport};
pub use objects::id::{BadId, Id};
pub use objects::object::{Entry, Kind};
pub use objects::settle::PendingFlush;
pub use pack::join::{JoinReport, join_store};
pub use report::{CostReason, Limits, Mode, NAMED_BYTES, Reason, Snapshot, Uncovered};
pub use restore::goal::{Goal, RecoveryReport, SkipReason, SkippedPath, Step};
pub use restore::kept::{CopiesApart, kept_folder};
pub use restore::plan::{Conflict, Item, Plan};
pub use restore::{Answer, RestoreResult};
pub use shadow::Shadow;
pub use view::State;
pub use view::compare::{Change, FileDiff, UnkeptChange};
pub use view::text::{MergeResult, TextChange, merge};
