//! Permissions: whether a tool call may run.
//!
//! The decision reads no clock and starts no process. It touches the file system only to resolve links, to list folders
//! (by functions that are handed in), to find the project files that need trust ([`trust`]), and to expand patterns of
//! names. What git would run is answered by [`surroundings::Surroundings`], which is handed in, as are the tools that
//! rules may name ([`Policy::tools`]).
//!
//! | module | holds |
//! | --- | --- |
//! | [`decide`](mod@decide) | the decision about one call; the question to the person, bound to what runs |
//! | [`rules`] | `allow`, `ask`, `deny` on `tool(argument)`; `permissions.yaml`; the tools that a rule may name |
//! | [`paths`] | roots, links, and the paths that a command comes to |
//! | `read_only` | commands that change nothing |
//! | [`surroundings`] | configuration by which a read-only command would run other programs |
//! | [`danger`] | what asks even in `full` |
//! | `targets`, [`protected`] | files that a command writes, and names that no tool may write |
//! | [`redact`], [`child_env`] | secrets out of texts, files and children |
//! | [`trust`] | what a folder brings |
//! | [`hook_files`] | the files that the commands of hooks name |
//! | [`pin`] | the content of all that a command runs |
//!
//! The text of a rule is a convenience, not a security boundary: a program that is allowed to run can do whatever its
//! user can. The boundary is the kernel sandbox, where there is one.
//!
//! It may use `protocol` and `shell`. What is not here: the tools (`tool`), the questions to the user and the rules of
//! a session (`engine`), and the files of rules (`app`).

pub mod child_env;
pub mod danger;
pub mod decide;
pub mod hook_files;
pub mod paths;
pub mod pin;
pub mod protected;
mod read_only;
pub mod redact;
pub mod rules;
pub mod surroundings;
mod targets;
pub mod trust;

pub use child_env::child_env;
pub use decide::always::split as split_patterns;
pub use decide::approval::Call;
pub use decide::{
    CallReach, Heard, HeldPath, HeldVerdict, Human, Policy, ReadOnlyRun, Request, Verdict, always_pattern,
    covers, decide, decide_in, held, held_effects, is_read_only, outside, reach, secret, sending, suspected,
    unreachable, unreadable, unreadable_by, unwritable,
};
pub use paths::Roots;
pub use protected::Protected;
pub use redact::open::{context, grows};
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
