//! Processes as `/proc` shows them (Linux): the descendants of this process, and signals that never reach a process
//! which reused a number. Elsewhere the lists are empty and only process groups
//! are signalled.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::shell::processes::mark;

/// One process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stat {
    pub pid: i32,
    pub parent: i32,
    pub session: i32,
    /// Its threads.
    pub threads: u64,
    /// Time that it has run, in clock ticks.
    pub ran: u64,
    /// Letter of `/proc/PID/stat`; `Z` is dead and waits to be collected.
    pub state: u8,
    /// When it started, in clock ticks since boot. With the pid it names a process for good.
    pub start: u64,
    /// Address at which its stack begins (proc(5), field 28): another one after each `exec`, the parent's between
    /// `fork` and `exec`. 0 where the kernel hides it.
    pub stack: u64,
}

impl Stat {
    pub(crate) fn dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// Ticks by which the start of a process can differ between two reads and still name the same process.
const GRAIN: u64 = 3;

/// The children of the main thread of a process; empty where the kernel does not list them.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|p| p.parse().ok()).collect()
}

/// Reads one process. `None` when it is gone.
pub(crate) fn stat(pid: i32) -> Option<Stat> {
    parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The threads of a process, each by its own number and times.
pub(crate) fn threads(pid: i32) -> Vec<Stat> {
    let Ok(listed) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let numbers = listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter_map(|number| thread(pid, number)).collect()
}

/// One of them. `None` when it is gone.
pub(crate) fn thread(pid: i32, number: i32) -> Option<Stat> {
    parse(&std::fs::read(format!("/proc/{pid}/task/{number}/stat")).ok()?)
}

/// `pid (name) state ppid pgrp session ...` (proc(5)); fields 14 and 15 are the time that it has run, 20 is the number of
/// threads, 22 the start, 28 the stack. The name may hold anything.
fn parse(line: &[u8]) -> Option<Stat> {
    let open = line.iter().position(|b| *b == b'(')?;
    let close = line.iter().rposition(|b| *b == b')')?;
    let pid = std::str::from_utf8(&line[..open]).ok()?.trim().parse().ok()?;
    let rest: Vec<&str> = std::str::from_utf8(&line[close + 1..]).ok()?.split_ascii_whitespace().collect();
    let number = |at: usize| rest.get(at)?.parse::<u64>().ok();
    Some(Stat {
        pid,
        parent: rest.get(1)?.parse().ok()?,
        session: rest.get(3)?.parse().ok()?,
        ran: number(11)? + number(12)?,
        threads: number(17)?,
        state: *rest.first()?.as_bytes().first()?,
        start: number(19)?,
        stack: number(25).unwrap_or_default(),
    })
}

/// Lists of all processes, at most, for one look.
const LISTS: usize = 3;

/// All processes that can be seen. One that ended between the list and its reading may have left a child that the list
/// lacks: then the list is made again.
pub(crate) fn all() -> Vec<Stat> {
    let mut found = Vec::new();
    for _ in 0..LISTS {
        let Ok(dir) = std::fs::read_dir("/proc") else { return Vec::new() };
        let listed = dir.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
        let mut gone = false;
        found = listed
            .filter_map(|pid| {
                stat(pid).or_else(|| {
                    gone = true;
                    None
                })
            })
            .collect();
        if !gone {
            break;
        }
    }
    found
}

/// Now, in clock ticks since boot: comparable with [`Stat::start`].
pub(crate) fn ticks() -> u64 {
    #[cfg(target_os = "linux")]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let hz = rustix::param::clock_ticks_per_second();
        now.tv_sec.unsigned_abs() * hz + now.tv_nsec.unsigned_abs() * hz / 1_000_000_000
    }
    #[cfg(not(target_os = "linux"))]
    0
}

/// How long ago something started, from its start in clock ticks since boot; at most two ticks too long.
pub(crate) fn age(start: u64) -> Duration {
    #[cfg(target_os = "linux")]
    let hz = rustix::param::clock_ticks_per_second().max(1);
    #[cfg(not(target_os = "linux"))]
    let hz = 100;
    Duration::from_millis((ticks() + 2).saturating_sub(start) * 1000 / hz)
}

/// Sends a signal to exactly this process: the number is pinned first, then its start time is checked.
/// False when it is gone.
pub(crate) fn signal(target: &Stat, signal: Signal) -> bool {
    let Some(pid) = Pid::from_raw(target.pid) else { return false };
    #[cfg(target_os = "linux")]
    {
        let Ok(pin) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else {
            return false;
        };
        stat(target.pid).is_some_and(|s| s.start == target.start)
            && rustix::process::pidfd_send_signal(&pin, signal).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        rustix::process::kill_process(pid, signal).is_ok()
    }
}

/// True for the first process of a number space of its own: all in it ends with it, at once. `NSpid` has the
/// numbers of a process from the outermost space to its own (proc(5)).
pub(crate) fn leads_namespace(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    numbers.split_ascii_whitespace().skip(1).last() == Some("1")
}

/// How to know that a process was started by this program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Family {
    /// Processes that we spawned ourselves, with start times; all their descendants belong to us, and all
    /// members of the sessions that they lead.
    pub roots: Vec<(i32, u64)>,
    /// Sessions whose leader (a root of this family) has ended. Once such a session is empty its number may be another's, so
    /// it proves nothing alone: orphans of this family become children of this process, others never do.
    pub ended: Vec<i32>,
    /// Start of the value of `TILLER_CHILD` in the environment.
    pub marker: String,
    /// Only processes that started at this tick or later (the roots aside).
    pub since: u64,
    /// Children of the roots from before `since` (whose grain is a tick): they and their children do not count.
    pub except: Vec<i32>,
    /// Pipes of this command, or folders of them: a process that holds one open belongs to the family, even with a
    /// cleared environment.
    pub pipes: Vec<PathBuf>,
}

impl Family {
    /// All living members, roots included. `since` > 0: only what this call started, that is the roots and
    /// what descends from them through young processes only, and young orphans that carry the marker.
    /// Where only dead ones are found, it looks again: one of them may have left a child that was not listed yet.
    pub(crate) fn living(&self) -> Vec<Stat> {
        let look = || -> (usize, Vec<Stat>) {
            let members = self.members();
            (members.len(), members.into_iter().filter(|s| !s.dead()).collect())
        };
        match look() {
            (1.., living) if living.is_empty() => look().1,
            (_, living) => living,
        }
    }

    /// As [`Family::living`], with zombies.
    pub(crate) fn members(&self) -> Vec<Stat> {
        self.members_among(all())
    }

    /// Those among these processes.
    pub(crate) fn members_among(&self, all: Vec<Stat>) -> Vec<Stat> {
        self.members_of(all, std::process::id().cast_signed())
    }

    /// Of these processes, as `me` sees them.
    fn members_of(&self, all: Vec<Stat>, me: i32) -> Vec<Stat> {
        let by_pid: HashMap<i32, &Stat> = all.iter().map(|s| (s.pid, s)).collect();
        let root = |s: &Stat| self.roots.iter().any(|(pid, start)| *pid == s.pid && *start == s.start);
        let mut known: HashMap<i32, bool> = HashMap::from([(me, false), (1, false), (0, false)]);
        let mut chain = Vec::new();
        for s in &all {
            // Walk up until a process of known standing, then tell all below it.
            chain.clear();
            let mut seen = HashSet::new();
            let mut at = s.pid;
            let standing = loop {
                if let Some(k) = known.get(&at) {
                    break *k;
                }
                let Some(p) = by_pid.get(&at) else { break false };
                if root(p) {
                    known.insert(at, true);
                    break true;
                }
                if !seen.insert(at) {
                    break false;
                }
                chain.push(**p);
                at = p.parent;
            };
            let mut ours = standing;
            while let Some(p) = chain.pop() {
                let spared = self.except.contains(&p.pid) && p.start <= self.since + GRAIN;
                ours = !spared && p.start >= self.since && (ours || self.proves(&p, me, &by_pid));
                known.insert(p.pid, ours);
            }
        }
        all.into_iter().filter(|s| known.get(&s.pid) == Some(&true)).collect()
    }

    /// Whether a process that does not descend from a root is ours all the same.
    fn proves(&self, s: &Stat, me: i32, by_pid: &HashMap<i32, &Stat>) -> bool {
        // In a process space of a sandbox orphans go to its first process, which is ours or an orphan itself.
        let of_space = |first: &&Stat| {
            let from = |root: &(i32, u64)| root.0 == first.parent;
            (first.parent == me || self.roots.iter().any(from)) && leads_namespace(first.pid)
        };
        let orphan = s.parent == me || s.parent == 1 || by_pid.get(&s.parent).is_some_and(of_space);
        if self.since > 0 && !orphan {
            return false;
        }
        // A session is named by its leader's number, which can have been reused: compare the start as well.
        match by_pid.get(&s.session) {
            Some(leader) if self.since == 0 && self.roots.contains(&(leader.pid, leader.start)) => {
                return true;
            }
            Some(_) => {}
            None => {
                let root = self.since == 0 && self.roots.iter().any(|(pid, _)| *pid == s.session);
                if s.parent == me && (root || self.ended.contains(&s.session)) {
                    return true;
                }
            }
        }
        // It stays through another session, another parent and another environment.
        if orphan && let Some(mark) = mark::of(s.pid) {
            let ended = |pid: &i32| self.since == 0 && s.parent == me && mark::is_of(mark, *pid);
            if self.roots.iter().any(|root| mark::value(*root) == mark) || self.ended.iter().any(ended) {
                return true;
            }
        }
        if !self.marker.is_empty() && has_marker(s, me, &self.marker) {
            return true;
        }
        // Without a marker the pipes are all there is to go by.
        (orphan || self.marker.is_empty()) && self.pipes.iter().any(|name| holds(s.pid, name))
    }
}

/// Between two looks at an environment that is empty.
const EXEC_PAUSE: Duration = Duration::from_millis(1);
/// Looks at an environment that is empty, of a process that has its arguments.
const EXEC_LOOKS: usize = 9;
/// Looks at a process that is within `exec`, at most: on a busy machine it is not run for a while there. They are counted,
/// since a machine that pauses may run neither it nor the one who looks.
const EXEC_MOST: usize = 300;

/// Whether the environment of a process, as `me` sees it, has the marker. The file is empty while the process is within
/// `exec`: it has its new memory then, and not yet its arguments and, right after them, its environment. So a living child of
/// `me`, which may be an orphan that begins another program at this moment, is looked at again. Blocks that long.
fn has_marker(s: &Stat, me: i32, marker: &str) -> bool {
    // At most the start of huge environments; the kernel keeps the whole block readable.
    let read = || std::fs::read(format!("/proc/{}/environ", s.pid));
    let has_arguments =
        || std::fs::read(format!("/proc/{}/cmdline", s.pid)).is_ok_and(|args| !args.is_empty());
    let Ok(mut env) = read() else { return false };
    let (mut looks, mut total) = (0, 0);
    while env.is_empty() && s.parent == me && looks < EXEC_LOOKS && total < EXEC_MOST {
        total += 1;
        if stat(s.pid).is_none_or(|now| now.dead() || now.start != s.start) {
            return false;
        }
        looks += usize::from(has_arguments());
        std::thread::park_timeout(EXEC_PAUSE);
        match read() {
            Ok(now) => env = now,
            Err(_) => return false,
        }
    }
    env.split(|b| *b == 0)
        .filter_map(|v| v.strip_prefix(b"TILLER_CHILD="))
        .any(|v| v.starts_with(marker.as_bytes()))
}

/// Whether it has `name`, or a file below it, open for writing. We only ever read these pipes: a child that
/// we forked for something else and that has not yet run its program still has our reading ends.
fn holds(pid: i32, name: &Path) -> bool {
    const WRITE: u32 = 0o200;
    let Ok(fds) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let gone = format!("{} (deleted)", name.display());
    fds.flatten().any(|fd| {
        // The mode of the link is that of the descriptor.
        fd.metadata().is_ok_and(|m| m.permissions().mode() & WRITE != 0)
            && std::fs::read_link(fd.path())
                .is_ok_and(|p| p.starts_with(name) || p.as_os_str() == gone.as_str())
    })
}

/// Whether it is blocked in a read of a terminal.
pub(crate) fn waits_for_terminal(pid: i32) -> bool {
    let wchan = std::fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
    wchan.contains("tty_read") || wchan == "wait_woken" && reads_stdin(pid)
}

/// `/proc/PID/syscall` begins with the number (0 is read on x86-64, 63 on arm64) and the descriptor.
fn reads_stdin(pid: i32) -> bool {
    let read = if cfg!(target_arch = "x86_64") { "0" } else { "63" };
    std::fs::read_to_string(format!("/proc/{pid}/syscall"))
        .is_ok_and(|s| s.split(' ').take(2).eq([read, "0x0"]))
}

#[cfg(test)]
#[path = "proc_fs_tests.rs"]
mod tests;
