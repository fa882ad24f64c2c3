//! The outside world: the file watcher, git, and agent programs of other vendors. MCP servers come here later.
//!
//! Nothing here decides; the engine takes what is reported and tells the screen and the agents.

pub mod external;
pub mod folder;
pub mod git;
mod git_around;
mod git_command;
pub mod watch;
pub mod worktree;

pub use git_around::Around;
pub use watch::{Config, Outside, Report, Watcher};

#[cfg(test)]
mod hostile;
