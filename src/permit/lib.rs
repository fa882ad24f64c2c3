//! The permit room: may this call run?
//!
//! Pure: it reads no clock, starts nothing, and touches the file system only to resolve links (by a
//! function that is handed in) and to list what a folder brings ([`trust`]).
//!
//! | module | holds |
//! | --- | --- |
//! | [`decide`](mod@decide) | the judge |
//! | [`rules`], [`pattern`] | `allow`, `ask`, `deny` on `tool(argument)` |
//! | [`shell`] | a command line, taken apart |
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
pub mod child_env;
mod command;
pub mod danger;
pub mod decide;
pub mod describe;
mod guarded;
mod harmless;
pub mod paths;
pub mod pattern;
pub mod protected;
pub mod redact;
mod redact_hint;
mod redact_open;
mod redact_stream;
pub mod rulefile;
pub mod rules;
pub mod shell;
mod targets;
pub mod trust;

pub use approval::Call;
pub use child_env::child_env;
pub use decide::{Human, Policy, Request, Verdict, always_pattern, decide, only_looks};
pub use paths::Roots;
pub use protected::Protected;
pub use redact::{RedactStream, Redactor};
pub use redact_open::grows;
pub use rulefile::RuleProblem;
pub use rules::{Effect, Rule, RuleSet, Source};
pub use shell::{Analysis, analyse, invisibles};

#[cfg(test)]
mod bash_tests;
#[cfg(test)]
mod corpus_tests;
