//! The processes of one run, found by the token in their command lines.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long a process may be seen after the end of the command without counting as left: on a busy machine one that was
/// killed takes its time to end.
const GRACE: Duration = Duration::from_secs(3);
/// How long the file `beat` may stay as it is although its process lives.
const BEAT: Duration = Duration::from_secs(1);

/// Numbers of the processes (not zombies) whose command lines contain `token`.
pub(crate) fn with(token: &str) -> Vec<u32> {
    let own = std::process::id();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .filter(|p| *p != own)
        .filter(|p| {
            std::fs::read(format!("/proc/{p}/cmdline"))
                .is_ok_and(|line| memchr::memmem::find(&line, token.as_bytes()).is_some())
        })
        .collect()
}

/// Command lines of the processes of [`with`].
pub(crate) fn lines(token: &str) -> Vec<String> {
    let line = |p: u32| std::fs::read(format!("/proc/{p}/cmdline")).unwrap_or_default();
    with(token).into_iter().map(|p| String::from_utf8_lossy(&line(p)).replace('\0', " ")).collect()
}

/// Whether a process with `token` is alive after the time of grace, or `beat` still grows: a process that starts itself
/// again has a new number each time, and may be missed.
pub(crate) fn survive(token: &str, beat: &Path) -> bool {
    let length = || std::fs::metadata(beat).map_or(0, |m| m.len());
    let end = Instant::now() + GRACE;
    let (mut last, mut still) = (length(), Instant::now());
    while Instant::now() < end && (still.elapsed() < BEAT && last > 0 || !with(token).is_empty()) {
        std::thread::sleep(Duration::from_millis(10));
        if length() != last {
            (last, still) = (length(), Instant::now());
        }
    }
    let before = length();
    if before > 0 {
        std::thread::sleep(BEAT);
    }
    length() > before || !with(token).is_empty()
}

/// Ends what is left of a run.
pub(crate) fn end(token: &str) {
    // What starts itself again is faster than one look.
    for _ in 0..2_000 {
        let left = with(token);
        for process in &left {
            if let Some(pid) = i32::try_from(*process).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        if left.is_empty() && with(token).is_empty() {
            return;
        }
    }
}
