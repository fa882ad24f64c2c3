//! Which process a container belongs to, and the removal of those whose process is gone.

use std::process::{Command, Stdio};

use tiller_tool::shell::Launch;

/// Labels of our containers.
const OWNER: &str = "tiller.owner";
const MACHINE: &str = "tiller.machine";
const TERMINAL: &str = "tiller.terminal";

/// The labels of a container that this process starts.
pub(crate) fn labels(terminal: &str) -> [(&'static str, String); 3] {
    [(OWNER, process()), (MACHINE, machine()), (TERMINAL, terminal.to_owned())]
}

/// This process: its number and when it started.
fn process() -> String {
    let pid = std::process::id();
    format!("{pid}.{}", start_of(pid).unwrap_or_default())
}

/// When a process started, in ticks since the machine did; `None`: there is no such process.
fn start_of(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold blanks.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19).map(str::to_owned)
}

/// This machine since its start, as far as process numbers mean the same.
fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let numbers =
        std::fs::read_link("/proc/self/ns/pid").map(|p| p.display().to_string()).unwrap_or_default();
    let digits: String = numbers.chars().filter(char::is_ascii_digit).collect();
    format!("{}.{digits}", boot.trim())
}

/// Whether the process of a label is gone for sure.
fn gone(owner: &str, of: &str) -> bool {
    let Some((pid, start)) = owner.split_once('.') else { return false };
    let Ok(pid) = pid.parse() else { return false };
    of == machine() && !start.is_empty() && start_of(pid).as_deref() != Some(start)
}

/// Removes the containers of processes that are gone. Blocks; returns how many.
pub(crate) fn sweep(program: &Launch) -> usize {
    let run = |args: &[&str]| {
        let mut command = Command::new(&program.program);
        command.args(args).env_clear().envs(program.env.iter().map(|(k, v)| (k, v))).current_dir("/");
        command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()
    };
    let filter = format!("label={OWNER}");
    let Some(out) = run(&["ps", "--all", "--quiet", "--filter", &filter]) else { return 0 };
    let label = |name: &str| format!("{{{{ index .Config.Labels \"{name}\" }}}}");
    let format = format!("{} {}", label(OWNER), label(MACHINE));
    let mut removed = 0;
    for id in String::from_utf8_lossy(&out.stdout).split_whitespace() {
        let Some(labels) = run(&["container", "inspect", "--format", &format, id]) else { continue };
        let labels = String::from_utf8_lossy(&labels.stdout).into_owned();
        if let [owner, of] = labels.split_whitespace().collect::<Vec<_>>()[..]
            && gone(owner, of)
            && run(&["rm", "--force", id]).is_some_and(|out| out.status.success())
        {
            removed += 1;
        }
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processes_that_are_gone_for_sure_count_as_gone() {
        let (me, here) = (process(), machine());
        assert!(!gone(&me, &here));
        let other = format!("{}.1", std::process::id());
        assert!(gone(&other, &here), "the number is used again");
        assert!(!gone(&other, "another machine"));
        for unknown in ["", "x.1", "1.", "17"] {
            assert!(!gone(unknown, &here), "{unknown:?}");
        }
        assert!(gone("4294967.5", &here));
    }
}
