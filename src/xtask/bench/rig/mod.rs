//! The environment of the cases: model server, folders and terminal, long sessions, measured figures.

pub(crate) mod figures;
mod long_session;
pub(crate) mod model;
pub(crate) mod place;
pub(crate) mod process;
pub(crate) mod sessions;
