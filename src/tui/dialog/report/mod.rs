//! Tables to look at, and the error log.

pub mod errors;
pub(crate) mod operations;
pub mod tables;
