//! The permit room: may this call run?
//!
//! Pure: it reads no clock, starts nothing, and touches the file system only to resolve links and to list
//! folders (by functions that are handed in), to list what a folder brings ([`trust`]), and to see what a pattern of
//! names or a program's name stands for. What git would run is asked of [`surroundings::Surroundings`], which is
//! handed in.
//!
//! | module | holds |
//! | --- | --- |
//! | [`decide`](mod@decide) | the decision about one call; the question to the person, bound to what runs |
//! | [`rules`] | `allow`, `ask`, `deny` on `tool(argument)`; `permissions.yaml`; the tools that a rule may name |
//! | [`paths`] | roots, links, and the paths that a command comes to |
//! | `harmless` | commands that only look |
//! | [`surroundings`] | what a program that only looks would find around it |
//! | [`danger`] | what asks even in `full` |
//! | `targets`, [`protected`] | files that a command writes, and names that no tool may write |
//! | [`redact`], [`child_env`] | secrets out of texts, files and children |
//! | [`trust`] | what a folder brings |
//!
//! The text of a rule is a convenience, not a boundary: a program that is allowed to run may do
//! anything that its user may. The boundary is the kernel sandbox, where there is one.

pub mod child_env;
pub mod danger;
pub mod decide;
mod harmless;
pub mod paths;
pub mod protected;
pub mod redact;
pub mod rules;
pub mod surroundings;
mod targets;
pub mod trust;

pub use child_env::child_env;
pub use decide::always::split as split_patterns;
pub use decide::approval::Call;
pub use decide::{
    Human, Policy, Request, Unasked, Verdict, always_pattern, decide, decide_in, only_looks, suspected,
    unreadable, unreadable_by,
};
pub use paths::Roots;
pub use protected::Protected;
pub use redact::open::grows;
pub use redact::pem::undecided;
pub use redact::{RedactStream, Redactor};
pub use rules::denied::{DeniedRead, denied_reads};
pub use rules::rulefile::RuleProblem;
pub use rules::{Effect, Rule, RuleSet, Source};
pub use surroundings::{GitConfiguration, ShellState, Surroundings};

#[cfg(test)]
mod bash_tests;
#[cfg(test)]
mod corpus_tests;
#[cfg(test)]
mod reach_tests;
#[cfg(test)]
mod testing;
