//! Whole turns of the engine: a scripted model, the real store, the real tools, in a scratch folder.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests fail loudly, and print the figures that they measure"
)]

mod accounting;
mod agents;
mod budgets;
mod faults;
mod files;
mod hooks;
mod learning;
mod media;
mod memory;
mod memory_origins;
mod memory_programs;
mod rig;
mod scripted_model;
mod secrets;
mod sessions;
mod settings;
mod skills;
mod trust;
mod turns;
