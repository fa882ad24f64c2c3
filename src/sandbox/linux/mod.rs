//! What Linux offers: Landlock, system call filters, privileges. All of it holds for the calling thread and what it
//! starts, and cannot be taken back.

pub(crate) mod forks;
pub(crate) mod landlock;
pub(crate) mod seccomp;

use std::collections::HashSet;
use std::os::unix::net::UnixStream;

use caps::{CapSet, Capability};

use crate::SandboxError;
use crate::policy::{Policy, Profile};

/// Restricts this thread. `namespaces`: it runs inside of bubblewrap. `supervisor`: a connection to what decides about
/// watched system calls.
///
/// # Errors
/// When one of the restrictions cannot be applied; some may hold then, so the process must end.
pub(crate) fn restrict(
    policy: &Policy,
    namespaces: bool,
    supervisor: Option<UnixStream>,
) -> Result<(), SandboxError> {
    match policy.profile {
        Profile::Off => return Ok(()),
        Profile::Floor => return seccomp::watch_outside(supervisor),
        Profile::Read | Profile::Workspace => {}
    }
    drop_privileges(namespaces).map_err(|e| SandboxError::new("privileges could not be dropped", e))?;
    if landlock::version() > 0 {
        landlock::restrict(policy, namespaces)?;
    } else if !namespaces {
        return Err(SandboxError("the kernel has no Landlock".into()));
    }
    seccomp::restrict(policy, namespaces, supervisor)
}

/// Drops the capabilities of the root user. Outside of namespaces one stays: access to files of other users, which
/// Landlock limits to the permitted folders.
fn drop_privileges(namespaces: bool) -> Result<(), caps::errors::CapsError> {
    let now = caps::read(None, CapSet::Permitted)?;
    if now.is_empty() {
        return Ok(());
    }
    let keep: HashSet<Capability> =
        now.into_iter().filter(|c| !namespaces && *c == Capability::CAP_DAC_OVERRIDE).collect();
    caps::clear(None, CapSet::Ambient)?;
    caps::clear(None, CapSet::Inheritable)?;
    caps::set(None, CapSet::Effective, &keep)?;
    caps::set(None, CapSet::Permitted, &keep)
}
