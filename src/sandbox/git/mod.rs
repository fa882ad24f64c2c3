//! Repositories that a command makes or changes below the workspace: what makes git run programs there.
//!
//! | module | holds |
//! | --- | --- |
//! | `tree` | the folders of a workspace, and which of them git takes for repositories |
//! | `items` | what of a repository decides which programs git runs |
//! | `names` | protected names before and after a command that no supervisor watches |
//! | `touched` | what a program that stays has made or written |
//! | `guard` | these before and after a command: what runs code is taken away |
//!
//! The names of a repository say nothing: any folder with `HEAD`, `objects` and `refs` is one, and a file `.git` leads to any
//! folder. So after a command the folders of the workspace that were changed are looked at, and what git obeys in the
//! repositories among them, and what their settings name, is judged as the workspace's own `.git/config` is: settings that
//! run no program, samples of hooks, and pointers to places in the workspace stay. Everything else is kept in the quarantine,
//! and told.

mod guard;
mod items;
mod names;
mod touched;
mod tree;

pub(crate) use guard::Repositories;
pub(crate) use touched::Touched;

#[cfg(test)]
mod layout_tests;
#[cfg(test)]
mod rows_tests;
#[cfg(test)]
mod tests;
