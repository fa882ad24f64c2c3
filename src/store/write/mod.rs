//! Writing: one thread, batches, acknowledgements.

pub(crate) mod attempt;
pub(crate) mod health;
pub(crate) mod pending;
pub(crate) mod ticket;
pub(crate) mod writer;
