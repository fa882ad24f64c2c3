//! Confined commands: what their sandbox refuses to them, whether that is why they fail, and what they may remove.
//!
//! | file | its job |
//! | --- | --- |
//! | `blocked` | what a sandbox has refused to a command |
//! | `cause` | whether the sandbox is why a command failed |
//! | `watch` | a command while it runs: what its supervisor and the call tell each other |
//! | `witness` | the files that the programs of a call changed |
//! | `deletion` | the question before a command loses many files |
//! | `held` | the question about protected files that a command wrote |

pub(super) mod blocked;
pub(crate) mod cause;
pub(crate) mod deletion;
pub(crate) mod held;
pub(crate) mod watch;
pub(crate) mod witness;
