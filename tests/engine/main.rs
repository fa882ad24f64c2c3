//! Whole turns of the engine: a scripted model, the real store, the real tools, in a scratch folder.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests fail loudly, and print the figures that they measure"
)]

mod aside;
mod books;
mod branches;
mod compare;
mod context;
mod crew;
mod crew_asks;
mod crew_disk;
mod crew_figures;
mod crew_files;
mod crew_goals;
mod crew_money;
mod crew_outside;
mod crew_outside_asks;
mod crew_pane;
mod crew_person;
mod crew_races;
mod crew_skills;
mod crew_trials;
mod effort;
mod fake;
mod faults;
mod files;
mod files_unkept;
mod goals;
mod masks;
mod money;
mod more;
mod people;
mod planning;
mod review;
mod rig;
mod secrets;
mod sessions;
mod settings;
mod stops;
mod tools;
mod trash;
mod tree;
mod trust;
mod turns;
mod undo;
mod waiting;
mod watch;
mod workflows;
