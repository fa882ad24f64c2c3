//! The workbench in two processes, so that a terminal can be detached from it and attached again, as with tmux. The **host**
//! owns engine, store and screen, in a session of its own; it draws straight on the terminal's descriptors.
//! The **client** is the shell's job: it stays at the terminal, passes the shell's signals on, stops, and runs
//! programs in the foreground. At the start the second is the parent of the first; later ones come through a
//! Unix socket and hand their descriptors over.
//!
//! | room | job |
//! | --- | --- |
//! | `fork` | one process becomes two |
//! | `client` | the process at the terminal |
//! | `terminal_owner` | the host's side of one client |
//! | `host` | the attached terminal; the socket, and the replies to requests |
//! | `connection` | requests of other processes: list, attach, watch, detach, stop |
//! | `crash_report` | the report about a host that crashed |
//! | `folder` | where the sockets are, and whose they must be |
//! | `messages`, `codec` | what is sent, and how |
//!
//! What is not here: the screen (`tui`), the engine, and what each command prints (`commands/detach.rs`).

mod client;
mod codec;
pub(crate) mod connection;
mod crash_report;
mod folder;
mod fork;
mod host;
mod messages;
mod terminal_owner;

pub(crate) use self::fork::{Fork, split};
pub(crate) use self::messages::About;
pub(crate) use client::ClientExit;
pub(crate) use folder::Folder;
pub(crate) use host::Host;
