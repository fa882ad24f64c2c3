//! Extended attributes and access lists of files, for all rooms that replace files.
//!
//! May use: nothing of this project. Not here: how a file is replaced (`tool/files`), states of a workspace
//! (`snapshot`).

pub mod attributes;

pub use attributes::Attributes;
