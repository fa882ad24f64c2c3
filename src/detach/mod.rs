//! The workbench in two processes, so that its screen can be left and taken again, as with tmux. The **host**
//! owns engine, store and screen, in a session of its own; it draws straight on the terminal's descriptors.
//! The **client** is the shell's job: it sits at the terminal, passes the shell's signals on, stops, and runs
//! programs in the foreground. At the start the second is the parent of the first; later ones come through a
//! Unix socket and hand their descriptors over.
//!
//! | room | job |
//! | --- | --- |
//! | `fork` | one process becomes two |
//! | `client` | what sits at the terminal |
//! | `terminal_owner` | the host's side of one client |
//! | `host` | who sits there now; the socket, and what is asked through it |
//! | `last` | what is left of a host that broke |
//! | `folder` | where the sockets are, and whose they must be |
//! | `messages`, `codec` | what is said, and how it is sent |

mod client;
mod codec;
pub(crate) mod connection;
mod folder;
mod fork;
mod host;
mod last;
mod messages;
mod terminal_owner;

pub(crate) use self::fork::{Fork, part};
pub(crate) use self::messages::About;
pub(crate) use client::Ended;
pub(crate) use folder::Folder;
pub(crate) use host::Host;
