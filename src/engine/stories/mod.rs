//! Whole turns: a scripted model, the real store, the real tools, in a scratch folder.

mod aside;
mod branches;
mod compare;
mod context;
mod fake;
mod faults;
mod files;
mod goals;
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
