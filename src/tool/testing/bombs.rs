//! Commands that would take the whole machine (row X23 of the fault matrix). Each is bounded by itself: at most some 600
//! processes or threads, which sleep for a minute, and 400 MB of memory.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The resource that a bomb takes too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    Processes,
    Threads,
    Memory,
    /// Nothing that is limited: it does not want to end.
    Time,
}

/// A command of `/bin/sh`.
#[derive(Clone, Debug)]
pub struct Bomb {
    pub name: &'static str,
    pub command: String,
    pub excess: Excess,
    /// Stands in the arguments of each of its processes.
    pub mark: String,
}

/// The promise is two seconds; a busy machine may take ten times as long.
pub const GONE: Duration = Duration::from_secs(20);

/// Processes that those of [`Excess::Processes`] pass.
pub const PROCESSES: u64 = 100;
/// Bytes that those of [`Excess::Memory`] pass.
pub const MEMORY: u64 = 128 << 20;

impl Bomb {
    fn new(name: &'static str, excess: Excess, command: &str) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // A number of seconds, so that `sleep` takes it.
        let mark = format!("57.{:08}{count:04}", std::process::id());
        Self { name, command: command.replace("MARK", &mark), excess, mark }
    }

    /// All of them; those for which this machine has no `python3` are named and left out.
    pub fn all() -> Vec<Self> {
        use Excess::{Memory, Processes, Threads, Time};
        let mut all = vec![
            Self::new(
                "a function that calls itself twice",
                Processes,
                "b() { [ $1 -le 0 ] || { b $(($1-1)) & b $(($1-1)) & }; sleep MARK; }; b 7",
            ),
            Self::new(
                "a loop that starts programs",
                Processes,
                "i=0; while [ $i -lt 500 ]; do sleep MARK & i=$((i+1)); done; wait",
            ),
            Self::new(
                "daemons without parent, session and environment",
                Processes,
                "i=0; while [ $i -lt 300 ]; do (env -i setsid sh -c 'sleep MARK >/dev/null 2>&1 </dev/null &' &); \
                 i=$((i+1)); done; sleep MARK",
            ),
            Self::new(
                "a file in /dev/shm that is closed again",
                Memory,
                "head -c 300000000 /dev/zero >/dev/shm/tiller-MARK; sleep MARK",
            ),
            Self::new(
                "children that come again, without TERM",
                Time,
                "trap '' TERM INT HUP; again() { i=0; while [ $i -lt 100 ]; do sleep MARK; i=$((i+1)); done; }; \
                 again & again & again & again",
            ),
        ];
        let python =
            std::process::Command::new("python3").arg("-c").arg("import os; os.memfd_create").output();
        if !python.is_ok_and(|out| out.status.success()) {
            let why = "skipped: three of eight bombs, since there is no python3 with memfd_create";
            let _ = writeln!(std::io::stderr(), "{why}");
            return all;
        }
        let script = |text: &str| format!("exec python3 -c 'import os, sys, time, threading\n{text}' MARK");
        all.push(Self::new(
            "threads",
            Threads,
            &script(
                "threading.stack_size(65536)\nfor i in range(600): threading.Thread(target=time.sleep, args=(57,)).start()",
            ),
        ));
        all.push(Self::new(
            "a memory file that nothing maps",
            Memory,
            &script("f = os.memfd_create(\"x\")\nfor i in range(300): os.write(f, bytes(1 << 20))\ntime.sleep(57)"),
        ));
        all.push(Self::new("memory", Memory, &script("x = bytearray(b\"x\") * (300 << 20)\ntime.sleep(57)")));
        all
    }

    /// Numbers of its processes.
    pub fn living(&self) -> Vec<i32> {
        let listed = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = listed.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        numbers
            .filter(|pid| {
                let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                line.windows(self.mark.len()).any(|part| part == self.mark.as_bytes())
            })
            .collect()
    }

    /// Waits until it has begun.
    pub async fn begun(&self) {
        let end = Instant::now() + GONE;
        while self.living().is_empty() {
            assert!(Instant::now() < end, "{} does not begin", self.name);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn file(&self) -> PathBuf {
        PathBuf::from(format!("/dev/shm/tiller-{}", self.mark))
    }

    /// Asserts that no process of it is left, and that one can be started. Ends what is left. Gives whether it has left its
    /// file in memory, which is removed.
    pub async fn has_ended(&self) -> bool {
        let end = Instant::now() + GONE;
        let mut left = self.living();
        while !left.is_empty() && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(20)).await;
            left = self.living();
        }
        let kept = self.file().exists();
        let known: Vec<String> = left.iter().take(3).map(|pid| about(*pid)).collect();
        for pid in left.iter().filter_map(|pid| rustix::process::Pid::from_raw(*pid)) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        let _ = std::fs::remove_file(self.file());
        assert!(left.is_empty(), "{}: {} processes are left: {known:?}", self.name, left.len());
        assert!(std::process::Command::new("/bin/true").status().is_ok_and(|status| status.success()));
        kept
    }
}

/// The state of a process that should have ended.
fn about(pid: i32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
    let mark = limits.lines().find(|line| line.contains("realtime timeout")).unwrap_or_default();
    format!("{stat} {mark}")
}
