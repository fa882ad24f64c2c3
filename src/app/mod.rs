//! The composition root: the only place that knows every room.
//!
//! | file | does |
//! | --- | --- |
//! | [`setup`] | what every command needs: folders, settings, environment, store |
//! | [`options`] | options that all commands share |
//! | `rules` | permission rules from files and flags |
//! | `settings` | the present settings, shared by screen and engine |
//! | `sandbox` | which commands of the session are confined |
//! | `terminals` | the terminals of the settings |
//! | `trust` | the question about what the folder brings |
//! | `watch` | the watcher for the engine |
//! | [`start`] | the engine on its own threads; what waits for the user then |
//! | `logs` | the log file |
//! | `agents` | agent programs of other vendors on this machine |
//! | `definitions` | kinds of agents, programs and workflows, from files |
//! | `extensions` | hooks of the settings and of the project |
//! | `spill` | full outputs of removed sessions |
//! | `process` | settings of this process: no core dumps, a folder for temporary files |
//! | `screen` | parts for the workbench only: the editor, the status line's command, changes of settings, keys and
//! themes |
//!
//! May use: every crate, but not `commands` and `detach` (`cargo xtask tidy` checks that). Not here: what a command
//! does with the parts.

pub(crate) mod agents;
pub(crate) mod definitions;
pub(crate) mod extensions;
pub(crate) mod files;
mod logs;
pub mod options;
pub(crate) mod process;
pub(crate) mod restricting;
pub(crate) mod rules;
pub(crate) mod sandbox;
pub(crate) mod screen;
pub(crate) mod settings;
pub mod setup;
pub(crate) mod spill;
pub mod start;
mod terminals;
pub(crate) mod tools;
mod trust;
mod watch;

pub use setup::Setup;
pub(crate) use start::child_env;
pub use start::{FolderTrust, RuleFlags, Running, Start};
