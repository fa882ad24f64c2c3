//! The engine: commands go in and events come out over the bus. It knows nothing of the screen.
//!
//! | module | job |
//! | --- | --- |
//! | [`bus`] | commands in, events out, one mailbox for each reader; queries and whole states |
//! | [`core`] | the one task that owns all state: starting, ending, what is given from outside, the way to the disk |
//! | [`session`] | the open session: its settings, and the path from the root to its head |
//! | [`turn`] | one turn as a pure machine, and its driver |
//! | [`context`] | what models see: the frozen prefix, the path as a request, compaction, side calls |
//! | [`prompts`] | what the user types, until it is an entry |
//! | [`questions`] | questions to the user, their answers, permissions, keys, trust |
//! | `job` | one tool call on its own task: judged, asked about, run |
//! | `files`, [`undo`] | states of the workspace's files; undo, redo, reviews |
//! | [`crew`] | the agents of a session, ours and other vendors' |
//! | [`money`] | prices, books, budgets |
//! | `goal`, `compare`, [`watching`] | turns that follow each other, branches side by side, changes of others |
//!
//! # Rules
//! 1. A turn decides, the driver acts: nothing in `turn/{state,step,effect,reply}` waits or reads a clock.
//! 2. What is shown as sent or done is on disk: its event is published by the answer to its write.
//! 3. The engine's task never waits for a model, a tool or a disk.
//! 4. Between two compactions each request is the one before it with more at its end.
//! 5. A concern is a folder: its state in the loop (`part`), its reports (`msg`), what is done with them (`handle`), and its
//!    functions, which take the loop. Methods of the loop itself stand in `core` alone.
//! 6. No concern calls one that builds on it. It leaves a [`core::follow_up::FollowUp`], or an input of the turn, and the loop
//!    carries it out once the present report has been handled.
//!
//! Not here: the screen, the schedule of delegated tasks (`tiller-agents`), permissions' rules (`tiller-permit`), what a tool
//! does (`tiller-tool`).

pub mod bus;
pub mod compare;
pub mod context;
pub mod core;
pub mod crew;
pub mod files;
mod goal;
mod job;
mod lock;
pub mod money;
mod prompts;
pub mod questions;
mod session;
pub mod turn;
pub mod undo;
pub mod watching;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use bus::{ClientId, EngineHandle, EventStream, SendError};
pub use context::clean::entry as masked_entry;
pub use core::engine::{Engine, StartError};
pub use core::given::{
    Agreed, Changed, Exporter, Fresh, Keys, Outside, Seen, Settings, Sink, TrustOffer, Watcher,
};
pub use core::services::{
    CrewConfig, EngineConfig, Environment, FileServices, FindWorkflow, Folders, Human, Incomplete,
    ListWorkflows, Open, Redact, Redaction, Roles, RunLimits, SessionOptions, Startup, Unavailable,
    UserServices, Workflows,
};
pub use questions::permission::{AlwaysWriter, FreshRules, Permit, RulesReader};
