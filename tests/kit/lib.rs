//! A scripted model server for tests, and builders of the replies of model servers.
//!
//! [`ScriptServer`] listens on loopback and plays [`Reply`]s: status, headers, byte-exact pieces, pauses, cuts, sockets
//! that stay open. It stores every request for later assertions. It uses plain threads, so that tests with and without
//! an async runtime, and tests that drive the real binary in a terminal, can all use it. Dropping it ends its threads
//! and closes its sockets.
//!
//! [`Script`] is one reply of a model, independent of the wire format: thinking, text, tool calls, usage.
//! It turns into the body that a vendor would send.
//!
//! [`strict`] rejects requests that a vendor's published schema rejects.
//!
//! [`power`] simulates losses of power during the writes of a process.
//!
//! [`Term`] simulates a person at a terminal: the real program on a PTY, its screen read by an independent emulator.
//!
//! ```
//! use tiller_testkit::{Reply, Script, ScriptServer, Wire};
//! use serde_json::json;
//!
//! let server = ScriptServer::start([
//!     Reply::script(Wire::Anthropic, &Script::new().text("I look.").call("c1", "list_dir", json!({"path": "."}))),
//!     Reply::script(Wire::Anthropic, &Script::new().text("Two files.")),
//!     Reply::status(429).header("retry-after", "1").json(&json!({"error": {"message": "slow down"}})),
//! ]);
//! // Point the program at `server.url()` (for instance ANTHROPIC_BASE_URL), then:
//! let bodies = server.bodies(); // one JSON value a request, in order of arrival
//! # assert!(bodies.is_empty());
//! ```
//!
//! A request beyond the script gets status 500 with the text `script is over`, and [`ScriptServer::overrun`] counts it.
//!
//! May use: nothing of this project, since the crates are tested with it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "only tests use this crate, and failing loudly is its job"
)]

/// A scripted MCP server: a program for `python3`, whose first argument says how it behaves.
pub const MCP_SERVER: &str = include_str!("mcp_server.py");

mod anthropic;
mod cpu_time;
mod descendants;
mod dice;
mod find;
mod folder;
mod gemini;
mod git;
mod openai_chat;
mod openai_responses;
pub mod power;
mod program;
mod pty;
mod reply;
mod script;
mod secrets;
mod server;
pub mod strict;

pub use cpu_time::thread_cpu_time;
pub use descendants::{cut_connections, descendants};
pub use dice::Dice;
pub use find::holds;
pub use folder::{file_url, lasting};
pub use git::{git, plain_git};
pub use program::program;
pub use pty::Term;
pub use reply::{Framing, Hold, Reply, Step};
pub use script::{Counts, Part, Script, Stop, Wire, sse};
pub use secrets::{Seeded, seeded};
pub use server::{Recorded, ScriptServer};
