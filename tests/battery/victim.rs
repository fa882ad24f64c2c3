//! A process outside of the sandbox, whose state is compared before and after a run.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};

const SCRIPT: &str = include_str!("victim.py");

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
        let status = read("status");
        let field = |name: &str| status.lines().find(|l| l.starts_with(name)).unwrap_or_default().to_owned();
        let letter = field("State:").split_whitespace().nth(1).unwrap_or("gone").to_owned();
        let alive = matches!(letter.as_str(), "S" | "R" | "D");
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
            if alive { self.ask("state").unwrap_or_default() } else { String::new() }
        )
    }

    fn ask(&self, line: &str) -> Result<String> {
        let mut both = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let (child, out) = &mut *both;
        writeln!(child.stdin.as_mut().context("a pipe")?, "{line}")?;
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
