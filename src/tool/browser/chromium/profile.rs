//! The lock of a profile folder: `SingletonLock`, a symbolic link to `HOST-PID` that Chromium makes.

use std::path::Path;

/// The process that uses a profile; `None`: none that runs on this machine. A lock whose process is gone does not
/// count: Chromium takes such a profile over by itself.
pub(crate) fn owner(profile: &Path) -> Option<String> {
    let target = std::fs::read_link(profile.join("SingletonLock")).ok()?;
    let target = target.to_string_lossy();
    let (host, pid) = target.rsplit_once('-')?;
    let pid: i32 = pid.parse().ok()?;
    let here = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if host != here {
        return Some(format!("process {pid} on {}", crate::text::visible(host)));
    }
    let alive =
        rustix::process::Pid::from_raw(pid).is_some_and(|p| rustix::process::test_kill_process(p).is_ok());
    alive.then(|| format!("process {pid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_counts_while_its_process_lives() {
        let scratch = tempfile::tempdir().unwrap();
        let here = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let lock = scratch.path().join("SingletonLock");
        assert_eq!(owner(scratch.path()), None);
        let own = std::process::id();
        std::os::unix::fs::symlink(format!("{here}-{own}"), &lock).unwrap();
        assert_eq!(owner(scratch.path()), Some(format!("process {own}")));
        std::fs::remove_file(&lock).unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let gone = child.id();
        child.wait().unwrap();
        std::os::unix::fs::symlink(format!("{here}-{gone}"), &lock).unwrap();
        assert_eq!(owner(scratch.path()), None, "its process is gone");
        std::fs::remove_file(&lock).unwrap();
        std::os::unix::fs::symlink("elsewhere-7", &lock).unwrap();
        assert_eq!(owner(scratch.path()), Some("process 7 on elsewhere".into()));
    }
}
