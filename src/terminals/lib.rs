//! Terminals elsewhere: where the commands of an agent run when that is not this machine, and how its files get there.
//!
//! | module | holds |
//! | --- | --- |
//! | [`Session`] | the terminals of the settings, for one run of Tiller |
//! | `kinds` | one file for each kind of terminal: which program is started to get there, and what its errors mean |
//! | `place` | one terminal for the agents of one folder |
//! | `link` | one connection: requests to the helper at the other side, frames that come back |
//! | `shell`, `process` | the persistent shell there, and commands in the background; both outlive a connection |
//! | `files` | which files have changed here and there, and bringing them |
//! | `owner` | containers that a killed Tiller has left |
//! | `there/` | the shell programs that run at the other side |
//!
//! The person's own `ssh`, `docker`, `podman` and `kubectl` are started; nothing of them is implemented here. At the other
//! side only a POSIX shell and the base tools are needed. Nothing of the environment here gets there.
//!
//! It may use `protocol`, `config` (the settings of a terminal) and `tool` (the traits that it implements). What is not
//! here: which agent has which terminal (`agents`, `engine`), whether a call may run (`permit`).

mod files;
mod kinds;
mod link;
mod owner;
mod place;
mod process;
mod session;
mod shell;

pub use session::Session;

use tiller_tool::shell::ShellError;

/// What failed at a terminal, and what to do.
fn failed(title: &str, why: impl std::fmt::Display) -> ShellError {
    ShellError::Elsewhere(format!("{title}: {why}"))
}

/// Quotes one word for a POSIX shell.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
