//! The workbench in two processes, so that its screen can be left and taken again, as with tmux. The **host**
//! owns engine, store and screen, in a session of its own; it draws straight on the terminal's descriptors.
//! The **client** is the shell's job: it sits at the terminal, passes the shell's signals on, stops, and runs
//! programs in the foreground. At the start the second is the parent of the first; later ones come through a
//! Unix socket and hand their descriptors over.
//!
//! | room | job |
//! | --- | --- |
//! | `twin` | one process becomes two |
//! | `client` | what sits at the terminal |
//! | `seat` | the host's side of one client |
//! | `host` | who sits there now; the socket, and what is asked through it |
//! | `last` | what is left of a host that broke |
//! | `folder` | where the sockets are, and whose they must be |
//! | `words`, `line` | what is said, and how it is sent |

mod client;
mod folder;
mod host;
mod last;
mod line;
mod seat;
mod twin;
pub(crate) mod visit;
mod words;

pub(crate) use client::Ended;
pub(crate) use folder::Folder;
pub(crate) use host::Host;
pub(crate) use twin::{Twin, part};
pub(crate) use words::About;
