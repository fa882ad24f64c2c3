//! What is kept across sessions, without a screen.

pub(super) mod learnings;
