//! What goes over the bus: commands, events, and whole states for clients that connect or lag.

pub mod command;
pub mod event;
pub mod queue;
pub mod view;
