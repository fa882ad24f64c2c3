//! Sessions at a terminal: turns, branches, the tree, several windows, detaching.

pub(crate) mod branches;
pub(crate) mod concurrent_windows;
pub(crate) mod detach;
pub(crate) mod diff_review;
pub(crate) mod effort;
pub(crate) mod goal;
pub(crate) mod large_session;
pub(crate) mod learnings;
pub(crate) mod memory;
pub(crate) mod planning;
pub(crate) mod proposals;
pub(crate) mod published_crate;
pub(crate) mod rewind;
pub(crate) mod search;
pub(crate) mod tree;
pub(crate) mod waiting;
pub(crate) mod whole_session;
