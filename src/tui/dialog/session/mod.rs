//! Dialogs about sessions: the list, branches, history, search, trees, restoring and comparing.

pub(crate) mod branch_summary;
pub(crate) mod branches;
pub(crate) mod compact;
pub mod compare;
pub mod history;
pub(crate) mod restore;
pub mod search;
pub mod sessions;
pub(crate) mod tree;
