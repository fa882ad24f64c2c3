//! Calls that start a process: permitted until their family has as many as it may. Threads are none.

use tiller_seccomp::{Answer, Call};
use tiller_tool::shell::ForkLimit;

/// Bit of `clone` that makes a thread of the caller's process.
pub(crate) const THREAD: u64 = 0x0001_0000;

/// Bits of `clone` and `unshare` that make namespaces. The lowest is only one for `unshare`.
pub(crate) const NAMESPACES: &[u64] =
    &[0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000];

/// Those whose every call starts a process.
#[cfg(target_arch = "x86_64")]
pub(crate) const CALLS: &[i64] = &[libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const CALLS: &[i64] = &[];

/// The answer to a call; `None`: it starts no process. `inside`: namespaces are refused.
pub(crate) fn decide(call: &Call, limit: &ForkLimit, inside: bool) -> Option<Answer> {
    let namespaces = || inside && NAMESPACES.iter().any(|bit| call.args[0] & bit == *bit);
    match call.number {
        // Its flags lie in the caller's memory, where they can change. Libraries use the older call then.
        libc::SYS_clone3 => Some(Answer::Fail(libc::ENOSYS)),
        libc::SYS_clone if namespaces() => None,
        number if number == libc::SYS_clone || CALLS.contains(&number) => Some(match limit.permits() {
            true => Answer::Continue,
            false => Answer::Fail(libc::EAGAIN),
        }),
        _ => None,
    }
}

#[cfg(test)]
#[path = "forks_tests.rs"]
mod tests;
