//! The store: everything of a session that must outlive the process, in one SQLite database.
//!
//! # Rules
//! - **An acknowledgement is a promise.** A [`Ticket`] resolves only after a fully synchronised commit
//!   (`synchronous=FULL`) into the file that the path still leads to. Leases hold for living processes only, and
//!   do not wait for the disk.
//! - **One thread writes** ([`writer`]); jobs that wait together share a commit. Reads have connections of
//!   their own, and see what was acknowledged.
//! - **Entries are only added.** A head is a named pointer; a branch costs one row.
//! - **What cannot be saved now is kept** and tried again; [`Store::health`] says why it waits.
//! - **What was stored comes back byte for byte**, because later requests to a model repeat it.
//! - Order comes from integer keys, never from the clock.
//!
//! # Map
//! | file | holds |
//! | --- | --- |
//! | `open`, `check`, `folder`, `connect`, `migrate`, `recover`, `pages` | opening: modes, owner, versions, damage |
//! | `writer`, `attempt`, `ticket`, `health` | the way of a write |
//! | `sessions`, `family`, `entries`, `append`, `path`, `heads`, `branches`, `ops`, `todos`, `steps` | the tree |
//! | `tree`, `tree_words`, `tree_find` | the tree as a browser shows it |
//! | `audit`, `costs`, `queue`, `drafts`, `history`, `running`, `rules`, `trust`, `meta` | the rest, one file each |
//! | `lease`, `process` | who has a session open |
//! | `search`, `index` | full text, by a second database that can be thrown away |
//! | `export`, `import`, `import_rows`, `import_more`, `lines` | sessions as JSONL |
//! | `gc`, `doctor` | what the commands need |

mod agents;
mod apart;
mod append;
mod attempt;
mod audit;
mod branches;
mod check;
mod connect;
mod costs;
mod doctor;
mod drafts;
mod entries;
mod error;
mod export;
mod family;
mod folder;
mod gc;
mod heads;
mod health;
mod history;
mod hold;
mod import;
mod import_more;
mod import_rows;
mod index;
mod lease;
mod lines;
mod meta;
mod migrate;
mod open;
mod ops;
mod pages;
mod path;
mod process;
mod queue;
mod recover;
mod recover_tables;
mod report;
mod rules;
mod running;
mod search;
mod sessions;
mod steps;
mod ticket;
mod todos;
mod tree;
mod tree_find;
mod tree_words;
mod trust;
mod whose;
mod workflows;
mod writer;

#[cfg(test)]
mod child;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod kill_tests;
#[cfg(test)]
mod power_tests;
#[cfg(test)]
mod testing;

pub use agents::{AgentRow, Worked};
pub use apart::Apart;
pub use append::{Announced, Append};
pub use branches::{BranchRow, TagRow};
pub use costs::{Call, Spent};
pub use doctor::Doctor;
pub use drafts::Draft;
pub use error::{Result, StoreError};
pub use gc::Swept;
pub use health::Health;
pub use import::{Imported, Keep};
pub use lease::{Lease, Take};
pub use lines::exported;
pub use open::{Options, Store};
pub use path::{ContextPath, Tail};
pub use process::Process;
pub use recover::Salvage;
pub use running::Running;
pub use sessions::{Filter, MadeBy, NewSession, SessionRow};
pub use steps::{StepOf, StepRow};
pub use ticket::Ticket;
pub use trust::TrustRow;
pub use workflows::{WorkflowRow, WorkflowStep};
pub use writer::OnFailure;
