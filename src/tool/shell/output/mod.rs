//! Output of commands: kept in bounded memory, shown live, read after the end, drawn on an emulated screen.

pub(crate) mod capture;
pub(crate) mod leftover;
pub(crate) mod progress;
pub(crate) mod screen;
