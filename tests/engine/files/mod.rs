//! Files of the workspace: checkpoints, undo, review, changes from outside.

pub(crate) mod checkpoints;
pub(crate) mod masked_text;
pub(crate) mod outside_changes;
pub(crate) mod review;
pub(crate) mod turn_changes;
pub(crate) mod undo;
pub(crate) mod unprotected_calls;
mod witnessed;
