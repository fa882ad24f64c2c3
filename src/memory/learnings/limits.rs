//! Sizes of the texts of a learning, in bytes. What is longer is cut.

/// What was tried.
pub(super) const PATTERN: usize = 600;
/// What to do instead.
pub(super) const FIX: usize = 1_000;
/// The line of the error as it was printed.
pub(super) const ERROR: usize = 400;
/// When it holds.
pub(super) const CONTEXT: usize = 600;
/// A tag, or a detail of the error.
pub(super) const TAG: usize = 80;
/// Most tags, and most details, of a learning.
pub(super) const TAGS: usize = 10;
