//! Files and git: what changed in the workspace, and the author of each change.
//!
//! Nothing here decides: the engine takes the reports and passes them to the screen and the agents. It may use the
//! protocol, the permit room (what git would run) and the shell of the tool room. Agent programs of other vendors
//! are not here but in `external`; states of files are in `snapshot`.

pub mod folder;
pub mod git;
pub mod workspace;

pub use git::around::Around;
pub use git::steering::steering;
pub use workspace::{Config, Outside, Report, Watcher};

#[cfg(test)]
mod hostile;
