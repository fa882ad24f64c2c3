//! Learnings: what failed, and what worked instead.
//!
//! | module | holds |
//! | --- | --- |
//! | `kind` | the kind of a failure: program and subcommand, and the line of the error without paths and numbers |
//! | `error_line` | the line of an output that says why it failed |
//! | `pair` | failed calls that wait for a later call of the same kind that succeeds |
//! | `find` | which learnings concern a failed call |
//! | `consolidate` | near-duplicates are merged, unused ones are retired |
//! | `branches` | learnings follow the branches of their session |
//! | `limits` | sizes of the texts of a learning |
//! | `lines` | JSON lines, out and in |
//! | `screen` | text that may not be kept |
//! | `service` | what others call: saving, finding for a call or a message, consolidating, undoing |
//! | `words` | words of a text, and how many two texts share |

mod branches;
mod consolidate;
mod error_line;
mod find;
mod kind;
mod limits;
pub mod lines;
mod pair;
mod screen;
mod service;
mod words;

pub use branches::LearningsMoved;
pub use consolidate::{FADE_DAYS, consolidate};
pub use find::{Relevance, relevance};
pub use kind::{CallKind, command_subjects, failure_kind, kind_of};
pub use pair::{CallSeen, Pair, Pairs};
pub use service::{Attached, LEARNING_TOKENS, Learnings, Notes, SavedLearning, WrittenLearning, note};

#[cfg(test)]
#[path = "learnings_tests.rs"]
mod tests;
#[cfg(test)]
mod two_processes_tests;
