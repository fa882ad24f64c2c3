//! A session: its entries and operations, branches, and ways to look through and restore it.

pub mod additions;
pub mod branch;
pub(crate) mod carried;
pub mod compare;
pub mod effort;
pub mod entry;
pub mod message;
pub mod op;
pub mod restore;
pub mod search;
pub mod tree;
