//! The environment of the cases: model server, folders and terminal, long sessions, measured figures.

pub(crate) mod figures;
pub(crate) mod model;
pub(crate) mod place;
pub(crate) mod process;
pub(crate) mod sessions;
