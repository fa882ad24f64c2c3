//! The engine: commands go in and events come out over the bus. It knows nothing of the screen.
//!
//! | module | job |
//! | --- | --- |
//! | [`bus`] | commands in, events out, one mailbox for each reader; queries and whole states |
//! | [`core`] | the loop that owns all state: configuration and services, starting, ending, the queue of writes |
//! | `session` | the open session: its settings, branches, and the path from the root to its head |
//! | [`turn`] | one turn: a pure machine, and the driver that carries out its effects |
//! | [`context`] | what models see: the frozen prefix, the path as a request, compaction, side calls |
//! | `prompts` | what the user types, until it is an entry; the queue, `@`, `!`, titles |
//! | [`questions`] | questions to the user, their answers, permissions, keys, trust |
//! | `decision` | the decision about a call, of Tiller's tools and of programs of others: hooks, rules, the user |
//! | `tool_call` | one tool call on a task of its own: permission, question, execution, result |
//! | [`files`], [`undo`] | states of the workspace's files; undo, redo, reviews |
//! | [`crew`] | the interface to the other agents; engines of children; external programs that do the work of an agent |
//! | [`money`] | costs of calls, spending, budgets; reservations that all engines of a session share |
//! | `memory` | where entries of memory come from, the user's changes of it, its branches |
//! | `goal`, [`compare`], [`watching`] | turns until a check succeeds, two branches compared, changes by other programs |
//!
//! # Rules
//! 1. A turn decides, the driver acts: nothing in `turn/machine` waits or reads a clock.
//! 2. What is shown as sent or done is on disk: its event is published when its write has been answered.
//! 3. The engine's task never waits for a model, a tool or a disk.
//! 4. Between two compactions each request is the one before it with more at its end.
//! 5. A concern is a folder: its state in the loop (`part`), the reports of its tasks (`msg`), their handling (`handle`), and its
//!    functions, which take the loop. Methods of the loop itself stand in `core` alone.
//! 6. No concern calls a concern that builds on it. It leaves a [`core::follow_up::FollowUp`], or an input of the turn, and the loop
//!    carries it out once the present report has been handled.
//! 7. An engine is one agent. Which others there are is known to the [`crew::Crew`] that the main agent's loop owns and calls
//!    through [`core::Core::with_crew`]; it lends itself as a [`crew::CrewHost`].
//!
//! The configuration ([`EngineConfig`]), the services that tasks share, the session and the turn in flight are grouped by
//! concern: a function takes the group that it needs.
//!
//! May use: `protocol`, `config`, `store`, `provider`, `tool`, `permit`, `hooks`, `snapshot`, `watch`, `external`, `memory`, and `text` (the
//! visible part of a reply). Not here: the screen (`tui`), the roster of agents, their schedule and workflows (`agents`), rules
//! of permissions (`permit`), what a tool does (`tool`).

pub mod bus;
pub mod compare;
pub mod context;
pub mod core;
pub mod crew;
mod decision;
pub mod files;
mod goal;
mod learning;
mod lock;
mod memory;
pub mod money;
mod prompts;
pub mod questions;
mod session;
mod tool_call;
pub mod turn;
pub mod undo;
pub mod watching;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use bus::{ClientId, EngineHandle, Envelope, EventScope, EventStream, SendError};
pub use context::clean::entry as masked_entry;
pub use core::engine::{Engine, StartError};
pub use core::services::{
    CrewConfig, EngineConfig, Environment, Exposure, FileServices, FindWorkflow, Folders, Human, Incomplete,
    ListWorkflows, MakeCrew, Open, Redact, Redaction, Roles, RunLimits, SandboxFindings, SandboxTest,
    SessionOptions, Startup, Unavailable, UserServices, Variables, Workflows,
};
pub use core::services::{
    Exporter, KeyStore, LoadedSettings, SettingsSource, StaleFile, StaleFiles, TrustCheck, TrustGrant,
    TrustLoss, TrustOffer, WatchReport, WatchSink, Watcher,
};
pub use questions::permission::{AlwaysWriter, FreshRules, Permit, RulesReader};
