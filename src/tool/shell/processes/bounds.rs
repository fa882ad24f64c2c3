//! CommandEnd much of the machine a command may take: processes, and memory.
//!
//! A command that runs away is ended before it takes the machine (and this program) with it. Nothing is looked at
//! closely while the machine as a whole shows nothing unusual: two short reads of `/proc` now and then, and none when
//! no command runs. Linux only; elsewhere nothing is bounded.
//!
//! Limits of the kernel are of little use alone: the one on processes counts all of a user's and does not hold for
//! root, the ones on memory count what is only reserved and break programs that reserve much (sanitizers, some
//! runtimes), and few users can make control groups. So two limits of the kernel are
//! set: which process is killed first when memory runs out, and an upper bound on the number of processes.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use tokio::task::JoinHandle;

use crate::output::human;
use crate::shell::processes::end;
use crate::shell::processes::proc_fs::{self, Family, Stat};
use tiller_protocol::lock;

/// Between two looks at the machine, at first and later.
const TICK: Duration = Duration::from_millis(100);
const LATER: Duration = Duration::from_millis(500);
const EAGER: Duration = Duration::from_secs(10);
/// Between two looks at the command itself: when the machine looks unusual, and in any case.
const SOON: Duration = Duration::from_millis(250);
const ANYWAY: Duration = Duration::from_secs(5);
/// For the kernel, when memory runs out: from -1000 (never) to 1000 (first).
const OOM_SCORE: i32 = 300;

/// What a command and all that it starts may take; 0: as much as there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Processes at once.
    pub processes: u64,
    /// Bytes of memory that they hold together.
    pub memory: u64,
    /// Whose they are, as the settings call it: `command` for `limits.command_processes`.
    pub whose: &'static str,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { processes: 4096, memory: share_of_memory(75), whose: "command" }
    }
}

/// So many percent of the machine's memory, in bytes; 0 when it does not tell.
pub fn share_of_memory(percent: u64) -> u64 {
    static TOTAL: OnceLock<u64> = OnceLock::new();
    *TOTAL.get_or_init(|| Machine::now().total) / 100 * percent
}

/// Of a process that was just started: it and all that it starts go first when memory runs out, and its user cannot
/// have many more processes than there are now. Best effort, and nothing where there is no `/proc`.
#[cfg_attr(
    not(target_os = "linux"),
    expect(unused_variables, reason = "only Linux can do this from outside")
)]
pub(crate) fn apply(pid: i32, bounds: Bounds) {
    let path = format!("/proc/{pid}/oom_score_adj");
    let now = std::fs::read_to_string(&path).ok().and_then(|t| t.trim().parse::<i32>().ok());
    if now.is_some_and(|now| now < OOM_SCORE) {
        let _ = std::fs::write(&path, OOM_SCORE.to_string());
    }
    #[cfg(target_os = "linux")]
    if bounds.processes > 0 {
        use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
        let before = getrlimit(Resource::Nproc);
        let most = Machine::now().tasks.saturating_add(bounds.processes);
        let most = before.current.map_or(most, |c| c.min(most));
        let _ = prlimit(
            Pid::from_raw(pid),
            Resource::Nproc,
            Rlimit { current: Some(most), maximum: before.maximum },
        );
    }
}

/// The machine as a whole.
#[derive(Clone, Copy, Debug, Default)]
struct Machine {
    tasks: u64,
    free: u64,
    total: u64,
}

impl Machine {
    fn now() -> Self {
        // `0.20 0.18 0.12 1/80 11206`
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let tasks = load.split(' ').nth(3).and_then(|t| t.split('/').nth(1)?.parse().ok()).unwrap_or(0);
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let of = |name: &str| {
            let line = text.lines().find_map(|l| l.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
        };
        let total = of("MemTotal:").unwrap_or(0);
        Self { tasks, free: of("MemAvailable:").unwrap_or(0), total }
    }
}

/// Watches one command until it is dropped.
#[derive(Debug)]
pub(crate) struct Guard {
    said: Arc<Mutex<Option<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Guard {
    /// `family`: the command and all that it starts. It also ends when `over` is set.
    pub(crate) fn start(family: Family, bounds: Bounds, over: Option<Over>) -> Self {
        let said = Arc::new(Mutex::new(None));
        let task = tokio::spawn(watch(family, bounds, over, Arc::clone(&said)));
        Self { said, task }
    }

    /// What was done about it, if it took too much.
    pub(crate) fn said(&self) -> Option<String> {
        lock(&self.said).clone()
    }
}

/// Set when a process has ended.
type Over = tokio::sync::watch::Receiver<Option<crate::shell::processes::launch::Exit>>;

async fn watch(family: Family, bounds: Bounds, over: Option<Over>, said: Arc<Mutex<Option<String>>>) {
    if !cfg!(target_os = "linux") || (bounds.processes == 0 && bounds.memory == 0) {
        return;
    }
    let (began, mut looked) = (Instant::now(), Instant::now());
    let before = Machine::now();
    loop {
        tokio::time::sleep(if began.elapsed() < EAGER { TICK } else { LATER }).await;
        if over.as_ref().is_some_and(|o| o.borrow().is_some()) {
            return;
        }
        let now = Machine::now();
        let more = now.tasks.saturating_sub(before.tasks);
        let many = bounds.processes > 0 && more > bounds.processes / 2;
        let much = bounds.memory > 0 && before.free.saturating_sub(now.free) > bounds.memory / 4;
        let due = if many && more > bounds.processes {
            Duration::ZERO
        } else if many || much {
            SOON
        } else {
            ANYWAY
        };
        if looked.elapsed() < due {
            continue;
        }
        let (theirs, words) = (family.clone(), Arc::clone(&said));
        // It reads much of `/proc` and can wait for the processes that it kills. The message is set before any of them
        // ends.
        let _ = tokio::task::spawn_blocking(move || look(&theirs, bounds, &words)).await;
        looked = Instant::now();
    }
}

/// Ends what is too much, and says so.
fn look(family: &Family, bounds: Bounds, said: &Mutex<Option<String>>) {
    let living = family.living();
    let count = living.len() as u64;
    if bounds.processes > 0 && count > bounds.processes {
        let most = bounds.processes;
        *lock(said) = Some(format!(
            "it was terminated: it had more than {most} processes at once (limits.{}_processes)",
            bounds.whose
        ));
        // An ended process has released its number, which another process may have by now.
        let same = |(pid, start): &&(i32, u64)| proc_fs::stat(*pid).is_some_and(|s| s.start == *start);
        for (pid, _) in family.roots.iter().filter(same) {
            // One call for all of a group: none of them can fork in between.
            if let Some(group) = Pid::from_raw(*pid) {
                let _ = rustix::process::kill_process_group(group, Signal::KILL);
            }
        }
        return end::finish_off(family);
    }
    if bounds.memory == 0 {
        return;
    }
    let mut held: Vec<(u64, Stat)> = living.into_iter().map(|s| (resident(s.pid), s)).collect();
    held.sort_by_key(|(bytes, _)| *bytes);
    let all: u64 = held.iter().map(|(bytes, _)| bytes).sum();
    if let Some((bytes, largest)) = held.last().filter(|_| all > bounds.memory) {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", largest.pid)).unwrap_or_default();
        *lock(said) = Some(format!(
            "{} of its processes held {} of memory, more than {} (limits.{}_memory), so the largest was killed, and what \
             it had started: {} ({})",
            held.len(),
            human(all),
            human(bounds.memory),
            bounds.whose,
            crate::text::clean(name.trim().as_bytes()),
            human(*bytes),
        ));
        end_with_children(family, largest);
    }
}

/// Kills a process of a family and all that it started, so that none of it goes on as an orphan.
fn end_with_children(family: &Family, top: &Stat) {
    // Stopped first: then it starts no more of them, and stays their parent while they are looked for.
    proc_fs::signal(top, Signal::STOP);
    let mut doomed = vec![*top];
    loop {
        let known = |s: &Stat| doomed.iter().any(|d| (d.pid, d.start) == (s.pid, s.start));
        let below = |s: &Stat| !known(s) && doomed.iter().any(|d| d.pid == s.parent);
        let more: Vec<Stat> = family.living().into_iter().filter(|s| below(s)).collect();
        if more.is_empty() {
            break;
        }
        for process in &more {
            proc_fs::signal(process, Signal::STOP);
        }
        doomed.extend(more);
    }
    for process in doomed.iter().rev() {
        proc_fs::signal(process, Signal::KILL);
    }
}

/// Bytes of memory that a process holds, shared ones included.
fn resident(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages: u64 = text.split(' ').nth(1).and_then(|p| p.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

#[cfg(test)]
#[path = "bounds_tests.rs"]
mod tests;
