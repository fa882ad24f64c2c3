//! Escapes from the sandbox and everyday jobs inside it.
//!
//! An [`Escape`] is data (`escapes/*.toml`): a script, and the *witness* outside of the sandbox that decides whether it got
//! out: a fingerprint of folders, a listening server, a process, the kernel's own tables. Exit codes decide nothing. Each
//! escape runs first without any sandbox; an escape that does not work then proves nothing and is reported as such.
//!
//! A [`Job`] is what people do every day (`jobs/*.toml`): it must end well without leaving the sandbox.
//!
//! Every run gets a [`Scene`] of its own (workspace, home folder, servers, victim), which is gone afterwards; processes that
//! remain are ended. Nothing outside of the scene is changed, apart from what the witnesses `system` and `domain` name, and
//! that is put back.
//!
//! | module | holds |
//! | --- | --- |
//! | `escape`, `job` | the data |
//! | `scene`, `servers`, `victim` | the surroundings of one run |
//! | `witness`, `fingerprint`, `processes` | what is observed |
//! | `sandbox` | how each sandbox starts a command: Tiller's, and those of other programs by their path |
//! | `run`, `report` | a run, and the table of all of them |
//! | `session` | a scene that lasts for a whole session of a hostile model |
//!
//! It uses no crate of this project, since Tiller is only one of the sandboxes that it compares.

#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    reason = "it observes processes of others, which tell nothing: it looks again after a short time"
)]

mod escape;
mod fingerprint;
mod job;
mod processes;
mod report;
mod run;
mod sandbox;
mod scene;
mod servers;
mod session;
mod victim;
mod witness;

pub use escape::{Escape, escapes};
pub use job::{Job, jobs};
pub use report::{Report, compare_escapes, compare_jobs};
pub use run::{Outcome, attempt, work};
pub use sandbox::Sandbox;
pub use scene::Scene;
pub use session::{Attempt, HostileSession};
