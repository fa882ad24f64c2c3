//! How much of the machine a command may take: processes, threads, and memory.
//!
//! A command that runs away is ended before it takes the machine (and this program) with it. Nothing is looked at
//! closely while the machine as a whole shows nothing unusual: two short reads of `/proc` now and then, and none when
//! no command runs and none has left anything. Linux only; elsewhere nothing is bounded.
//!
//! Limits of the kernel are of little use alone: the one on processes counts all of a user's and does not hold for
//! root, the ones on memory count what is only reserved and break programs that reserve much (sanitizers, some
//! runtimes), and few users can make control groups. So two limits of the kernel are
//! set: which process is killed first when memory runs out, and an upper bound on the number of processes.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal};

use crate::output::human;
use crate::shell::processes::end;
use crate::shell::processes::forks::ForkLimit;
use crate::shell::processes::memory::{Key, Memory, Others};
use crate::shell::processes::proc_fs::{self, Family, Stat};
use tiller_protocol::lock;

/// Between two looks at the machine, at first and later.
const TICK: Duration = Duration::from_millis(25);
const LATER: Duration = Duration::from_millis(500);
const EAGER: Duration = Duration::from_secs(10);
/// Between two looks at the command itself: when the machine looks unusual, and in any case.
const SOON: Duration = Duration::from_millis(250);
const ANYWAY: Duration = Duration::from_secs(5);
/// Threads for each process that a family may have: they take numbers of the machine as processes do.
const THREADS: u64 = 4;
/// For the kernel, when memory runs out: from -1000 (never) to 1000 (first).
const OOM_SCORE: i32 = 300;

/// Limits of a command and all that it starts; 0: as much as there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Processes at once, and four times as many threads.
    pub processes: u64,
    /// Bytes of memory that they hold together.
    pub memory: u64,
    /// Whose they are, as the settings call it: `command` for `limits.command_processes`; empty: there is no setting.
    pub whose: &'static str,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { processes: 4096, memory: share_of_memory(75), whose: "command" }
    }
}

impl Bounds {
    /// The setting of such a limit, for people, with a blank before it.
    fn setting(&self, what: &str) -> String {
        match self.whose {
            "" => String::new(),
            whose => format!(" (limits.{whose}_{what})"),
        }
    }

    /// Threads at once, those of all processes together: never all that the machine has.
    fn threads(&self) -> u64 {
        static MOST: OnceLock<u64> = OnceLock::new();
        let most = MOST.get_or_init(|| {
            let most = std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
            most.trim().parse::<u64>().unwrap_or(32_768) / 2
        });
        self.processes.saturating_mul(THREADS).min(*most).max(self.processes)
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
        let most = Machine::now().tasks.saturating_add(bounds.threads());
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

    /// Where what others have taken meanwhile, and given back, does not hide what a family takes.
    fn calmer(self, now: Self) -> Self {
        Self { tasks: self.tasks.min(now.tasks), free: self.free.max(now.free), ..now }
    }
}

/// Watches a family until it is gone.
#[derive(Debug)]
pub(crate) struct Guard {
    shared: Arc<Shared>,
    thread: Option<Thread>,
}

#[derive(Debug)]
struct Shared {
    said: Mutex<Option<String>>,
    phase: Mutex<Phase>,
    bounds: Mutex<Bounds>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Watching,
    /// No command runs. Processes that earlier ones left are watched; without any, the guard sleeps.
    Resting,
    /// Its command has ended. Processes that it left are watched until they have ended as well.
    Over,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.turn(Phase::Over);
    }
}

impl Guard {
    /// `family`: the command and all that it starts. What that leaves is watched after its end (`over` is set, or the guard
    /// dropped) too. `forks`: what a supervisor asks about it.
    pub(crate) fn start(family: Family, bounds: Bounds, over: Option<Over>, forks: &ForkLimit) -> Self {
        Self::of(family, bounds, (over, forks), 0)
    }

    /// Of a shell, which runs one command after the other: `family` is there before the first. Reads `/proc`.
    pub(crate) fn of_shell(family: Family, bounds: Bounds, forks: &ForkLimit) -> Self {
        let quiet = family.living().len();
        Self::of(family, bounds, (None, forks), quiet)
    }

    fn of(family: Family, bounds: Bounds, (over, forks): (Option<Over>, &ForkLimit), quiet: usize) -> Self {
        forks.set(family.clone(), bounds.processes);
        let shared = Arc::new(Shared {
            said: Mutex::default(),
            phase: Mutex::new(Phase::Watching),
            bounds: Mutex::new(bounds),
        });
        let mut guard = Self { shared: Arc::clone(&shared), thread: None };
        if !cfg!(target_os = "linux") || (bounds.processes == 0 && bounds.memory == 0) {
            return guard;
        }
        let (memory, number) = (Memory::new(family.clone()), newest());
        let watch = Watch { family, over, quiet, shared, memory, number, forks: forks.clone() };
        // A thread of its own: among thousands of processes the runtime may not get to it.
        let thread = std::thread::Builder::new().name("tiller-bounds".into()).stack_size(256 << 10);
        match thread.spawn(move || watch.run()) {
            Ok(handle) => guard.thread = Some(handle.thread().clone()),
            Err(e) => tracing::warn!(error = %e, "limits are not watched"),
        }
        guard
    }

    fn turn(&self, phase: Phase) {
        *lock(&self.shared.phase) = phase;
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }

    /// The shell begins a command, under these limits. False: nothing is watched here, and there are limits now.
    pub(crate) fn work(&self, bounds: Bounds, forks: &ForkLimit, family: &Family) -> bool {
        if std::mem::replace(&mut *lock(&self.shared.bounds), bounds) != bounds {
            forks.set(family.clone(), bounds.processes);
        }
        self.turn(Phase::Watching);
        self.thread.is_some() || !cfg!(target_os = "linux") || bounds.processes == 0 && bounds.memory == 0
    }

    /// The command of the shell is over.
    pub(crate) fn rest(&self) {
        self.turn(Phase::Resting);
    }

    /// What was done about it, if it took too much.
    pub(crate) fn said(&self) -> Option<String> {
        lock(&self.shared.said).clone()
    }

    /// The same, once.
    pub(crate) fn take_said(&self) -> Option<String> {
        lock(&self.shared.said).take()
    }
}

/// Set when a process has ended.
type Over = tokio::sync::watch::Receiver<Option<crate::shell::processes::launch::Exit>>;

/// The work of a guard.
struct Watch {
    family: Family,
    over: Option<Over>,
    /// Members when no command runs.
    quiet: usize,
    shared: Arc<Shared>,
    memory: Memory,
    /// Its place in the order in which families began to work.
    number: u64,
    forks: ForkLimit,
}

/// The families that work, in the order in which they began. A file that is held by none, and that none was seen to write, is
/// taken for that of the last one that had begun when it was made.
static WORKING: Mutex<BTreeMap<u64, Working>> = Mutex::new(BTreeMap::new());

/// A family that works.
struct Working {
    began: SystemTime,
    /// New files in memory that it was seen to write.
    files: HashSet<Key>,
}

/// The families that work besides the one of this number.
fn others(number: u64) -> Others {
    let working = lock(&WORKING);
    Others {
        later: working.range(number + 1..).map(|(_, other)| other.began).collect(),
        files: working
            .iter()
            .filter(|(n, _)| **n != number)
            .flat_map(|(_, other)| other.files.clone())
            .collect(),
    }
}

/// Another one begins.
fn newest() -> u64 {
    let mut working = lock(&WORKING);
    // Greater than those of all that work.
    let number = working.last_key_value().map_or(1, |(last, _)| last + 1);
    working.insert(number, Working { began: SystemTime::now(), files: HashSet::new() });
    number
}

impl Drop for Watch {
    fn drop(&mut self) {
        lock(&WORKING).remove(&self.number);
    }
}

impl Watch {
    fn run(mut self) {
        let _first = end::Priority::raise();
        let mut began = Instant::now();
        let mut last = Look { machine: Machine::now(), ..Look::default() };
        let mut before = (Phase::Watching, false);
        let mut ended = false;
        loop {
            std::thread::park_timeout(if began.elapsed() < EAGER { TICK } else { LATER });
            let phase = *lock(&self.shared.phase);
            let over = phase == Phase::Over || self.over.as_ref().is_some_and(|o| o.borrow().is_some());
            let turned = std::mem::replace(&mut before, (phase, over)) != (phase, over);
            if turned && phase == Phase::Watching {
                began = Instant::now();
            }
            let bounds = *lock(&self.shared.bounds);
            let machine = Machine::now();
            last.machine = last.machine.calmer(machine);
            // Once: nothing more of it can start then.
            let passed = !ended && self.forks.passed();
            ended |= passed;
            if !turned && !passed && last.when.elapsed() < last.due(machine, bounds) {
                continue;
            }
            // The message is set before any of them ends.
            last = if passed {
                end_many(&self.family, bounds, &self.shared.said)
            } else {
                look(&self.family, bounds, (&mut self.memory, &others(self.number)), &self.shared.said)
            };
            if let Some(own) = lock(&WORKING).get_mut(&self.number) {
                own.files = self.memory.own_files();
            }
            last.machine = machine;
            if over && last.living == 0 {
                return;
            }
            if phase == Phase::Resting && last.living <= self.quiet {
                lock(&WORKING).remove(&self.number);
                while *lock(&self.shared.phase) == Phase::Resting {
                    std::thread::park();
                }
                self.number = newest();
                began = Instant::now();
                (last.machine, last.when) = (Machine::now(), began);
                // The end of the command is a turn then, its begin none.
                before = (Phase::Watching, false);
            }
        }
    }
}

/// The size of a family when it was looked at last.
#[derive(Clone, Copy, Debug)]
struct Look {
    living: usize,
    threads: u64,
    memory: u64,
    when: Instant,
    machine: Machine,
}

impl Default for Look {
    fn default() -> Self {
        Self { living: 0, threads: 0, memory: 0, when: Instant::now(), machine: Machine::default() }
    }
}

impl Look {
    /// Time after which the family is to be looked at again: it can have as much more as the machine has now.
    fn due(&self, now: Machine, bounds: Bounds) -> Duration {
        let more = now.tasks.saturating_sub(self.machine.tasks);
        let (processes, threads) = (self.living as u64 + more, self.threads + more);
        let memory = self.memory + self.machine.free.saturating_sub(now.free);
        let limited = bounds.processes > 0;
        if limited && (processes > bounds.processes || threads > bounds.threads()) {
            Duration::ZERO
        } else if limited && (processes > bounds.processes / 2 || threads > bounds.threads() / 2)
            || bounds.memory > 0 && memory > bounds.memory / 4
        {
            SOON
        } else {
            ANYWAY
        }
    }
}

/// Ends the part of a family that is too much, with a message. Returns what there was.
fn look(
    family: &Family,
    bounds: Bounds,
    (memory, others): (&mut Memory, &Others),
    said: &Mutex<Option<String>>,
) -> Look {
    let living = family.living();
    let count = living.len() as u64;
    let threads: u64 = living.iter().map(|s| s.threads).sum();
    let seen = Look { living: living.len(), threads, ..Look::default() };
    let setting = bounds.setting("memory");
    if bounds.processes > 0 && count > bounds.processes {
        return end_many(family, bounds, said);
    }
    if bounds.processes > 0 && threads > bounds.threads() {
        *lock(said) = Some(format!(
            "it was terminated: it had more than {} threads at once{}",
            bounds.threads(),
            bounds.setting("processes"),
        ));
        end_all(family);
        return seen;
    }
    if bounds.memory == 0 {
        return seen;
    }
    let held = memory.held(&living, others);
    let seen = Look { memory: held.all, ..seen };
    if held.all <= bounds.memory {
        return seen;
    }
    let (all, most) = (human(held.all), human(bounds.memory));
    let largest = held.each.last().filter(|(bytes, _)| *bytes >= held.loose);
    if let Some((bytes, largest)) = largest {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", largest.pid)).unwrap_or_default();
        *lock(said) = Some(format!(
            "{} of its processes held {all} of memory, more than {most}{setting}, so the largest was killed, \
             and what it had started: {} ({})",
            held.each.len(),
            crate::text::clean(name.trim().as_bytes()),
            human(*bytes),
        ));
        end_with_children(family, largest);
    } else {
        let named = |words: &str, files: Vec<String>| match files.is_empty() {
            true => String::new(),
            false => format!("; {words}: {}", files.join(", ")),
        };
        *lock(said) = Some(format!(
            "it was terminated: it held {all} of memory, {} of it in shared memory, more than {most}{setting}{}{}",
            human(held.loose),
            named("removed", memory.loose_files(true)),
            named("perhaps left by it, and not removed", memory.loose_files(false)),
        ));
        end_all(family);
        memory.remove_loose();
    }
    seen
}

/// Ends a family that has too many processes, or wants more, and says so.
fn end_many(family: &Family, bounds: Bounds, said: &Mutex<Option<String>>) -> Look {
    *lock(said) = Some(format!(
        "it was terminated: it had more than {} processes at once{}",
        bounds.processes,
        bounds.setting("processes"),
    ));
    end_all(family);
    Look::default()
}

/// Ends a family that has too much.
fn end_all(family: &Family) {
    // An ended process has released its number, which another process may have by now.
    let same = |(pid, start): &&(i32, u64)| proc_fs::stat(*pid).is_some_and(|s| s.start == *start);
    for (pid, _) in family.roots.iter().filter(same) {
        // One call for all of a group: none of them can fork in between.
        if let Some(group) = Pid::from_raw(*pid) {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
    }
    end::finish_off(family);
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

#[cfg(test)]
#[path = "bombs_tests.rs"]
mod bombs_tests;
#[cfg(test)]
#[path = "bounds_tests.rs"]
mod tests;
