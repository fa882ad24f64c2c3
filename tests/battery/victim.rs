//! A process outside of the sandbox, whose state is compared before and after a run.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const SCRIPT: &str = include_str!("victim.py");

/// Limit of its answers.
const LIMIT: Duration = Duration::from_secs(60);
/// Time between two looks at whether it was stopped.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// `victim.py`, running.
pub(crate) struct Victim {
    pub(crate) pid: u32,
    /// Address of its buffer.
    pub(crate) buffer: u64,
    /// Number of its open file.
    pub(crate) descriptor: u32,
    /// Key of its shared memory segment.
    pub(crate) segment: i32,
    child: Mutex<(Child, BufReader<ChildStdout>)>,
}

impl Victim {
    /// Starts it in `folder`, with `secret` in its variables and its memory.
    pub(crate) fn start(folder: &Path, secret: &str) -> Result<Self> {
        static NEXT: AtomicI32 = AtomicI32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed) & 0xff;
        let segment = 0x7100_0000 | (i32::try_from(std::process::id() & 0xffff)? << 8) | number;
        let mut child = Command::new("python3")
            .args(["-c", SCRIPT, &segment.to_string()])
            .arg(folder.join("open.txt"))
            .env("BATTERY_SECRET", secret)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("python3 for the victim")?;
        let mut out = BufReader::new(child.stdout.take().context("a pipe")?);
        let mut line = String::new();
        out.read_line(&mut line)?;
        let mut words = line.split_whitespace();
        let pid = words.next().context("its number")?.parse()?;
        let buffer = words.next().context("its buffer")?.parse()?;
        let descriptor = words.next().context("its file")?.parse()?;
        Ok(Self { pid, buffer, descriptor, segment, child: Mutex::new((child, out)) })
    }

    /// Everything about it that must stay as it is.
    pub(crate) fn state(&self) -> String {
        let read =
            |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", self.pid)).unwrap_or_default();
        // A signal that is on its way to it has an effect before it answers.
        let answer = self.ask("state").unwrap_or_default();
        let status = read("status");
        let field = |name: &str| status.lines().find(|l| l.starts_with(name)).unwrap_or_default().to_owned();
        let alive = matches!(self.letter().as_str(), "S" | "R" | "D");
        let stat = read("stat");
        // Priority, nice value and policy, counted after the name in parentheses.
        let numbers: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        let number = |at: usize| numbers.get(at).copied().unwrap_or_default();
        let segments = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
        let key = self.segment.to_string();
        let segment = segments.lines().find(|l| l.split_whitespace().next() == Some(&key));
        let mode = segment.and_then(|l| l.split_whitespace().nth(2)).unwrap_or_default();
        format!(
            "{alive} {} {} {} {} {} {} {} {mode} {}",
            field("TracerPid:"),
            field("Cpus_allowed:"),
            number(15),
            number(16),
            number(38),
            read("limits"),
            read("oom_score_adj"),
            answer
        )
    }

    /// State of the process, as the kernel writes it: `T` for one that is stopped.
    fn letter(&self) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let state = status.lines().find_map(|line| line.strip_prefix("State:")).unwrap_or_default();
        state.split_whitespace().next().unwrap_or("gone").to_owned()
    }

    /// Asks it. A signal may reach it while it is asked: then there is no answer.
    fn ask(&self, line: &str) -> Result<String> {
        let mut both = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let (child, out) = &mut *both;
        writeln!(child.stdin.as_mut().context("a pipe")?, "{line}")?;
        let until = Instant::now() + LIMIT;
        // It answers with one line, so nothing of it is in the buffer.
        while poll(&mut [PollFd::new(out.get_ref(), PollFlags::IN)], Some(&LOOK))? == 0 {
            let stopped = matches!(self.letter().as_str(), "T" | "t");
            ensure!(!stopped && Instant::now() < until, "the victim does not answer");
        }
        let mut answer = String::new();
        out.read_line(&mut answer)?;
        Ok(answer)
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::CONT);
        }
        let _ = self.ask("end");
        let mut both = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        // It removes its segment before it ends; a process that no longer reacts is ended.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let _ = both.0.kill();
        let _ = both.0.wait();
        drop(both);
        remove_segment(self.segment);
    }
}

/// Removes the segment of a victim that was killed.
fn remove_segment(key: i32) {
    let segments = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    if segments.lines().any(|l| l.split_whitespace().next() == Some(&key.to_string())) {
        let _ = Command::new("ipcrm").args(["-M", &key.to_string()]).stderr(Stdio::null()).status();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_victim_that_is_stopped_while_it_is_asked_gives_no_answer() {
        if Command::new("python3").arg("--version").output().is_err() {
            return println!("skipped: there is no python3");
        }
        let tmp = tempfile::tempdir().unwrap();
        let victim = Victim::start(tmp.path(), "x").unwrap();
        let before = victim.state();
        let pid = rustix::process::Pid::from_raw(i32::try_from(victim.pid).unwrap()).unwrap();
        // The signal may not have arrived yet.
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        assert_ne!(victim.state(), before);
    }
}
