//! Commands: the persistent shell of each agent, and processes that run beside the conversation.
//!
//! | file | its job |
//! | --- | --- |
//! | `terminal` | the tool that runs a command; `outcome` words its result |
//! | `process` | the tool that looks after background processes (`job`) |
//! | `pool` | all of a session: one shell per agent, the list of jobs, the common end |
//! | `backend` | the traits behind which docker and ssh will come |
//! | `local`, `boot.sh`, `loop.sh`, `report` | the shell of this machine and its loop |
//! | `background`, `pty`, `screen` | starting jobs; terminals and their emulation |
//! | `capture`, `leftover`, `progress` | output in bounded memory, after the end, and live |
//! | `launch`, `quiet`, `fresh` | a session of its own; an environment in which nothing asks; a new one |
//! | `steering` | which programs run differently because of what a shell exports |
//! | `bounds` | how many processes and how much memory a command may take |
//! | `hosted` | programs of other vendors, with or without a terminal |
//! | `procs`, `end`, `guardian` | who is ours; TERM, grace, KILL; our own sudden death |
//!
//! Every agent has a shell of its own, so that agents do not wait for each other and cannot change each
//! other's folder; calls of one agent come one after the other.

pub mod backend;
mod background;
mod bounds;
mod capture;
mod end;
mod fresh;
mod guardian;
mod hints;
mod hosted;
mod job;
mod launch;
mod leftover;
mod local;
mod outcome;
mod own_folder;
mod pool;
mod process;
mod procs;
mod progress;
mod pty;
mod quiet;
mod report;
mod screen;
mod steering;
mod terminal;

pub use bounds::{Bounds, share_of_memory};
pub use hosted::{Host, Hosted, HostedTerminal, Resizer, find_program};
pub use launch::{Exit, Launch, NoSandbox, Sandbox};
pub use leftover::Leftover;
pub use local::Local;
pub use pool::ShellPool;
pub use process::Process;
pub use terminal::{Terminal, run_line};

#[cfg(test)]
mod tests;
