//! The workbench as two processes, so that a terminal can be detached from it and attached again, as with tmux. The
//! **host** owns engine, store and screen, in a session of its own; it draws directly on the terminal's descriptors.
//! The **client** is the shell's job: it stays at the terminal, forwards the shell's signals, stops, and runs programs
//! in the foreground. At the start the client is the parent of the host; later clients connect through a Unix socket
//! and send their descriptors.
//!
//! | room | job |
//! | --- | --- |
//! | `fork` | splitting the process in two |
//! | `client` | the process at the terminal |
//! | `terminal_owner` | the host's side of the connection to one client |
//! | `host` | the attached terminal; the socket, and the replies to requests |
//! | `connection` | requests of other processes: list, attach, watch, detach, stop |
//! | `crash_report` | the report about a crashed host |
//! | `folder` | the folder with the sockets, and its owner |
//! | `messages`, `codec` | the messages, and their encoding |
//!
//! May use: `protocol`, `text`, `tui`. Not here: the screen (`tui`), the engine, and the output of each command
//! (`commands/detach.rs`).

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
pub(crate) use host::DetachHost;
