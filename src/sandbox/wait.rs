//! Waiting for the end of a process for a limited time, without looking again and again.

use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::process::Pid;

/// The status of the child; `None`: it still runs after `limit`.
///
/// # Errors
/// When it cannot be waited for.
pub(crate) fn child(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let pid = Pid::from_child(child);
    ended(pid, limit)?;
    child.try_wait()
}

/// Returns when the process has ended, or after `limit`. At once when there is no such process.
///
/// # Errors
/// When the system cannot wait for it.
#[cfg(target_os = "linux")]
pub(crate) fn ended(pid: Pid, limit: Duration) -> std::io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{PidfdFlags, pidfd_open};
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        Err(e) => return Err(e.into()),
    };
    let limit = Timespec::try_from(limit).map_err(std::io::Error::other)?;
    poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&limit))?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn ended(_pid: Pid, _limit: Duration) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_waited_for_until_its_end_or_the_limit() {
        let mut short = std::process::Command::new("true").spawn().unwrap();
        assert!(child(&mut short, Duration::from_secs(20)).unwrap().unwrap().success());
        let mut long = std::process::Command::new("sleep").arg("3600").spawn().unwrap();
        assert_eq!(child(&mut long, Duration::from_millis(1)).unwrap(), None);
        long.kill().unwrap();
        assert!(child(&mut long, Duration::from_secs(20)).unwrap().is_some());
    }
}
