//! Cases of long sessions in the store: search, jumps, export and import.

pub(crate) mod reach;
pub(crate) mod search;
pub(crate) mod speed;
pub(crate) mod transfer;
