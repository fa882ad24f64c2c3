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
//! | `losses` | what a command has removed that nothing brings back |
//! | `names` | protected names, noted before they are changed |
//! | `links` | files with another name where the command may not write |
//! | `attributes` | modes, owners and times, changed in the caller's place |
//! | `changes` | what a command has changed, for the witness of its call |
//! | `refusal` | what a refused call was for, in words |
//!
//! The supervisor is a thread of the process that started the command. It sleeps until a call comes, and ends with the
//! last process that has the filter. If it ends before, every call of the filter fails with ENOSYS: nothing is let
//! through.

pub(crate) mod attributes;
pub(crate) mod caller;
pub(crate) mod calls;
mod changes;
pub(crate) mod channel;
mod creation;
mod decide;
mod links;
mod losses;
mod names;
pub(crate) mod network;
mod refusal;
mod removal;
mod scope;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tiller_seccomp::Listener;
use tiller_tool::shell::CommandWatch;

use crate::confine::Confined;
use crate::git::{Repositories, Touched};
use crate::network::Servers;
use crate::policy::{Policy, Profile};
use crate::writes::ProtectedWrites;
use decide::Judge;

/// Of the thread, in bytes.
const STACK: usize = 512 << 10;
/// Nanoseconds without a change after which a program is quiet.
const QUIET: i64 = 300_000_000;
/// After this time repositories are compared though the program goes on.
const BUSY: Duration = Duration::from_secs(2);

/// Starts the supervisor of a command that is about to be started. Gives the folder in which the launcher finds it;
/// `None` where there can be none: then the filter alone decides. `servers`: those that the command may reach, and to which
/// its own are added. `quarantine`: the supervisor compares the repositories of the workspace, and keeps there what git would
/// run.
pub(crate) fn start(
    confined: &Confined,
    (watch, writes): (&CommandWatch, &Arc<ProtectedWrites>),
    servers: &Servers,
    quarantine: Option<&Path>,
) -> Option<PathBuf> {
    let meeting = channel::Meeting::new(&confined.policy.writable_folders()).ok()?;
    let folder = meeting.folder();
    let judge = Judge::new(&confined.policy, confined.method, (watch, writes), servers);
    let compares = quarantine.map(|place| (confined.policy.clone(), place.to_owned()));
    let serve = move || {
        if let Some(listener) = meeting.listener() {
            if judge.scope.profile != Profile::Floor {
                judge.watch.sees_changes();
            }
            judge.watch.supervised();
            let listener = Arc::new(listener);
            // The program waits meanwhile.
            let mut repositories =
                compares.zip(judge.touched.as_ref()).and_then(|((policy, place), touched)| {
                    Comparison::new(&policy, place, touched, &judge.writes)
                });
            serve(&listener, repositories.as_mut(), &judge);
            if let Some(repositories) = &mut repositories {
                repositories.compare();
            }
        }
    };
    let thread = std::thread::Builder::new().name("tiller-supervise".into()).stack_size(STACK);
    thread.spawn(serve).ok()?;
    Some(folder)
}

/// The repositories of the workspace of a program that stays.
struct Comparison {
    repositories: Repositories,
    quarantine: PathBuf,
    touched: Arc<Touched>,
    writes: Arc<ProtectedWrites>,
    /// When it has touched something that was not compared yet.
    changed: Option<Instant>,
}

impl Comparison {
    fn new(
        policy: &Policy,
        quarantine: PathBuf,
        touched: &Arc<Touched>,
        writes: &Arc<ProtectedWrites>,
    ) -> Option<Self> {
        let (touched, writes) = (Arc::clone(touched), Arc::clone(writes));
        Some(Self { repositories: Repositories::record(policy)?, quarantine, touched, writes, changed: None })
    }

    fn compare(&mut self) {
        self.changed = None;
        let found = self.repositories.restore_touched(&self.quarantine, &self.touched);
        let judged = self.writes.restore(self.repositories.tips(), &self.quarantine);
        if let Some(line) = judged.told() {
            tracing::info!(line, "a program changed protected files");
        }
        for violation in found.into_iter().chain(judged.violations) {
            tracing::warn!(line = violation.words(), "a program wrote a protected file");
        }
    }

    /// Whether something is to be compared, once the program is quiet. Compares what is too old for that.
    fn is_pending(&mut self) -> bool {
        let news = [self.touched.take_news(), self.writes.take_news()];
        if news.contains(&true) {
            self.changed.get_or_insert_with(Instant::now);
        }
        if self.changed.is_some_and(|since| since.elapsed() > BUSY) {
            self.compare();
        }
        self.changed.is_some()
    }
}

/// Answers calls until no process has the filter any more.
fn serve(listener: &Arc<Listener>, mut compared: Option<&mut Comparison>, judge: &Judge) {
    listener.prefer_synchronous();
    let quiet = Timespec { tv_sec: 0, tv_nsec: QUIET };
    loop {
        let closings = judge.closings();
        let mut waiting = vec![PollFd::new(&**listener, PollFlags::IN)];
        waiting.extend(closings.iter().map(|queue| PollFd::new(&**queue, PollFlags::IN)));
        let pending = compared.as_mut().is_some_and(|compared| compared.is_pending());
        match poll(&mut waiting, pending.then_some(&quiet)) {
            Ok(calls) if pending && calls == 0 => {
                if let Some(compared) = &mut compared {
                    compared.compare();
                }
                continue;
            }
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return,
        }
        let (ready, closed) =
            (waiting[0].revents(), waiting.get(1).is_some_and(|queue| !queue.revents().is_empty()));
        if closed {
            judge.read_closings();
        }
        if closed && ready.is_empty() {
            continue;
        }
        if !ready.contains(PollFlags::IN) {
            // All have ended.
            return;
        }
        match listener.receive() {
            Ok(Some(call)) => {
                if let Some(answer) = judge.decide(&call, listener)
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
