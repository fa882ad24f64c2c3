//! What goes over the bus: commands, events, and the states that a client rebuilds itself from.

pub mod command;
pub mod event;
pub mod queue;
pub mod view;
