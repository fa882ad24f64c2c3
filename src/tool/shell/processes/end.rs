//! Ending families of processes, and collecting the dead that came to us.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tiller_protocol::lock;

use rustix::process::{Pid, Signal, WaitOptions};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::shell::processes::proc_fs::{self, Family, Stat};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// After KILL, and looks in this time.
const GIVE_UP: Duration = Duration::from_secs(1);
const LOOKS: usize = 50;
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
    group(family, Signal::KILL);
    // Looks are counted: on a busy machine what is killed may not run for a while, and it ends when it does.
    for _ in 0..LOOKS {
        if living.is_empty() {
            break;
        }
        // Again and again: what is killed may have had time to fork.
        living.iter().for_each(|s| _ = proc_fs::signal(s, Signal::KILL));
        sleep(LOOK).await;
        living = family.living();
        note(&living, &mut seen);
    }
    for s in seen.values() {
        if !family.roots.iter().any(|(pid, _)| *pid == s.pid) {
            collect(s);
        }
    }
    living.len()
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

/// KILL, without waiting. For the last moment.
pub(crate) fn kill_now(family: &Family) {
    for s in family.living() {
        proc_fs::signal(&s, Signal::KILL);
    }
    group(family, Signal::KILL);
}

/// KILL until nothing is left, and collects the dead. Blocks, for a second at most: what was just killed may have
/// forked a moment before.
pub(crate) fn finish_off(family: &Family) {
    let until = Instant::now() + GIVE_UP;
    let mut seen: HashMap<i32, Stat> = HashMap::new();
    loop {
        let living = family.living();
        if living.is_empty() || Instant::now() > until {
            break;
        }
        for s in &living {
            proc_fs::signal(s, Signal::KILL);
        }
        group(family, Signal::KILL);
        seen.extend(living.iter().map(|s| (s.pid, *s)));
        std::thread::park_timeout(LOOK);
    }
    seen.values().filter(|s| !family.roots.iter().any(|(pid, _)| *pid == s.pid)).for_each(collect);
}

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
