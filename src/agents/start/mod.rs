//! An agent is taken on and started.

pub(crate) mod launch;
pub(crate) mod recruit;
