//! Questions to the user, their answers, and decisions that were made beforehand.

pub(crate) mod about;
pub(crate) mod answers;
pub(crate) mod asking;
pub(crate) mod asks;
pub(crate) mod handle;
pub(crate) mod heard;
pub mod keys;
pub(crate) mod msg;
pub(crate) mod permission;
pub(crate) mod planning;
pub(crate) mod rule_writes;
pub(crate) mod skill_offer;
pub mod trust;
