//! Hooks: commands of the settings that run when something happens, and what they decide.
//!
//! | file | contents |
//! | --- | --- |
//! | `list` | the hooks in force, their sources, their state in this session |
//! | `input` | the JSON that a hook reads |
//! | `command` | one run of a command: confined, bounded, without keys |
//! | `decision` | what its exit code and its output decide |
//! | `objects` | JSON objects in its output, with other text around them |
//! | `fire` | all hooks of an event, one after the other |
//! | `file` | a project's hooks, and whether their files are still those that were trusted |
//! | `claude` | hooks written for Claude Code |
//!
//! A hook denies by exit code 2, by `"decision": "deny"` in its JSON, or, when it is blocking, by failing or by taking
//! too long. A call asks where a hook that is not blocking did not get to decide; after another exit code the failure is
//! reported once.
//!
//! It may use `protocol`, `config`, `tool` and `permit`. What is not here: when an event happens and what follows from a
//! decision (`engine`), and which hooks there are (`app`).

pub mod claude;
pub mod command;
mod decision;
pub mod file;
mod fire;
mod input;
mod list;
mod objects;

pub use command::{HOOK_INPUT, HOOK_OUTPUT};
pub use fire::{Denial, HookAnswer};
pub use input::HookScene;
pub use list::{ChangedFile, CheckHook, Hook, HookFault, HookSource, Hooks, HooksConfig};
