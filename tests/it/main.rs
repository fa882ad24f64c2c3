//! The real program, driven from outside: a person at a terminal, a script around `exec`, a scripted model.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail loudly, and say what they skip"
)]

mod acp;
mod advice;
mod agents;
mod agents_bounds;
mod agents_inside;
mod agents_keys;
mod agents_killed;
mod agents_panel;
mod agents_secrets;
mod branches;
mod cli;
mod common;
mod completing;
mod copying;
mod crash;
mod disks;
mod ends;
mod exec;
mod exports;
mod external;
mod first;
mod flows;
mod footer;
mod goal;
mod going_back;
mod keys;
mod leaving;
mod local_time;
mod long;
mod pane;
mod plain;
mod plain_reach;
mod planning;
mod power;
mod published;
mod repo;
mod review;
mod screen;
mod secrets;
mod seeded;
mod session;
mod story;
mod terminal;
mod tour;
mod tree;
mod two;
mod workflow;
