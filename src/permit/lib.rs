//! The permit room: may this call run?
//!
//! Pure: it reads no clock, starts nothing, and touches the file system only to resolve links and to list
//! folders (by functions that are handed in), to list what a folder brings ([`trust`]), and to see what a pattern of
//! names or a program's name stands for. What git would run is asked of [`surroundings::Surroundings`], which is
//! handed in.
//!
//! | module | holds |
//! | --- | --- |
//! | [`decide`](mod@decide) | the judge |
//! | [`names`] | the tools that a rule may name |
//! | [`rules`], [`pattern`] | `allow`, `ask`, `deny` on `tool(argument)` |
//! | [`shell`] | a command line, taken apart |
//! | [`surroundings`] | what a program that only looks would find around it |
//! | [`danger`] | what asks even in `full` |
//! | [`protected`] | names that no tool may write |
//! | [`rulefile`] | `permissions.yaml` |
//! | [`approval`] | the question to the person, bound to what runs |
//! | [`redact`], [`child_env`] | secrets out of files and children |
//! | [`trust`] | what a folder brings |
//! | [`paths`] | roots, links, candidates of a word |
//!
//! The text of a rule is a convenience, not a boundary: a program that is allowed to run may do
//! anything that its user may. The boundary is the kernel sandbox, where there is one.

mod always;
pub mod approval;
mod below;
pub mod child_env;
mod command;
pub mod danger;
pub mod decide;
pub mod describe;
mod guarded;
mod harmless;
mod input;
pub mod names;
pub mod paths;
pub mod pattern;
pub mod protected;
pub mod redact;
mod redact_command;
mod redact_hint;
mod redact_named;
mod redact_open;
mod redact_pem;
mod redact_shapes;
mod redact_stream;
mod respell;
pub mod rulefile;
pub mod rules;
pub mod shell;
pub mod surroundings;
mod targets;
mod touched;
mod tracked;
pub mod trust;

pub use always::split as split_patterns;
pub use approval::Call;
pub use child_env::child_env;
pub use decide::{
    Human, Policy, Request, Unasked, Verdict, always_pattern, decide, decide_in, only_looks, suspected,
    unreadable, unreadable_by,
};
pub use paths::Roots;
pub use protected::Protected;
pub use redact::{RedactStream, Redactor};
pub use redact_open::grows;
pub use redact_pem::undecided;
pub use rulefile::RuleProblem;
pub use rules::{Effect, Rule, RuleSet, Source};
pub use shell::{Analysis, analyse, invisibles};
pub use surroundings::{GitConfiguration, ShellState, Surroundings};

#[cfg(test)]
mod bash_tests;
#[cfg(test)]
mod corpus_tests;
#[cfg(test)]
mod reach_tests;
