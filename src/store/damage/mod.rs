//! Damaged databases: what can still be read is copied, and what was lost is named.

pub(crate) mod pages;
pub(crate) mod recover;
pub(crate) mod report;
pub(crate) mod tables;
