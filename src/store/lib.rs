//! The store: everything of a session that must outlive the process, in one SQLite database.
//!
//! # Rules
//! - **An acknowledgement is a promise.** A [`Ticket`] resolves only after a fully synchronised commit
//!   (`synchronous=FULL`) into the file that the path still leads to. Leases matter to living processes only, and do not
//!   wait for the disk.
//! - **One thread writes** ([`writer`](write::writer)); waiting jobs share a commit. Reads have connections of their
//!   own, and see all acknowledged writes.
//! - **Entries are only added.** A head is a named pointer; a branch costs one row.
//! - **Data that cannot be saved now is kept** and tried again; [`Store::health`] gives the reason.
//! - **Stored data is returned byte for byte**, because later requests to a model repeat it.
//! - Order comes from integer keys, never from the clock.
//!
//! # Map
//! | folder | holds |
//! | --- | --- |
//! | `open` | opening and closing: data folder, connections, schema versions, checks |
//! | `lease` | which process has a session open, by a file lock that the kernel releases |
//! | `handles` | the surface: one handle per concern, from [`Store::sessions`] to [`Store::transfer`] |
//! | `damage` | damaged databases: copying readable data, reporting losses |
//! | `write` | writing: one thread, batches, tickets, health |
//! | `tree` | entries, heads, branches, paths, and the tree for the tree browser |
//! | `session` | sessions and the tables that belong to one, a file each; the trash |
//! | `knowledge` | what is kept across sessions: memory, learnings, counts of rules and of skills |
//! | `audit` | decisions and costs |
//! | `search` | full-text search, in a second database that can be deleted |
//! | `transfer` | export and import of sessions as JSON lines |
//! | `schema` | the migrations; old ones never change |
//!
//! May use: `protocol`. Not here: files of the workspace (`snapshot`), settings (`config`), masking of secrets
//! (`permit`).

mod audit;
mod damage;
mod error;
pub mod handles;
mod knowledge;
mod lease;
mod open;
pub mod search;
mod session;
#[cfg(test)]
mod testing;
mod transfer;
mod tree;
mod write;

pub use audit::costs::{CostSum, ModelCall};
pub use damage::recover::Salvage;
pub use error::{Result, StoreError};
pub use knowledge::learnings::{IMPORT, Retirement};
pub use knowledge::memory::AddedLine;
pub use knowledge::memory_seen::{MemoryLook, MemoryRun};
pub use knowledge::memory_unfinished::{RecordStep, UnfinishedChange};
pub use knowledge::receipts::Receipt;
pub use knowledge::skill_uses::{SkillUse, SkillUseKind};
pub use lease::process::Process;
pub use lease::{AcquireMode, Lease};
pub use open::doctor::Doctor;
pub use open::{Options, Store};
pub use session::agents::{AgentRow, AgentWork};
pub use session::gc::RemovedSessions;
pub use session::made_by::MadeBy;
pub use session::running::Running;
pub use session::sessions::{Filter, NewSession, SessionRow};
pub use session::steps::{StepOf, StepRow};
pub use session::trust::TrustRow;
pub use session::workflows::{WorkflowRow, WorkflowStep};
pub use transfer::import::{ImportAs, ImportIds, Imported, Withheld};
pub use transfer::source::ImportSource;
pub use tree::append::{Append, ReportedEnds};
pub use tree::branches::BranchRow;
pub use tree::divergence::Divergence;
pub use tree::path::part::PathPart;
pub use tree::path::{ContextPath, Tail};
pub use tree::tags::TagRow;
pub use write::health::Health;
pub use write::ticket::Ticket;
pub use write::writer::OnFailure;
