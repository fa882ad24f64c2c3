//! The supervisor of a confined command: it sees the system calls that a filter hands to it, before the kernel performs
//! them.
//!
//! | module | holds |
//! | --- | --- |
//! | `channel` | the way of the filter's listener from the launcher to the supervisor |
//! | `calls` | which calls change files, and where their arguments are |
//! | `caller` | memory, descriptors and folders of the thread behind a call |
//! | `walk` | what a path of that thread means |
//! | `scope` | what the policy lets it change |
//! | `decide` | the answer to a call |
//! | `network` | servers and connections, in the caller's place |
//! | `creation` | opening for writing and making names in the caller's place |
//! | `removal` | removing and renaming in the caller's place |
//! | `losses` | what a command has removed that nothing brings back; `git_index`, `ignored`: what git has or ignores |
//! | `links` | files with another name where the command may not write |
//! | `attributes` | modes, owners and times, changed in the caller's place |
//! | `refusal` | what a refused call was for, in words |
//!
//! The supervisor is a thread of the process that started the command. It sleeps until a call comes, and ends with the
//! last process that has the filter. If it ends before, every call of the filter fails with ENOSYS: nothing is let
//! through.

pub(crate) mod attributes;
pub(crate) mod caller;
pub(crate) mod calls;
pub(crate) mod channel;
mod creation;
mod decide;
mod git_index;
mod ignored;
mod links;
mod losses;
pub(crate) mod network;
mod refusal;
mod removal;
mod scope;
mod walk;

use std::path::PathBuf;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tiller_seccomp::{Answer, Call, Listener};
use tiller_tool::shell::CommandWatch;

use crate::confine::Confined;
use crate::network::Servers;
use decide::Judge;

/// Of the thread, in bytes.
const STACK: usize = 512 << 10;

/// Starts the supervisor of a command that is about to be started. Gives the folder in which the launcher finds it;
/// `None` where there can be none: then the filter alone decides. `servers`: those that the command may reach, and to which
/// its own are added.
pub(crate) fn start(confined: &Confined, watch: &CommandWatch, servers: &Servers) -> Option<PathBuf> {
    let meeting = channel::Meeting::new(&confined.policy.writable_folders()).ok()?;
    let folder = meeting.folder();
    let judge = Judge::new(&confined.policy, confined.method, watch, servers);
    let serve = move || {
        if let Some(listener) = meeting.listener() {
            judge.watch.supervised();
            let listener = Arc::new(listener);
            serve(&listener, |call| judge.decide(call, &listener));
        }
    };
    let thread = std::thread::Builder::new().name("tiller-supervise".into()).stack_size(STACK);
    thread.spawn(serve).ok()?;
    Some(folder)
}

/// Answers calls until no process has the filter any more.
fn serve(listener: &Listener, decide: impl Fn(&Call) -> Option<Answer>) {
    listener.prefer_synchronous();
    loop {
        let mut waiting = [PollFd::new(listener, PollFlags::IN)];
        match poll(&mut waiting, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return,
        }
        let ready = waiting[0].revents();
        if !ready.contains(PollFlags::IN) {
            // All have ended.
            return;
        }
        match listener.receive() {
            Ok(Some(call)) => {
                if let Some(answer) = decide(&call)
                    && listener.answer(call.id, answer).is_err()
                {
                    return;
                }
            }
            Ok(None) => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod creation_tests;
#[cfg(test)]
mod removal_tests;
#[cfg(test)]
mod tests;
