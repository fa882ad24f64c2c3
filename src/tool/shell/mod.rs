//! Commands: the persistent shell of each agent, and processes that run beside the conversation.
//!
//! | file | its job |
//! | --- | --- |
//! | `terminal` | the tool that runs a command; `outcome` words its result |
//! | `process` | the tool that looks after background processes |
//! | `pool/` | all of a session: one shell per agent, the list of jobs, the common end |
//! | `backend` | the traits of a shell |
//! | `elsewhere` | the traits of terminals elsewhere |
//! | `confined/` | what a sandbox refuses to commands, whether that is why they fail, what they may remove |
//! | `hosted` | programs of other vendors, with or without a terminal |
//! | `beside` | commands that run in another profile of the sandbox than the agent's shell, in a shell of their own |
//! | `protected` | protected files, compared after each command and put back |
//! | `hints` | what else may explain a failure |
//! | `local/` | the shell of this machine and its loop; its environment, and what it exports |
//! | `jobs/` | background processes: starting them, their terminals |
//! | `output/` | output in bounded memory, live, after the end, and on an emulated screen |
//! | `processes/` | starting, finding, bounding and ending processes; the guard against the sudden death of this one |
//!
//! Every agent has a shell of its own, so that agents do not wait for each other and cannot change each
//! other's folder; calls of one agent come one after the other.

pub mod backend;
mod beside;
pub(crate) mod confined;
pub mod elsewhere;
mod hints;
mod hosted;
mod jobs;
mod local;
mod outcome;
pub(crate) mod output;
mod pool;
mod process;
pub(crate) mod processes;
mod protected;
mod terminal;

pub use backend::{CommandEnd, CommandResult, Line, Shell, ShellError, Sink, Start};
pub use confined::blocked::{BlockedAction, BlockedKind, BlockedLog, Refusals, blocked_words};
pub use confined::held::{HeldAnswer, HeldDecision, HeldFile, HeldKind, HeldRelease, HeldState, HeldWrite};
pub use confined::watch::{CommandMark, CommandWatch, DELETIONS, Deletion, DeletionAnswer, DeletionGuard};
pub use confined::witness::{FileMark, Left, PathBefore, Whose, Witness};
pub use elsewhere::{Elsewhere, ProcessThere, Terminals};
pub use hosted::{Host, HostedProgram, HostedTerminal, Resizer, find_program};
pub(crate) use local::SeenTmp;
pub use local::{Local, SessionTmp, ShownInTmp, TmpFolder, own_folder};
pub use output::leftover::Leftover;
pub use pool::ShellPool;
pub use process::Process;
pub use processes::bounds::{Bounds, share_of_memory};
pub use processes::end::end_children;
pub use processes::forks::ForkLimit;
pub use processes::launch::{
    Compared, Confiner, Confiners, Exit, FileGuard, Launch, NoSandbox, Sandbox, retry_while_busy,
};
pub use processes::mark::apart;
pub(crate) use protected::put_back;
pub use terminal::{Terminal, run_line};

#[cfg(test)]
mod tests;
