//! What happens while a turn runs: tool calls, questions, changed files, tasks, goals; and what confines its commands.

pub mod access;
pub mod ask;
pub mod catalog;
pub mod feed;
pub mod goal;
pub mod hook;
pub mod mcp;
pub mod permission;
pub mod process;
pub mod review;
pub mod sandbox;
pub mod todo;
pub mod tool;
