//! Questions to the person, their answers, and what the person decided beforehand.

pub(crate) mod about;
pub(crate) mod answers;
pub(crate) mod asking;
pub(crate) mod asks;
pub(crate) mod handle;
pub mod keys;
pub(crate) mod msg;
pub(crate) mod permission;
pub(crate) mod planning;
pub mod trust;
