//! Calls that start a process: permitted until their family has as many as it may. Threads are none.
//!
//! A call that waits for its supervisor is interrupted by a signal until the supervisor has received it, and fails where the
//! handler of the signal does not ask for a restart. Without a supervisor a `fork` is never interrupted, so shells take that
//! for a failure: in `a | b` the end of `a` came before the `fork` for `b`.

use tiller_seccomp::{Answer, Call, Listener};
use tiller_tool::shell::ForkLimit;

use crate::supervisor::caller::Caller;

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

/// Shells whose handler for the end of a child asks for no restart. They wait for children in a call that is never restarted,
/// so that one changes nothing else for them.
const SHELLS: [&str; 2] = ["busybox", "dash"];
/// Offset of the flags in the structure of `rt_sigaction`, behind the handler.
const FLAGS: u64 = 8;

/// Lets the handler that such a shell is about to install restart calls. The shell's own copy of the structure is not changed:
/// the library hands another one to the kernel.
pub(crate) fn restart(call: &Call, caller: &Caller, listener: &Listener) {
    let shell = caller.executable().is_some_and(|name| SHELLS.iter().any(|shell| *shell == name));
    let action = call.args[1];
    let field = |offset| caller.bytes(action + offset).map(u64::from_ne_bytes);
    let (true, Ok(handler), Ok(flags)) = (shell, field(0), field(FLAGS)) else { return };
    let restarts = flags | libc::SA_RESTART as u64;
    if handler != libc::SIG_DFL as u64
        && handler != libc::SIG_IGN as u64
        && restarts != flags
        && caller.write(action + FLAGS, &restarts.to_ne_bytes(), || listener.waits(call.id)).is_err()
    {
        tracing::debug!("a shell's handler could not be changed: a signal may fail its next process");
    }
}

#[cfg(test)]
#[path = "forks_tests.rs"]
mod tests;
