//! Ending families of processes, and collecting the dead that came to us.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tiller_protocol::lock;

use rustix::process::{Pid, Signal, WaitOptions};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::shell::processes::mark;
use crate::shell::processes::proc_fs::{self, Family, Stat};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// Looks at a family that does not change though it was killed, before it is given up: what is killed ends when it runs
/// next, which takes a while on a busy machine.
const LOOKS: usize = 50;
/// For a family that goes on changing.
const GIVE_UP: Duration = Duration::from_secs(20);
/// Looks for new processes while a family is stopped.
const ROUNDS: usize = 100;
/// A dead child of unknown origin is collected when it has waited this long: its own parent code, if it
/// has any, has had its chance.
const ABANDONED: Duration = Duration::from_secs(2);

/// What the programs of an ended one may take to end by themselves.
pub(crate) const SETTLE: Duration = Duration::from_secs(1);

/// Waits until the family is gone, for about `span`; not at all once `hard` has fired. Looks are counted: on a busy
/// machine the family may not run for a while.
pub(crate) async fn settle(family: &Family, span: Duration, hard: &CancellationToken) {
    for _ in 0..span.as_millis() / LOOK.as_millis() {
        if hard.is_cancelled() || family.living().is_empty() {
            return;
        }
        sleep(LOOK).await;
    }
}

/// TERM, `grace`, KILL. Returns how many are left (uninterruptible, or not ours to signal).
pub(crate) async fn end(family: &Family, grace: Duration, hard: Option<&CancellationToken>) -> usize {
    let mut seen: HashMap<i32, Stat> = HashMap::new();
    let note = |living: &[Stat], seen: &mut HashMap<i32, Stat>| {
        seen.extend(living.iter().map(|s| (s.pid, *s)));
    };
    let mut living = family.living();
    note(&living, &mut seen);
    let is_hard = || hard.is_some_and(CancellationToken::is_cancelled);
    if !is_hard() {
        let mut signalled = SignalledProcesses::new();
        signal_in_order(living.clone(), Signal::TERM, &mut signalled);
        group(family, Signal::TERM);
        let until = Instant::now() + grace;
        while !living.is_empty() && Instant::now() < until && !is_hard() {
            sleep(LOOK).await;
            living = family.living();
            note(&living, &mut seen);
            signal_in_order(living.clone(), Signal::TERM, &mut signalled);
        }
    }
    for s in seen.values().filter(|s| !family.roots.iter().any(|(pid, _)| *pid == s.pid)) {
        collect(s);
    }
    let last = family.clone();
    // It reads much of `/proc`, and waits. What was started a moment ago is perhaps not known yet.
    tokio::task::spawn_blocking(move || finish_off(&last)).await.unwrap_or(living.len())
}

/// The programs that a signal was sent to: a process (pid and start) and the stack of the program that it ran then.
pub(crate) type SignalledProcesses = HashSet<(i32, u64, u64)>;

/// Signals each program once, parents first: a shell whose child dies before it has the signal itself would go
/// on with the next part of its list. A process that has begun another program since is signalled again: between
/// `fork` and `exec` it has its parent's handler, and what that handler took in is lost with the `exec`.
pub(crate) fn signal_in_order(mut living: Vec<Stat>, signal: Signal, signalled: &mut SignalledProcesses) {
    living.sort_by_key(|s| (s.start, s.pid));
    for s in living {
        if signalled.insert((s.pid, s.start, s.stack)) {
            proc_fs::signal(&s, signal);
        }
    }
}

/// KILL, without waiting for the end. For the last moment.
pub(crate) fn kill_now(family: &Family) {
    let _first = Priority::raise();
    end_namespaces(family);
    // A thread follows, or nothing can wait here.
    for s in stop(family, 2) {
        proc_fs::signal(&s, Signal::KILL);
    }
    group(family, Signal::KILL);
}

/// Ends a family for good: stops it, kills it until a look finds none of it, and collects its dead. Blocks until none is
/// left, at most [`GIVE_UP`]; returns how many are, when they do not end (uninterruptible, or not ours to
/// signal).
pub(crate) fn finish_off(family: &Family) -> usize {
    let _first = Priority::raise();
    let began = Instant::now();
    let mut seen: HashMap<i32, Stat> = HashMap::new();
    let (mut before, mut same, mut none) = (Vec::new(), 0, 0);
    end_namespaces(family);
    let left = loop {
        let living = stop(family, ROUNDS);
        if living.is_empty() {
            none += 1;
            // A list of processes that change can lack one.
            if none == 2 {
                break 0;
            }
            mark::settled(&family.roots);
        } else {
            none = 0;
        }
        for s in &living {
            proc_fs::signal(s, Signal::KILL);
        }
        group(family, Signal::KILL);
        seen.extend(living.iter().map(|s| (s.pid, *s)));
        let now: Vec<(i32, u64)> = living.iter().map(|s| (s.pid, s.start)).collect();
        same = if now == before { same + 1 } else { 0 };
        if same >= LOOKS || began.elapsed() > GIVE_UP {
            break now.len();
        }
        before = now;
        std::thread::park_timeout(if same == 0 { SOON } else { LOOK });
    };
    seen.values().filter(|s| !family.roots.iter().any(|(pid, _)| *pid == s.pid)).for_each(collect);
    left
}

/// Ends all that this process has started and adopted, and waits until none is left. For a process that does nothing else.
/// Returns how many could not be ended.
pub fn end_children() -> usize {
    let me = std::process::id().cast_signed();
    for _ in 0..LOOKS {
        // The orphans among the descendants have become children, so without a child there is none. To list all processes
        // of the machine takes some milliseconds.
        if !has_children() {
            return 0;
        }
        let living = proc_fs::all().into_iter().filter(|s| s.parent == me && !s.dead());
        let roots: Vec<(i32, u64)> = living.map(|s| (s.pid, s.start)).collect();
        if roots.is_empty() && !cfg!(target_os = "linux") {
            return 0;
        }
        let left = finish_off(&Family { roots, ..Family::default() });
        if left > 0 {
            return left;
        }
        std::thread::park_timeout(SOON);
    }
    0
}

/// Takes the status of children that have ended. False: there are no others.
fn has_children() -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return true,
            Err(e) => return e != rustix::io::Errno::CHILD,
        }
    }
}

/// Between two looks at a family that ends.
const SOON: Duration = Duration::from_millis(2);

/// Stops all of a family, and what it started meanwhile, until one of `rounds` looks finds nothing new: a stopped process starts
/// nothing, so it can be killed afterwards however fast it was. Gives what lives.
fn stop(family: &Family, rounds: usize) -> Vec<Stat> {
    let mut stopped: HashSet<(i32, u64)> = HashSet::new();
    let mut living = family.living();
    for _ in 0..rounds {
        let fresh = living.iter().filter(|s| s.state != b'T' && stopped.insert((s.pid, s.start)));
        let fresh: Vec<&Stat> = fresh.collect();
        if fresh.is_empty() {
            break;
        }
        fresh.iter().for_each(|s| _ = proc_fs::signal(s, Signal::STOP));
        living = family.living();
    }
    living
}

/// Ends the number spaces of processes that a family has, each with all that is in it: the kernel does so when the first of
/// it ends, and nothing can be started there meanwhile.
fn end_namespaces(family: &Family) {
    let living = family.living();
    let root = |pid: i32| family.roots.iter().any(|(root, _)| *root == pid);
    // The first of a space is a child of what made it.
    for s in living.iter().filter(|s| root(s.parent) && proc_fs::leads_namespace(s.pid)) {
        proc_fs::signal(s, Signal::KILL);
    }
}

/// Lets this thread run before others where the system permits that (an administrator): among thousands of processes it
/// would hardly run otherwise.
pub(super) struct Priority(Option<i32>);

impl Priority {
    pub(super) fn raise() -> Self {
        #[cfg(target_os = "linux")]
        {
            // No number: this thread alone (setpriority(2), Linux).
            let before = rustix::process::getpriority_process(None).ok();
            Self(before.filter(|_| rustix::process::setpriority_process(None, FIRST).is_ok()))
        }
        #[cfg(not(target_os = "linux"))]
        Self(None)
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(before) = self.0 {
            let _ = rustix::process::setpriority_process(None, before);
        }
    }
}

/// The highest priority of ordinary processes.
#[cfg(target_os = "linux")]
const FIRST: i32 = -20;

/// Where there is no `/proc`, the groups are all that can be reached.
fn group(family: &Family, signal: Signal) {
    if cfg!(target_os = "linux") {
        return;
    }
    for (pid, _) in &family.roots {
        if let Some(pid) = Pid::from_raw(*pid) {
            let _ = rustix::process::kill_process_group(pid, signal);
        }
    }
}

/// Collects a dead process that came to us as the nearest reaper.
fn collect(was: &Stat) {
    let me = std::process::id().cast_signed();
    let now = proc_fs::stat(was.pid);
    if now.is_some_and(|s| s.start == was.start && s.dead() && s.parent == me) {
        let _ = rustix::process::waitpid(Pid::from_raw(was.pid), WaitOptions::NOHANG);
    }
}

/// Makes this process the subreaper of its descendants (Linux), so that orphans stay in its process tree.
pub(crate) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            if let Err(e) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
                tracing::warn!(error = %e, "orphans cannot be adopted");
            }
        });
    }
}

/// Zombie children, with the time at which each was first seen.
#[derive(Debug, Default)]
pub(crate) struct Zombies(Mutex<HashMap<(i32, u64), Instant>>);

impl Zombies {
    /// Collects what a program that has just ended left dead. Blocks for as long as [`ABANDONED`].
    pub(crate) fn reap(&self) {
        if cfg!(target_os = "linux") {
            self.sweep(&[]);
            let until = Instant::now() + ABANDONED;
            while let Some(left) = until.checked_duration_since(Instant::now()) {
                std::thread::park_timeout(left + LOOK);
            }
            self.sweep(&[]);
        }
    }

    /// Collects orphans that died on their own. Only those of a foreign session that have waited for long:
    /// children that other code of this program started share its session or are collected by it at once.
    pub(crate) fn sweep(&self, leaders: &[(i32, u64)]) {
        let me = std::process::id().cast_signed();
        let Some(own) = proc_fs::stat(me).map(|s| s.session) else { return };
        let mut first = lock(&self.0);
        let dead: Vec<Stat> = proc_fs::all()
            .into_iter()
            .filter(|s| s.dead() && s.parent == me && s.session != own)
            .filter(|s| !leaders.contains(&(s.pid, s.start)))
            .collect();
        first.retain(|key, _| dead.iter().any(|s| (s.pid, s.start) == *key));
        let now = Instant::now();
        for s in dead {
            let since = *first.entry((s.pid, s.start)).or_insert(now);
            if now.duration_since(since) >= ABANDONED {
                collect(&s);
            }
        }
    }
}
