//! Agent programs of other vendors, over three transports, as one stream of events.
//!
//! [`start`] runs one program for one [`Job`] and returns a [`Control`] (used by the person and the engine) and a
//! receiver of [`AgentEvent`]s. The last event is always exactly one [`AgentEvent::Ended`].
//!
//! | file | its job |
//! | --- | --- |
//! | `job`, `event`, `control` | the interface: jobs, events, controlling a run |
//! | `adapter` | the properties of one program, as data (`assets/adapters`) |
//! | `check` | whether a program is installed, new enough and logged in |
//! | `environment` | the program's environment, with keys of its own vendor only |
//! | `run`, `out`, `commands` | starting and ending a run; events to the engine; commands to the driver |
//! | `pipes` | its streams: lines of bounded length |
//! | `headless` | one process for each turn, and its records |
//! | `acp` | Agent Client Protocol; `choice`: the option that an answer means |
//! | `pty` | in one of Tiller's terminals: emulation, typing by paste, recognition of dialogs |
//! | `tools` | the tool calls of all vendors in one form |
//! | `repeated_output` | output that is reported repeatedly: passes on the new part |
//!
//! May use: `protocol`, `tool` (processes, terminals), `rpc`. Not here: permission (the engine answers each question),
//! the files of the workspace (the engine passes [`Files`]), and drawing.

mod acp;
pub mod adapter;
mod check;
mod choice;
mod commands;
mod control;
mod environment;
mod event;
#[cfg(test)]
mod fake;
mod headless;
mod job;
mod out;
mod pipes;
mod pty;
mod repeated_output;
mod run;
mod tools;

pub use adapter::{Adapter, Adapters};
pub use check::{Checker, Ready};
pub use control::{Control, Receipt, ScreenReader};
pub use environment::OwnPaths;
pub use event::{
    ActivityClaim, AgentEvent, Answer, Ask, Choice, ChoiceKind, Ending, FileDiff, Question, Status, ToolUse,
};
pub use job::{FileError, Files, Job, Limits, Lookup, Resume, StartError};
pub use run::start;
pub use tiller_protocol::{Activity, ActivitySource, Transport};

#[cfg(any(test, feature = "testing"))]
pub mod testing;
