//! What makes git run programs: in the repository of a workspace, and in those that a command makes or changes below it.
//!
//! | module | holds |
//! | --- | --- |
//! | `files` | what the configuration of the workspace's own repository names |
//! | `tree` | the folders of a workspace, and which of them git takes for repositories |
//! | `items` | what of a repository decides which programs git runs |
//! | `guard` | these before and after a command: what runs code is taken away |
//!
//! The names of a repository say nothing: any folder with `HEAD`, `objects` and `refs` is one, and a file `.git` leads to any
//! folder. So after a command the folders of the workspace that were changed are looked at, and what git obeys in the
//! repositories among them is judged as the workspace's own `.git/config` is: settings that run no program, samples of
//! hooks, and pointers to places in the workspace stay. Everything else is kept in the quarantine, and told.

mod files;
mod guard;
mod items;
mod tree;

pub(crate) use files::protected;
pub(crate) use guard::Repositories;
pub(crate) use tree::make_accessible;

#[cfg(test)]
mod tests;
