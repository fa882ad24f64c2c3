//! Opens what was judged. A path is resolved, judged, and then opened from the descriptor of a folder without following
//! any link: a link on the way can only have come in between, and is refused. The kernel refuses it (`openat2`); where it
//! cannot, each component is opened by itself.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, statat};
use rustix::io::Errno;

/// The end of a sentence about a path of which a folder or link was swapped after it was judged.
pub const CHANGED: &str = "changed while it was being opened; try again";

/// Opens `rel` (no `..`) beneath `dir` without following any link, blocking or taking a terminal.
///
/// # Errors
/// `LOOP` when a component is a link; those of the system.
pub fn open_at(dir: BorrowedFd<'_>, rel: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    #[cfg(any(test, feature = "testing"))]
    crate::testing::swap::opening(dir, rel);
    let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(dir, rel, flags, Mode::empty(), resolve) {
            // Old kernels and some containers do not have it.
            Err(Errno::NOSYS | Errno::PERM) => {}
            done => return done,
        }
    }
    walk_at(dir, rel, flags | OFlags::NOFOLLOW)
}

/// The same by hand.
fn walk_at(dir: BorrowedFd<'_>, rel: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let (parent, leaf) = match (rel.parent(), rel.file_name()) {
        (Some(parent), Some(leaf)) => (parent, leaf),
        _ => (Path::new(""), OsStr::new(".")),
    };
    let mut held: Option<OwnedFd> = None;
    for part in parent.components() {
        let Component::Normal(name) = part else { return Err(Errno::INVAL) };
        held = Some(step(held.as_ref().map_or(dir, |fd| fd.as_fd()), name)?);
    }
    let parent = held.as_ref().map_or(dir, |fd| fd.as_fd());
    rustix::fs::openat(parent, leaf, flags, Mode::empty()).map_err(|e| as_link(parent, leaf, e))
}

/// Opens a folder in a folder. A link is refused.
///
/// # Errors
/// `LOOP` for a link; those of the system.
pub fn step(dir: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty()).map_err(|e| as_link(dir, name, e))
}

/// The error of an open without following: of a link, where a folder was wanted, the kernel says "not a folder".
fn as_link(dir: BorrowedFd<'_>, name: &OsStr, error: Errno) -> Errno {
    let is_link = || rustix::fs::readlinkat(dir, name, Vec::new()).is_ok();
    if error == Errno::NOTDIR && is_link() { Errno::LOOP } else { error }
}

/// Opens a regular file to be read by the path that was judged: absolute, without links when it was resolved.
///
/// # Errors
/// When it cannot be opened, is no regular file, or a link is on the way now ([`CHANGED`]).
pub fn file(judged: &Path) -> io::Result<File> {
    let (top, rel) = from_top(judged)?;
    file_at(top.as_fd(), rel)
}

/// Opens a folder by the path that was judged, as [`file`].
///
/// # Errors
/// As [`file`].
pub fn folder(judged: &Path) -> io::Result<OwnedFd> {
    let (top, rel) = from_top(judged)?;
    open_at(top.as_fd(), rel, OFlags::RDONLY | OFlags::DIRECTORY).map_err(refusal)
}

/// Opens a regular file to be read below a folder. `root` may be reached over links; in `rel` none is followed.
///
/// # Errors
/// As [`file`].
pub fn file_below(root: &Path, rel: &Path) -> io::Result<File> {
    file_at(root_of(root)?.as_fd(), rel)
}

/// Opens a folder below a folder, as [`file_below`].
///
/// # Errors
/// As [`file`].
pub fn folder_below(root: &Path, rel: &Path) -> io::Result<OwnedFd> {
    let rel = if rel.as_os_str().is_empty() { Path::new(".") } else { rel };
    open_at(root_of(root)?.as_fd(), rel, OFlags::RDONLY | OFlags::DIRECTORY).map_err(refusal)
}

/// The bytes of a file by the path that was judged, up to the byte `most`.
///
/// # Errors
/// As [`file`]; and when it cannot be read.
pub fn read(judged: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file(judged)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The bytes of a file below a folder, as [`file_below`] opens it, up to the byte `most`.
///
/// # Errors
/// As [`read`].
pub fn read_below(root: &Path, rel: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file_below(root, rel)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// At most `most` names in a folder, in no order, each with true for a folder.
///
/// # Errors
/// When the folder cannot be read.
pub fn entries(dir: &OwnedFd, most: usize) -> io::Result<Vec<(OsString, bool)>> {
    let is_folder = |name: &OsStr, known: FileType| match known {
        FileType::Unknown => statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory),
        known => known == FileType::Directory,
    };
    let all = rustix::fs::Dir::read_from(dir)?.flatten();
    let all = all.map(|e| (OsStr::from_bytes(e.file_name().to_bytes()).to_owned(), e.file_type()));
    let named = all.filter(|(name, _)| name != "." && name != "..").take(most);
    Ok(named.map(|(name, kind)| (name.clone(), is_folder(&name, kind))).collect())
}

/// A folder that may be reached over links. What is none, a pipe for instance, is not waited for.
fn root_of(root: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(root, flags, Mode::empty())?)
}

fn file_at(dir: BorrowedFd<'_>, rel: &Path) -> io::Result<File> {
    let other = || io::Error::other("it is not a regular file");
    // A look first: opening a device can already do something. The check that counts is on the descriptor.
    if let Ok(stat) = statat(dir, rel, AtFlags::SYMLINK_NOFOLLOW) {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile | FileType::Symlink => {}
            _ => return Err(other()),
        }
    }
    let file = File::from(open_at(dir, rel, OFlags::RDONLY).map_err(refusal)?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(other()) }
}

/// The topmost folder, and the way from there.
fn from_top(judged: &Path) -> io::Result<(File, &Path)> {
    let rel = judged.strip_prefix("/").map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    Ok((File::open("/")?, if rel.as_os_str().is_empty() { Path::new(".") } else { rel }))
}

fn refusal(error: Errno) -> io::Error {
    match error {
        Errno::LOOP => io::Error::other(format!("it {CHANGED}")),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::testing::swap::{FOREIGN, MINE, Swaps};

    #[test]
    fn the_kernels_way_and_the_way_by_hand_refuse_the_same() {
        let tmp = tempfile::tempdir().unwrap();
        let top = tmp.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("work/in")).unwrap();
        std::fs::write(top.join("work/in/real"), "x").unwrap();
        std::fs::write(top.join("out"), "x").unwrap();
        for (to, link) in
            [("in", "inlink"), ("../out", "leaf"), ("..", "up"), ("gone", "lost"), ("loop", "loop")]
        {
            symlink(to, top.join("work").join(link)).unwrap();
        }
        symlink("/proc/self/cwd", top.join("work/magic")).unwrap();
        let dir = File::open(top.join("work")).unwrap();
        for (path, ok) in [
            ("in/real", true),
            ("in", true),
            (".", true),
            ("inlink/real", false),
            ("leaf", false),
            ("up", false),
            ("up/out", false),
            ("../out", false),
            ("in/../../out", false),
            ("lost", false),
            ("none", false),
            ("loop", false),
            ("magic/src", false),
            ("/etc/passwd", false),
        ] {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let [kernel, hand] = [
                open_at(dir.as_fd(), Path::new(path), OFlags::RDONLY),
                walk_at(dir.as_fd(), Path::new(path), flags),
            ];
            assert_eq!((kernel.is_ok(), hand.is_ok()), (ok, ok), "{path}");
            let loops = [&kernel, &hand].map(|done| matches!(done, Err(Errno::LOOP)));
            assert_eq!(loops[0], loops[1], "{path}");
            let link = ["inlink/real", "leaf", "up", "up/out", "lost", "loop", "magic/src"].contains(&path);
            assert_eq!(loops[0], link, "{path}");
        }
    }

    #[test]
    fn x20_a_path_that_was_swapped_is_refused_and_says_so() {
        let tmp = tempfile::tempdir().unwrap();
        let swaps = Swaps::new(tmp.path(), "d", &["f"]);
        let path = swaps.root().join("d/f");
        assert!(String::from_utf8(read(&path, 99).unwrap()).unwrap().contains(MINE));
        swaps.swap();
        assert!(std::fs::read_to_string(&path).unwrap().contains(FOREIGN), "the scene is as it should be");
        let said = |e: io::Error| e.to_string();
        assert_eq!(said(read(&path, 99).unwrap_err()), format!("it {CHANGED}"));
        assert_eq!(said(folder(&swaps.root().join("d")).unwrap_err()), format!("it {CHANGED}"));
        assert!(file_below(swaps.root(), Path::new("d/f")).is_err());
        assert!(file_below(swaps.root(), Path::new("../out/f")).is_err());
        assert!(file(Path::new("d/f")).is_err(), "not absolute");
    }

    #[test]
    fn what_is_no_file_is_refused_before_it_is_opened() {
        let tmp = tempfile::tempdir().unwrap();
        let top = tmp.path().canonicalize().unwrap();
        let pipe = top.join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        for path in [pipe.as_path(), &top, Path::new("/dev/zero")] {
            assert!(file(path).unwrap_err().to_string().contains("not a regular file"), "{}", path.display());
        }
        assert_eq!(file(&top.join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::create_dir(top.join("sub")).unwrap();
        let mut all = entries(&folder(&top).unwrap(), 9).unwrap();
        all.sort();
        assert_eq!(all, [("pipe".into(), false), ("sub".into(), true)]);
        assert_eq!(entries(&folder(Path::new("/")).unwrap(), 1).unwrap().len(), 1);
    }
}
