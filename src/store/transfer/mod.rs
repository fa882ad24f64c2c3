//! Sessions as JSON lines: export, and import from any file.

pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod import_more;
pub(crate) mod import_rows;
pub(crate) mod lines;
pub(crate) mod source;
