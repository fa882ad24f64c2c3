//! A mark on a process that all that it starts inherits, whatever session, parent and environment they choose.
//!
//! A variable of the environment is gone with `env -i`, a session with `setsid`, the parent with a second `fork`. Limits
//! stay (getrlimit(2): inherited by `fork`, kept by `exec`). The one on the time of real-time processes counts
//! microseconds and holds for those only; a number of some thousand years limits none of them, so it can name a family.
//! A process can lower it and is then known by the rest, as where there is no such limit.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tiller_protocol::lock;

use crate::shell::processes::proc_fs;

/// No program asks for such a limit: 2^61 microseconds are 73,000 years.
const BASE: u64 = 1 << 61;
/// Bits of the number of a process (Linux: at most 2^22).
const PID: u32 = 22;

/// The mark of the family of this root: its number and its start.
pub(crate) fn value((pid, start): (i32, u64)) -> u64 {
    BASE | (start & ((1 << 38) - 1)) << PID | u64::from(pid.unsigned_abs()) & ((1 << PID) - 1)
}

/// True if it is the mark of a root with this number, whenever that started.
pub(crate) fn is_of(mark: u64, pid: i32) -> bool {
    mark & ((1 << PID) - 1) == u64::from(pid.unsigned_abs())
}

/// The root that is started and marked now: a process without a mark is not another root then.
static STARTING: (Mutex<Starting>, Condvar) = (Mutex::new(Starting::No), Condvar::new());

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Starting {
    No,
    /// It has no number yet, or belongs to no family.
    Yes,
    Root((i32, u64)),
}

/// Waits until a state of [`STARTING`] is over.
fn wait_while(over: impl Fn(Starting) -> bool) -> MutexGuard<'static, Starting> {
    let mut now = lock(&STARTING.0);
    while over(*now) {
        now = STARTING.1.wait(now).unwrap_or_else(PoisonError::into_inner);
    }
    now
}

/// Held from before the start of a root until all that it has started meanwhile is marked.
struct Turn;

impl Turn {
    fn take() -> Self {
        *wait_while(|now| now != Starting::No) = Starting::Yes;
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *lock(&STARTING.0) = Starting::No;
        STARTING.1.notify_all();
    }
}

/// Looks at threads that may be within a `fork`, and the first ones, which follow each other fast: 10 ms in all, on a busy
/// machine more. Other roots start afterwards.
#[cfg(target_os = "linux")]
const LOOKS: [u32; 2] = [28, 20];
/// Between two of the first ones, and of the others, in microseconds.
#[cfg(target_os = "linux")]
const PAUSES: [u64; 2] = [100, 1_000];
/// Looks for processes without a mark; each but the last found one.
#[cfg(target_os = "linux")]
const SCANS: usize = 100;

/// Starts a root with `start`, which gives it with its number, and marks it. What it has started meanwhile is marked soon, on a
/// thread: [`settled`] waits for that. One that has a mark keeps it. Best effort.
///
/// # Errors
/// Those of `start`.
pub(crate) fn starting<T, E>(start: impl FnOnce() -> Result<(T, i32), E>) -> Result<(T, (i32, u64)), E> {
    let turn = Turn::take();
    let (started, pid) = start()?;
    let root = (pid, proc_fs::stat(pid).map_or(0, |s| s.start));
    #[cfg(target_os = "linux")]
    if let Some(mut marking) = Marking::begin(root) {
        *lock(&STARTING.0) = Starting::Root(root);
        let job = move || {
            marking.finish();
            drop(turn);
        };
        let thread = std::thread::Builder::new().name("tiller-mark".into()).stack_size(128 << 10);
        if let Err(error) = thread.spawn(job) {
            tracing::warn!(%error, "what a program starts in its first moments is perhaps not known");
        }
    }
    #[cfg(not(target_os = "linux"))]
    drop(turn);
    Ok((started, root))
}

/// Starts a process of this program's own, which belongs to no family, while none is being marked.
pub fn apart<T>(start: impl FnOnce() -> T) -> T {
    let _turn = Turn::take();
    start()
}

/// Waits until what these roots have started is marked: some milliseconds after a start, on a busy machine more.
pub(crate) fn settled(roots: &[(i32, u64)]) {
    drop(wait_while(|now| matches!(now, Starting::Root(root) if roots.contains(&root))));
}

/// A root whose processes are being marked.
#[cfg(target_os = "linux")]
struct Marking {
    root: (i32, u64),
    marked: std::collections::HashSet<i32>,
    forking: Forking,
}

#[cfg(target_os = "linux")]
impl Marking {
    /// Marks the root itself. `None`: that is not possible here, or it has a mark.
    fn begin(root: (i32, u64)) -> Option<Self> {
        if of(root.0).is_some() || !put(root.0, value(root)) {
            return None;
        }
        let mut forking = Forking::default();
        forking.add(root.0);
        Some(Self { root, marked: std::collections::HashSet::from([root.0]), forking })
    }

    /// Marks what it has started before.
    fn finish(&mut self) {
        let me = std::process::id().cast_signed();
        let own = proc_fs::stat(me).map_or(0, |s| s.session);
        let mut looks = 0;
        for _ in 0..SCANS {
            while looks < LOOKS[0] && !self.forking.none() {
                looks += 1;
                let pause = PAUSES[usize::from(looks > LOOKS[1])];
                std::thread::park_timeout(std::time::Duration::from_micros(pause));
            }
            let Some(last) = last_number() else { return };
            let since: Vec<proc_fs::Stat> = if last >= self.root.0 {
                (self.root.0 + 1..=last).filter_map(proc_fs::stat).collect()
            } else {
                // The numbers have begun anew.
                proc_fs::all()
            };
            let mut found = false;
            for s in since.iter().filter(|s| s.start >= self.root.1) {
                let ours = s.parent == me && s.session != own || self.marked.contains(&s.parent);
                if ours && !self.marked.contains(&s.pid) && of(s.pid).is_none() {
                    found = true;
                    if put(s.pid, value(self.root)) {
                        self.marked.insert(s.pid);
                        self.forking.add(s.pid);
                    }
                }
            }
            // Whatever the marked ones start from now on has the mark.
            if !found {
                return;
            }
        }
    }
}

/// Threads of marked processes that may be within a `fork` that began before the mark: what comes of it has none. A thread
/// that sleeps, has stopped or is dead is in no `fork`; one that has run for longer than a `fork` takes is not in that one.
#[cfg(target_os = "linux")]
#[derive(Default)]
struct Forking(Vec<(i32, proc_fs::Stat)>);

#[cfg(target_os = "linux")]
impl Forking {
    /// Clock ticks that a thread runs, at least, until a `fork` is over that it had begun.
    const LONG: u64 = 2;

    /// The threads of a process that was marked just now.
    fn add(&mut self, pid: i32) {
        self.0.extend(proc_fs::threads(pid).into_iter().map(|thread| (pid, thread)));
    }

    /// True if there is none any more.
    fn none(&mut self) -> bool {
        self.0.retain(|(pid, before)| {
            let now = proc_fs::thread(*pid, before.pid);
            now.is_some_and(|now| matches!(now.state, b'R' | b'D') && now.ran < before.ran + Self::LONG)
        });
        self.0.is_empty()
    }
}

/// Marks a process. False: that is not possible here.
#[cfg(target_os = "linux")]
fn put(pid: i32, mark: u64) -> bool {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let mark = Some(mark);
    prlimit(Pid::from_raw(pid), Resource::Rttime, Rlimit { current: mark, maximum: mark }).is_ok()
}

/// The number that was given to a process or thread last: the end of `/proc/loadavg`.
#[cfg(target_os = "linux")]
fn last_number() -> Option<i32> {
    let load = std::fs::read_to_string("/proc/loadavg").ok()?;
    load.split_ascii_whitespace().last()?.parse().ok()
}

/// The mark of a process; `None`: it has none, or is gone.
pub(crate) fn of(pid: i32) -> Option<u64> {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    // `Max realtime timeout      SOFT                 HARD                 us`
    let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"))?;
    let mark: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    (mark >> 60 == BASE >> 60).then_some(mark)
}

#[cfg(test)]
mod tests {
    /// A process of another session, with another parent and an empty environment, that holds no pipe.
    #[cfg(target_os = "linux")]
    #[test]
    fn an_orphan_without_environment_is_known() {
        use super::{Marking, of, value};
        use crate::shell::processes::proc_fs::{self, Family};
        use std::io::BufRead;
        crate::shell::processes::end::adopt_orphans();
        let script =
            "read go; env -i /usr/bin/setsid /bin/sh -c 'sleep 60 >/dev/null 2>&1 </dev/null & echo $!'";
        let mut root = std::process::Command::new("sh")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = root.id().cast_signed();
        let known = (pid, proc_fs::stat(pid).unwrap().start);
        Marking::begin(known).unwrap().finish();
        assert_eq!(of(pid), Some(value(known)));
        drop(root.stdin.take());
        let mut line = String::new();
        std::io::BufReader::new(root.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let orphan: i32 = line.trim().parse().unwrap();
        root.wait().unwrap();
        let has = |roots, ended| {
            let family = Family { roots, ended, ..Family::default() };
            family.living().iter().any(|s| s.pid == orphan)
        };
        assert!(has(vec![known], Vec::new()));
        assert!(has(Vec::new(), vec![pid]));
        assert!(!has(vec![(pid, known.1 + 1)], vec![1]), "another's");
        let stat = proc_fs::stat(orphan).unwrap();
        proc_fs::signal(&stat, rustix::process::Signal::KILL);
    }
}
