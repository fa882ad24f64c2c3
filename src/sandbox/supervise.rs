//! One confined command from its start to its end: signals reach it, nothing of it stays behind, protected files are
//! compared. For commands that are not run by a shell of the workbench, which has a supervision of its own.

use std::collections::HashSet;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tiller_tool::shell::{BlockedAction, CommandWatch, Launch};

use crate::confine::Confined;
use crate::quarantine::{Guard, Violation};

/// How long leftover processes are looked for and ended.
const LEFTOVERS: Duration = Duration::from_secs(2);

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit code, or 128 + signal.
    pub code: i32,
    /// Protected files that it changed.
    pub violations: Vec<Violation>,
    /// What it was refused, as far as its supervisor saw it.
    pub blocked: Vec<BlockedAction>,
    /// Processes that could not be ended.
    pub left: usize,
}

/// Runs the launch and waits. Standard input and output are those of this process. `quarantine`: where changed
/// protected files are kept.
///
/// The whole process becomes the parent of orphans and passes signals on: it is for a process that does nothing else.
///
/// # Errors
/// When the command cannot be started, or a protected file cannot be read.
pub fn run(confined: &Confined, launch: Launch, quarantine: &Path) -> io::Result<Ended> {
    let confined = &confined.for_launch(&launch);
    let guard = match confined.needs_quarantine() {
        true => {
            let paths = confined.policy.protected_paths();
            Some(Guard::record(&paths)?.judging(confined.policy.git_configurations(&paths)))
        }
        false => None,
    };
    adopt_orphans()?;
    let watch = CommandWatch::default();
    let launch = confined.watched(launch, &watch);
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let mut child = Command::new(&launch.program)
        .args(&launch.args)
        .env_clear()
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&launch.folder)
        .spawn()?;
    let pid = Pid::from_child(&child);
    let handle = signals.handle();
    // Ends when the handle is closed, below.
    let relay = std::thread::spawn(move || {
        for signal in &mut signals {
            if let Some(signal) = Signal::from_named_raw(signal) {
                let _ = rustix::process::kill_process(pid, signal);
            }
        }
    });
    let status = child.wait();
    let left = end_leftovers();
    handle.close();
    let _ = relay.join();
    let violations = guard.map_or_else(Vec::new, |guard| guard.restore(quarantine));
    Ok(Ended { code: code(status?), violations, blocked: watch.blocked.take(), left })
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

#[cfg(target_os = "linux")]
fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

#[cfg(not(target_os = "linux"))]
fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// Ends all descendants of this process, which has adopted the orphans among them and has waited for the command.
/// Returns how many are left.
fn end_leftovers() -> usize {
    let until = Instant::now() + LEFTOVERS;
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    loop {
        // The orphans among the descendants have become children, so without a child there is no descendant. To list all
        // processes of the machine takes some milliseconds.
        if cfg!(target_os = "linux") && !has_children() {
            return 0;
        }
        let living = descendants(own);
        for pid in &living {
            if let Some(pid) = Pid::from_raw(*pid) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
        while matches!(rustix::process::wait(WaitOptions::NOHANG), Ok(Some(_))) {}
        if living.is_empty() || Instant::now() > until {
            return living.len();
        }
        if let Some(pid) = living.first().and_then(|pid| Pid::from_raw(*pid)) {
            // Where it cannot be waited for, they are looked for again at once.
            let _ = crate::wait::ended(pid, Duration::from_millis(20));
        }
    }
}

/// Takes the status of children that have ended. False: there are no others.
fn has_children() -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(e) => return e != Errno::CHILD,
        }
    }
}

/// Processes below `root`, zombies included.
fn descendants(root: i32) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let parents: Vec<(i32, i32)> = entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read(entry.path().join("stat")).ok()?;
            // The name is in parentheses and may contain anything; state and parent follow its end.
            let after = stat.iter().rposition(|byte| *byte == b')')? + 2;
            let text = String::from_utf8_lossy(&stat[after..]).into_owned();
            Some((pid, text.split(' ').nth(1)?.parse().ok()?))
        })
        .collect();
    let mut found = HashSet::from([root]);
    loop {
        let before = found.len();
        let below = |parent: &i32| found.contains(parent);
        let more: Vec<i32> =
            parents.iter().filter(|(_, parent)| below(parent)).map(|(pid, _)| *pid).collect();
        found.extend(more);
        if found.len() == before {
            break;
        }
    }
    found.remove(&root);
    found.into_iter().collect()
}
