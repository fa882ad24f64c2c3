//! Rules at the point of action: entries of memory files, and learnings, with matchers.
//!
//! | module | holds |
//! | --- | --- |
//! | `matcher` | matchers in the text of an entry |
//! | `book` | the rules of all files and learnings, which were shown in which session, and their counts |
//! | `index` | finds those that may concern a call without looking through all |
//! | `promotion` | what a rule can become: a permission rule, or a hook |

pub mod book;
mod index;
pub mod matcher;
pub mod promotion;

pub use book::{BookRule, RuleBook, RuleHit, RulePlace, learning_fault};
pub use index::RuleCall;
pub use matcher::ActionRule;
pub use promotion::{Promotions, RuleFile, WriteTexts};

#[cfg(test)]
#[path = "matcher_tests.rs"]
mod tests;
