//! The engine: it knows nothing of the screen. Commands go in, events come out, over the bus.
//!
//! | module | job |
//! | --- | --- |
//! | [`bus`] | commands in, events out, one mailbox for each reader |
//! | [`mod@engine`], `world`, `quit` | starting, what is given from outside, ending |
//! | `core` | the one task that owns all state |
//! | `msg`, `busy` | what its tasks report; what is done between turns |
//! | `dispatch`, `queries`, `tree`, `export`, `finder`, `view` | commands, questions, whole states |
//! | [`turn`] | one turn as a pure machine, and its driver |
//! | `queue`, `compose`, `begin` | messages on their way to a turn |
//! | `calls`, `job`, `ports`, `judge` | tool calls |
//! | `asks`, `asking`, `answers` | questions to the person |
//! | [`context`], `shorten`, `compaction`, `titles` | what models see |
//! | `clean` | secrets out of everything that is stored or shown |
//! | `goal` | turns that follow each other until a check holds |
//! | `planning` | the way into the profile in which only a plan is made, and out of it |
//! | [`keys`], [`settings`] | keys that the person enters, and settings that change while it runs |
//! | `session`, `saves`, `saving` | the open session, and the way to the disk |
//! | [`trust`] | the question whether what the folder brings may be loaded |
//! | [`todo`], [`news`], [`budget`], `money`, [`review`], `before`, [`watching`], `shell_line` | the live concerns |
//!
//! # Rules
//! 1. A turn decides, the driver acts: nothing in `turn/{state,step,effect,reply}` waits or reads a clock.
//! 2. What is shown as sent or done is on disk: its event is published by the answer to its write.
//! 3. The engine's task never waits for a model, a tool or a disk.
//! 4. Between two compactions each request is the one before it with more at its end.

mod answers;
mod aside;
mod asking;
mod asks;
mod before;
mod begin;
pub mod budget;
pub mod bus;
mod busy;
mod calls;
mod clean;
mod comments;
mod compaction;
pub mod compare;
mod compose;
pub mod context;
mod core;
pub mod crew;
mod dispatch;
mod effort;
pub mod engine;
mod export;
pub mod files;
mod finder;
mod goal;
mod job;
mod judge;
pub mod keys;
mod money;
mod msg;
mod named;
mod nearest;
pub mod news;
mod notices;
mod planning;
mod ports;
mod queries;
mod queue;
mod quit;
pub mod review;
mod saves;
mod saving;
mod session;
pub mod settings;
mod shell_line;
mod shorten;
mod side_call;
mod specs;
mod symbols;
mod titles;
pub mod todo;
mod tree;
pub mod trust;
pub mod turn;
pub mod undo;
mod undoing;
mod view;
pub mod watching;
mod windows;
mod world;

#[cfg(test)]
mod stories;

pub use bus::{ClientId, EngineHandle, EventStream, SendError};
pub use clean::entry as masked_entry;
pub use engine::{Engine, StartError};
pub use export::Exporter;
pub use judge::{AlwaysWriter, FreshRules, Permit, RulesReader};
pub use keys::Keys;
pub use settings::{Fresh, Settings};
pub use trust::{Agreed, TrustOffer};
pub use watching::{Changed, Outside, Seen, Sink, Watcher};
pub use world::{Find, Folders, Growing, Human, Lacks, Listed, Open, Parts, Redact, Workflows};
