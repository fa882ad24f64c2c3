//! Agent programs of other vendors, over three transports, as one stream of events.
//!
//! [`start`] runs one program for one [`Job`] and gives a [`Control`] (what the person and the engine do to it)
//! and a receiver of [`AgentEvent`] (what it does). The last event is always one [`AgentEvent::Ended`].
//!
//! | file | its job |
//! | --- | --- |
//! | `job`, `event`, `control` | the surface: what is asked, the events, what can be done meanwhile |
//! | `adapter` | what is particular to one program, as data (`assets/adapters`) |
//! | `check` | preflight: there, new enough, logged in? |
//! | `environment` | what the program sees: of keys only its own vendor's |
//! | `run`, `out`, `orders` | starting, the one ending, the sending side; commands to the driver |
//! | `pipes` | its streams: lines of bounded length |
//! | `headless` | one process a turn, its records |
//! | `acp` | Agent Client Protocol; `choice`: which option an answer means |
//! | `pty` | in a terminal of ours: emulated, typed into by paste, its dialogs recognised |
//! | `tools` | the tool calls of all vendors in one form |
//! | `repeated_output` | output that is reported repeatedly, passed on as what is new |
//!
//! It may use `protocol`, `tool` (processes, terminals) and `rpc`. What is not here: permission (the engine answers each
//! question), the files of the workspace (the engine passes [`Files`]), and drawing.

mod acp;
pub mod adapter;
mod check;
mod choice;
mod control;
mod environment;
mod event;
#[cfg(test)]
mod fake;
mod headless;
mod job;
mod orders;
mod out;
mod pipes;
mod pty;
mod repeated_output;
mod run;
mod tools;

pub use adapter::{Adapter, Adapters};
pub use check::{Checker, Ready};
pub use control::{Control, Receipt, ScreenReader};
pub use event::{
    ActivityClaim, AgentEvent, Answer, Ask, Choice, ChoiceKind, Ending, FileDiff, Question, Status, ToolUse,
};
pub use job::{FileError, Files, Job, Limits, Lookup, Resume, StartError};
pub use run::start;
pub use tiller_protocol::{Activity, ActivitySource, Transport};

#[cfg(any(test, feature = "testing"))]
pub mod testing;
