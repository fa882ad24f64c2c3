//! Disables core dumps: a dump would be an unprotected file with keys and all messages.

/// Makes this process undumpable. On Linux that also denies other processes of the same user access to its memory
/// (`ptrace`, `/proc/PID/mem`), including commands of agents. It applies to forks of this process and ends at `exec`,
/// so programs that Tiller starts keep their own setting.
#[cfg(target_os = "linux")]
pub(crate) fn disable() -> std::io::Result<()> {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Sets the soft limit of core files to 0. The programs that Tiller starts inherit it and may raise it again.
#[cfg(not(target_os = "linux"))]
pub(crate) fn disable() -> std::io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Core).maximum;
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), maximum })?)
}
