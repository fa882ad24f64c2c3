//! Agents, workflows, and the terminals of agent programs.

pub mod agent;
pub mod backend;
pub mod grid;
pub mod pane;
pub mod workflow;
