//! Identifies a process by pid, start time and boot, so that its end is noticed although pids are reused.

use std::fs;

/// A process, identified permanently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// Clock ticks after boot (field 22 of `/proc/PID/stat`); empty where there is no such file.
    pub start: String,
    /// The boot, as the kernel names it.
    pub boot: String,
    /// The PID namespace; a process of another one cannot be checked from here.
    pub space: String,
}

impl Process {
    /// This process.
    pub fn current() -> Self {
        let pid = std::process::id();
        Self { pid, start: start_of(pid).unwrap_or_default(), boot: boot(), space: space() }
    }

    /// Whether it still runs. A zombie does not. A process of another PID namespace counts as alive, because it cannot
    /// be checked.
    pub fn alive(&self) -> bool {
        if self.boot != boot() {
            return false;
        }
        if self.space != space() {
            return true;
        }
        if cfg!(target_os = "linux") {
            return start_of(self.pid).is_some_and(|start| start == self.start);
        }
        i32::try_from(self.pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw)
            .is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
    }
}

/// Start time of a living process; `None` for ended ones and zombies.
fn start_of(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may contain anything: fields are counted after the last parenthesis.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X" | "x") {
        return None;
    }
    // Field 22 of the file; the state was field 3.
    fields.nth(18).map(Into::into)
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map_or_else(|_| String::new(), |s| s.trim().into())
}

fn space() -> String {
    fs::read_link("/proc/self/ns/pid").map_or_else(|_| String::new(), |p| p.to_string_lossy().into_owned())
}
