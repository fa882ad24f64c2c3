//! Confined commands: what their sandbox refuses to them, and whether that is why they fail.
//!
//! | file | its job |
//! | --- | --- |
//! | `blocked` | what a sandbox has refused to a command |
//! | `cause` | whether the sandbox is why a command failed |

pub(super) mod blocked;
pub(crate) mod cause;
