//! The terminal: keys, hints, drawing, restoring at the end, linear text.

mod approvals;
pub(crate) mod clipboard;
pub(crate) mod colours;
pub(crate) mod completion;
pub(crate) mod demo;
pub(crate) mod first_run;
pub(crate) mod footer_hints;
pub(crate) mod init;
pub(crate) mod keys;
pub(crate) mod layers;
pub(crate) mod linear_commands;
pub(crate) mod linear_output;
pub(crate) mod pictures;
pub(crate) mod restore;
pub(crate) mod shell_lines;
pub(crate) mod stalled_reader;
pub(crate) mod start_screen;
pub(crate) mod typed_words;
pub(crate) mod uploads;
mod waiting;
