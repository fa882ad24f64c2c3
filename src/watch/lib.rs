//! Files and git: what changed in the workspace, and the author of each change.
//!
//! May use: `protocol`, `permit` (what git would run), and the shell of `tool`. Not here: decisions (the engine passes
//! the reports to the screen and the agents), agent programs of other vendors (`external`), and states of files
//! (`snapshot`).

pub mod folder;
pub mod git;
pub mod workspace;

pub use git::around::GitSurroundings;
pub use git::steering::steering;
pub use workspace::{Config, OutsideChange, Report, Watcher};

#[cfg(test)]
mod hostile;
