//! Damaged databases: readable data is copied to a new database, and losses are reported.

pub(crate) mod header;
pub(crate) mod pages;
pub(crate) mod recover;
pub(crate) mod report;
pub(crate) mod tables;
pub(crate) mod trees;
