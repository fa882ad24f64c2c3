//! Sessions and the tables that belong to one session, one file each.

pub(crate) mod agents;
pub(crate) mod family;
pub(crate) mod gc;
pub(crate) mod history;
pub(crate) mod made_by;
pub(crate) mod ops;
pub(crate) mod queue;
pub(crate) mod rules;
pub(crate) mod running;
pub(crate) mod sessions;
pub(crate) mod steps;
pub(crate) mod todos;
pub(crate) mod trust;
pub(crate) mod workflows;
