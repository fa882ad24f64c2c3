//! The real program, driven from outside: a person at a terminal, a script around `exec`, a scripted model.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail loudly, and say what they skip"
)]

mod acp;
mod agents;
mod commands;
mod common;
mod extensions;
mod external;
mod faults;
mod sandbox;
mod scenario;
mod screen;
mod sessions;
mod terminal;
