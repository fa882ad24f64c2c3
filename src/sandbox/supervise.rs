//! One confined command from its start to its end: signals reach it, nothing of it stays behind, protected files are
//! compared. For commands that are not run by a shell of the workbench, which has a supervision of its own.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tiller_tool::shell::{BlockedAction, CommandWatch, Launch};

use crate::confine::Confined;
use crate::git::Repositories;
use crate::quarantine::{Guard, Violation};

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit code, or 128 + signal.
    pub code: i32,
    /// Lines about protected files that it changed and that were put back.
    pub restored: Vec<String>,
    /// Lines about what was not compared after it, and about protected files that it changed and that stay so.
    pub told: Vec<String>,
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
    let confined = &confined.judging().for_launch(&launch);
    let guard = match confined.needs_quarantine() {
        true => {
            let paths = confined.policy.protected_paths();
            Some(Guard::record(&paths)?.judging(confined.policy.git_configurations(&paths)))
        }
        false => None,
    };
    let repositories = Repositories::record(&confined.policy);
    adopt_orphans()?;
    let watch = CommandWatch::default();
    let writes = Arc::default();
    let launch = confined.watched(launch, &watch, &writes);
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
    let left = tiller_tool::shell::end_children();
    handle.close();
    let _ = relay.join();
    let mut violations = repositories.as_ref().map_or_else(Vec::new, |all| all.restore(quarantine));
    violations.extend(guard.into_iter().flat_map(|guard| guard.restore(quarantine)));
    let gap = repositories.as_ref().and_then(Repositories::gap);
    let missed = repositories.as_ref().and_then(|all| all.note_names(&writes));
    let judged = repositories.map(|all| writes.restore(all.tips(), quarantine)).unwrap_or_default();
    let told = gap.into_iter().chain(missed).chain(judged.told()).collect();
    violations.extend(judged.violations);
    let restored = Violation::lines(violations, quarantine);
    Ok(Ended { code: code(status?), restored, told, blocked: watch.blocked.take(), left })
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
