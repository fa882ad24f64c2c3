//! Temporary folders of this program, and those that a killed program left behind.
//!
//! A folder names the process that made it, by number, start and the name space of a machine that both count in, so that a
//! later one can tell whether its owner is gone: a container or another machine may share the temporary folder, and their
//! processes are not seen here. Where processes cannot be looked up (not Linux) nothing is taken away.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use tempfile::TempDir;

use crate::shell::processes::proc_fs;

/// The kinds: each is a word of the folder's name.
const KINDS: &[&str] = &[
    "browser", "careful", "code", "document", "draw", "meet", "pack", "plugin", "probe", "sandbox",
    "scratch", "sh", "skill", "tmp", "try", "upload",
];
/// Entries of the temporary folder that are looked at.
const MOST: usize = 20_000;

/// Makes one of this kind, for this user alone. It is removed when the value is dropped; after a kill, when the next process
/// makes one beside it.
///
/// # Errors
/// When the temporary folder cannot be written.
pub fn make(kind: &str) -> std::io::Result<TempDir> {
    make_in(kind, &tempfile::env::temp_dir())
}

/// As [`make`], in this folder.
///
/// # Errors
/// When it cannot be written.
pub fn make_in(kind: &str, place: &Path) -> std::io::Result<TempDir> {
    debug_assert!(KINDS.contains(&kind), "{kind} would never be swept");
    sweep_once(place);
    let start = proc_fs::stat(std::process::id().cast_signed()).map_or(0, |s| s.start);
    let space = space().unwrap_or_default();
    tempfile::Builder::new()
        .prefix(&format!("tiller-{kind}-{}-{start}-{space}-", std::process::id()))
        .permissions(std::fs::Permissions::from_mode(0o700))
        .tempdir_in(place)
}

/// Removes what killed processes left in the temporary folder, beside what this one does. Call it at the start of a
/// program that works for longer.
pub fn sweep_at_start() {
    sweep_once(&tempfile::env::temp_dir());
}

/// The first in a process looks for old ones as well, beside what it does.
fn sweep_once(place: &Path) {
    static SWEPT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if !swept.iter().any(|known| known == place) {
        swept.push(place.to_owned());
        let place = place.to_owned();
        // Without it they stay a while longer.
        let _ = std::thread::Builder::new().name("sweep".into()).spawn(move || sweep(&place));
    }
}

/// The name space of process numbers that we are in. Each machine numbers its own from the same value, so its name counts.
fn space() -> Option<String> {
    let link = std::fs::read_link("/proc/self/ns/pid").ok()?;
    let number: u64 = link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()?;
    Some(space_of(number, rustix::system::uname().nodename().to_bytes()))
}

/// The number of a name space with a short hash (FNV-1a) of its machine's name.
fn space_of(number: u64, machine: &[u8]) -> String {
    let hash = machine
        .iter()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    format!("{number}.{hash:08x}")
}

/// Removes the folders of ended Tiller processes in `temp`. Links are not followed: neither to them, nor in them.
fn sweep(temp: &Path) {
    let Some(here) = space().filter(|_| proc_fs::stat(std::process::id().cast_signed()).is_some()) else {
        return;
    };
    let me = rustix::process::geteuid().as_raw();
    let Ok(entries) = std::fs::read_dir(temp) else { return };
    for entry in entries.flatten().take(MOST) {
        let name = entry.file_name();
        let Some((owner, _)) = name.to_str().and_then(owner).filter(|(_, space)| *space == here.as_str())
        else {
            continue;
        };
        // Of the link, where it is one.
        let own = entry.metadata().is_ok_and(|m| m.is_dir() && m.uid() == me && m.mode() & 0o077 == 0);
        if own && gone(owner) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Number and start of the process that made a folder of this name, and where these count.
fn owner(name: &str) -> Option<((i32, u64), &str)> {
    let (kind, rest) = name.strip_prefix("tiller-")?.split_once('-')?;
    KINDS.contains(&kind).then_some(())?;
    let mut parts = rest.splitn(4, '-');
    let (pid, start) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let space = parts.next()?;
    (parts.next().is_some() && pid > 0 && start > 0).then_some(((pid, start), space))
}

fn gone((pid, start): (i32, u64)) -> bool {
    match proc_fs::stat(pid) {
        Some(s) => s.start != start || s.dead(),
        // `/proc` may hide the processes of others, and a file may be unreadable for the moment: only the kernel's word counts.
        None => Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder(at: &Path, name: &str, mode: u32) {
        let path = at.join(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("pipe"), "").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// What a `kill -9` left is removed; folders of running processes, of other users, and with similar names stay.
    #[test]
    fn folders_whose_owner_is_gone_are_swept_and_no_others() {
        let Some(me) = proc_fs::stat(std::process::id().cast_signed()) else { return };
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let dead = child.id();
        child.wait().unwrap();
        let temp = tempfile::tempdir().unwrap();
        let at = temp.path();
        let here = space().unwrap();
        folder(at, &format!("tiller-sh-{dead}-77-{here}-abc"), 0o700);
        for kind in KINDS {
            folder(at, &format!("tiller-{kind}-{dead}-77-{here}-more"), 0o700);
        }
        folder(at, &format!("tiller-other-{dead}-77-{here}-abc"), 0o700);
        folder(at, &format!("tiller-scratch-{}-{}-{here}-live", me.pid, me.start), 0o700);
        folder(at, "tiller-scratch-Xy12ab", 0o700);
        folder(at, &format!("tiller-sh-{}-{}-{here}-live", me.pid, me.start), 0o700);
        // The number was taken over by another.
        folder(at, &format!("tiller-sh-{}-{}-{here}-old", me.pid, me.start + 1), 0o700);
        folder(at, &format!("tiller-sh-{dead}-77-{here}-wide"), 0o755);
        // Of another name space of processes, of another machine, and of an older program: nothing is known of them here.
        let number = here.split('.').next().unwrap();
        let far =
            [space_of(1, b"x"), space_of(number.parse().unwrap(), b"another machine"), number.to_owned()];
        far.iter().for_each(|space| folder(at, &format!("tiller-sh-{dead}-77-{space}-far"), 0o700));
        folder(at, "tiller-sh-abc", 0o700);
        folder(at, "tiller-sh-0-0-0-x", 0o700);
        folder(at, "precious", 0o700);
        symlink(at.join("precious"), at.join(format!("tiller-sh-{dead}-77-{here}-link"))).unwrap();
        symlink(at.join("precious"), at.join(format!("tiller-sh-{dead}-77-{here}-abc/inside"))).unwrap();
        std::fs::write(at.join(format!("tiller-sh-{dead}-77-{here}-file")), "").unwrap();
        sweep(at);
        let mut left: Vec<String> =
            std::fs::read_dir(at).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        let mut want = vec![
            "precious".to_owned(),
            format!("tiller-other-{dead}-77-{here}-abc"),
            "tiller-sh-0-0-0-x".into(),
            format!("tiller-sh-{dead}-77-{here}-file"),
            format!("tiller-sh-{dead}-77-{here}-link"),
            format!("tiller-sh-{dead}-77-{here}-wide"),
            format!("tiller-sh-{}-{}-{here}-live", me.pid, me.start),
            "tiller-sh-abc".into(),
            format!("tiller-scratch-{}-{}-{here}-live", me.pid, me.start),
            "tiller-scratch-Xy12ab".into(),
        ];
        want.extend(far.iter().map(|space| format!("tiller-sh-{dead}-77-{space}-far")));
        want.sort();
        assert_eq!(left, want);
        assert!(at.join("precious/pipe").exists());
    }

    #[test]
    fn a_folder_names_its_owner() {
        let temp = tempfile::tempdir().unwrap();
        for made in [make("sh").unwrap(), make_in("scratch", temp.path()).unwrap()] {
            assert_eq!(
                std::fs::metadata(made.path()).unwrap().mode() & 0o777,
                0o700,
                "whatever the umask is"
            );
            let name = made.path().file_name().unwrap().to_str().unwrap();
            let pid = std::process::id().cast_signed();
            assert_eq!(owner(name).is_some(), proc_fs::stat(pid).is_some());
            assert!(
                owner(name)
                    .is_none_or(|(o, at)| o.0 == pid && !gone(o) && Some(at) == super::space().as_deref())
            );
        }
    }
}
