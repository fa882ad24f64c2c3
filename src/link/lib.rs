//! The outside world: the file watcher and git. MCP servers and external agents come here later.
//!
//! Nothing here decides; the engine takes what is reported and tells the screen and the agents.

pub mod folder;
pub mod git;
pub mod watch;

pub use watch::{Config, Outside, Report, Watcher};
