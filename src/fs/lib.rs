//! Extended attributes and access lists of files, for all rooms that replace files, and files with several names.
//!
//! May use: nothing of this project. Not here: how a file is replaced (`tool/files`), states of a workspace
//! (`snapshot`), and which files are secret (`protocol`).

pub mod attributes;
pub mod links;

pub use attributes::Attributes;
