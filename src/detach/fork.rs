//! Splits the process in two: the parent remains the shell's job, the child continues as the host.

use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::process::Pid;

use super::client::{Client, ClientExit};
use super::crash_report::CrashReport;

/// The process in which [`split`] returned.
pub(crate) enum Fork {
    /// In the host: its end of the connection to its client.
    Host(UnixStream),
    /// In the client, when it ends.
    Client(ClientExit),
    /// The process was not split, for this reason: the workbench ends with its terminal.
    Alone(String),
}

/// Splits the process. In the client this returns only at its end. `reports`: the folder for crash reports.
pub(crate) fn split(inline: bool, reports: &Path) -> Fork {
    if !alone() {
        return Fork::Alone("more than one thread is already running".into());
    }
    // Both ends are close-on-exec: children of the host must not keep the connection open.
    let (mine, theirs) = match UnixStream::pair() {
        Ok(pair) => pair,
        Err(e) => return Fork::Alone(format!("two processes cannot be connected: {e}")),
    };
    let before = rustix::termios::tcgetattr(std::io::stdin()).ok();
    let report = CrashReport::new(reports.to_owned());
    // After a fork only the calling thread exists, and locks that other threads held stay locked. Here there are no
    // other threads.
    match fork::fork() {
        Ok(fork::Fork::Child) => {
            drop(mine);
            report.keep();
            // A session of its own: the shell's signals and the hang-up of the terminal go to the client.
            if let Err(e) = rustix::process::setsid() {
                tracing::debug!(error = %e, "a new session could not be created");
            }
            Fork::Host(theirs)
        }
        Ok(fork::Fork::Parent(pid)) => {
            drop(theirs);
            Fork::Client(Client::of(mine, Pid::from_raw(pid), inline, before, report).run())
        }
        Err(e) => Fork::Alone(format!("a second process cannot be started: {e}")),
    }
}

/// Whether this is the only thread. Where that cannot be determined, it holds by construction: `main` comes here first.
fn alone() -> bool {
    std::fs::read_dir("/proc/self/task").map_or(!cfg!(target_os = "linux"), |tasks| tasks.count() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_other_threads_run_nothing_is_forked() {
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || wait.recv().is_ok());
        if cfg!(target_os = "linux") {
            assert!(!alone());
            assert!(matches!(split(false, Path::new("/nowhere")), Fork::Alone(_)));
        }
        drop(stop);
        other.join().unwrap();
    }
}
