//! Extended attributes and access lists of files, for all rooms that replace files, files with several names, lock
//! files, files that are opened as they were judged, without following links, files that restrict, and folders and archives of
//! strangers, which are copied and unpacked within limits.
//!
//! May use: nothing of this project. Not here: how a file is replaced (`tool/files`), states of a workspace
//! (`snapshot`), and which files are secret (`protocol`).

pub mod archive;
pub mod attributes;
pub mod beneath;
pub mod links;
pub mod lock;
pub mod restricting;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use attributes::Attributes;
