//! Detects whether the pipe at standard input has a writer that may still write: a command of the same pipeline that
//! starts slowly (`cargo test | tiller exec ...`).

use std::os::fd::BorrowedFd;

/// Whether a process of the same process group, other than a parent, has the other end of the pipe open for writing. A
/// parent may have left it open by mistake, so it does not count. False where this cannot be determined.
pub(super) fn waits(pipe: BorrowedFd<'_>) -> bool {
    let Ok(stat) = rustix::fs::fstat(pipe) else { return false };
    let name = format!("pipe:[{}]", stat.st_ino);
    let own = std::process::id();
    let Some((mut parent, group)) = family(own) else { return false };
    let mut parents = vec![own];
    while parent > 0 && !parents.contains(&parent) {
        parents.push(parent);
        parent = family(parent).map_or(0, |(parent, _)| parent);
    }
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| !parents.contains(pid))
        .filter(|pid| family(*pid).is_some_and(|(_, of)| of == group))
        .any(|pid| writes(pid, &name))
}

/// Parent and process group of a process.
fn family(pid: u32) -> Option<(u32, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program is in brackets and may contain anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Whether a process has the file `name` open for writing.
fn writes(pid: u32, name: &str) -> bool {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.filter(|e| std::fs::read_link(e.path()).is_ok_and(|to| to.as_os_str() == name)).any(|e| {
        let info = format!("/proc/{pid}/fdinfo/{}", e.file_name().to_string_lossy());
        let text = std::fs::read_to_string(info).unwrap_or_default();
        let flags = text.lines().find_map(|l| l.strip_prefix("flags:")).unwrap_or_default();
        // The last octal digit has the mode: 1 is for writing, 2 for both.
        matches!(flags.trim().chars().last(), Some('1' | '2'))
    })
}
