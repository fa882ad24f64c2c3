//! Turns: entries, cancellation, queued messages, questions, goals.

pub(crate) mod added_format;
pub(crate) mod added_tool;
pub(crate) mod auto_mode;
pub(crate) mod cancel;
pub(crate) mod context;
pub(crate) mod effort;
pub(crate) mod entries;
pub(crate) mod failing_tools;
pub(crate) mod goals;
mod judged_changes;
mod own_command_files;
pub(crate) mod own_commands;
pub(crate) mod plan_profile;
pub(crate) mod question_budget;
pub(crate) mod questions;
pub(crate) mod queue;
pub(crate) mod sandbox;
pub(crate) mod script_nodes;
pub(crate) mod scripts;
pub(crate) mod shell_lines;
pub(crate) mod side_questions;
pub(crate) mod timing;
mod waiting;
mod windows;
pub(crate) mod wire_formats;
