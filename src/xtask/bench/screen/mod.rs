//! Cases at the terminal: start, typing, streaming, panes, branches, the tree browser.

pub(crate) mod branches;
pub(crate) mod keys;
pub(crate) mod pane;
pub(crate) mod replies;
pub(crate) mod start;
pub(crate) mod tree;
