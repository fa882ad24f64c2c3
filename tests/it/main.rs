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
mod agents_trust;
mod branches;
mod bytes;
mod cli;
mod common;
mod completing;
mod copying;
mod crash;
mod disks;
mod effort;
mod ends;
mod exec;
mod exports;
mod external;
mod first;
mod flows;
mod footer;
mod goal;
mod going_back;
mod hardening;
mod help;
mod keys;
mod lagging;
mod leaving;
mod local_time;
mod long;
mod looks;
mod losses;
mod odd_replies;
mod own_lines;
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
mod session;
mod story;
mod terminal;
mod tour;
mod tree;
mod two;
mod workflow;
