//! Sessions: opening, branches, the tree, the trash.

pub(crate) mod branches;
pub(crate) mod compare;
pub(crate) mod open;
pub(crate) mod trash;
pub(crate) mod tree;
