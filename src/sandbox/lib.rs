//! The kernel sandbox: what a command may write, read and reach, whatever its text says.
//!
//! | module | holds |
//! | --- | --- |
//! | [`policy`] | what a command may do: profile, folders, protected and hidden paths, network |
//! | [`confinement`] | what this system can enforce, found once |
//! | [`confine`] | the change of a launch so that it runs confined; the seam of `tiller_tool` |
//! | [`launcher`] | the first steps of a confined process: it restricts itself, then becomes the command |
//! | [`supervise`] | running one confined command to its end, with nothing left behind |
//! | `supervisor` | system calls of a command that wait for an answer: what it was refused is known |
//! | [`quarantine`] | protected files, compared and restored where the kernel cannot protect them |
//! | [`probe`] | the self-test: one probe for each capability, in a confined child |
//! | [`proxy`] | the network of commands, limited to listed domains |
//! | [`hard_links`] | names in the workspace that are secret or protected files elsewhere |
//! | `git` | repositories that a command makes: what makes git run programs there |
//! | `writes` | protected names that a command writes below the workspace, judged after it |
//! | `compared` | the comparison after a command |
//! | `hidden` | hidden files that the output of a command names |
//! | `bubblewrap` | arguments of `bwrap` |
//! | `network` | one network namespace for the commands of a session |
//! | `wait` | waiting for a process |
//! | `linux` | Landlock rules, system call filters, privileges |
//! | `seatbelt` | the profile of Seatbelt on macOS |
//!
//! Two ways on Linux: Landlock with seccomp, which needs no privilege and no namespace, and bubblewrap around both,
//! which adds namespaces and read-only mounts. On macOS Seatbelt, which was not tried on a Mac yet. On other systems there is no
//! sandbox, and every answer says so.
//!
//! Outside the sandbox the profile `floor` holds: everything is allowed but to write protected names and Tiller's own
//! folders. Bubblewrap mounts these read-only; without it the names are compared and put back after each command, and
//! Tiller's folders are not protected. Files of git's configuration are compared either way: git itself writes them, and
//! what sets no program stays.
//!
//! Restrictions are inherited and cannot be removed, and code between `fork` and `exec` would need `unsafe`. So the
//! program starts itself again as a launcher (see [`launcher`]), which restricts itself and then calls `exec`.
//!
//! It may use `protocol` (the lists of secret paths and protected names), `fs` (files with several names), `shell` (the keys of git that run programs), `tool` (the trait that it
//! implements) and `seccomp` (the listener of a filter). What is not here: which commands run in which profile (`tool`, `engine`), rules about the text of commands
//! (`permit`), and the words of the screen (`tui`).

mod bubblewrap;
mod compared;
pub mod confine;
pub mod confinement;
mod git;
pub mod hard_links;
mod hidden;
pub mod launcher;
#[cfg(target_os = "linux")]
mod linux;
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "bubblewrap exists on Linux only"))]
mod network;
pub mod policy;
pub mod probe;
pub mod proxy;
pub mod quarantine;
mod seatbelt;
pub mod supervise;
#[cfg(target_os = "linux")]
mod supervisor;
mod writes;

pub use confine::{Confined, FileGuards, Method, SessionSandbox, confined};
pub use confinement::Confinement;
pub use hard_links::HardLinks;
pub use policy::{Network, Policy, Profile, Variables};
pub use probe::{Capability, Held, self_test, self_test_cached};
pub use proxy::{Domains, Proxy};
pub use writes::ProtectedWrites;

#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "nothing is confined on this system"))]
mod wait;

/// Why a command could not be confined. It is not started then.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SandboxError(pub String);

impl SandboxError {
    /// `what` names the step that failed.
    pub(crate) fn new(what: &str, error: impl std::fmt::Display) -> Self {
        Self(format!("{what}: {error}"))
    }
}

/// Starts of this test program as the launcher.
#[cfg(test)]
mod testing;
