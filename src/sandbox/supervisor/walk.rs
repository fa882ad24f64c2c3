//! Finding the file that a path of another process means, as that process would find it: from its root, its working
//! folder, its descriptors.
//!
//! Each step is made from the descriptor of the step before, so a link that is put into the way afterwards changes
//! nothing: what was found is what is judged and used.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, fstatfs, openat, openat2, readlinkat};
use rustix::io::Errno;

use crate::supervisor::caller::Caller;

/// Links on one way, as in the kernel.
const LINKS: u32 = 40;
/// Type of /proc among file systems.
const PROC: i64 = 0x9fa0;

/// A name in a folder. Whether something has that name is not said.
#[derive(Debug)]
pub(crate) struct Entry {
    pub folder: OwnedFd,
    /// No separator in it. May be `.` or `..`.
    pub name: Vec<u8>,
    /// The path ended with a separator.
    pub slash: bool,
}

impl Entry {
    pub(crate) fn name(&self) -> &OsStr {
        OsStr::from_bytes(&self.name)
    }

    /// The name as the path had it.
    pub(crate) fn spelled(&self) -> Vec<u8> {
        let mut name = self.name.clone();
        if self.slash {
            name.push(b'/');
        }
        name
    }

    /// A descriptor of what has this name; a link is meant itself.
    pub(crate) fn open(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.folder, self.spelled(), flags, Mode::empty())
    }

    /// The path of the entry, as the system knows it now.
    pub(crate) fn path(&self) -> Result<PathBuf, Errno> {
        let folder = path_of(&self.folder)?;
        Ok(if self.name == b"." { folder } else { folder.join(self.name()) })
    }
}

/// The path of what a descriptor stands for.
pub(crate) fn path_of(fd: impl AsFd) -> Result<PathBuf, Errno> {
    use std::os::fd::AsRawFd;
    let link = readlinkat(CWD, format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd()), Vec::with_capacity(256))?;
    Ok(PathBuf::from(std::ffi::OsString::from_vec(link.into_bytes())))
}

/// Finds what paths of this caller mean.
pub(crate) struct Walk<'a> {
    caller: &'a Caller,
    links: u32,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(caller: &'a Caller) -> Self {
        Self { caller, links: LINKS }
    }

    /// The entry that a path names, links of its last part not followed.
    ///
    /// # Errors
    /// As the kernel answers a call with such a path.
    pub(crate) fn entry(&mut self, base: OwnedFd, path: &[u8]) -> Result<Entry, Errno> {
        if path.is_empty() {
            return Err(Errno::NOENT);
        }
        let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
        let slash = end < path.len();
        let base = if path[0] == b'/' { self.caller.root()? } else { base };
        let path = &path[..end];
        let (head, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&b""[..], path),
        };
        let folder = self.folder(base, head)?;
        let name = if name.is_empty() { b".".to_vec() } else { name.to_vec() };
        Ok(Entry { folder, name, slash })
    }

    /// The entry at the end of the links that a path names.
    pub(crate) fn last(&mut self, base: OwnedFd, path: &[u8]) -> Result<Entry, Errno> {
        let mut entry = self.entry(base, path)?;
        loop {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let fd = match openat(&entry.folder, entry.name(), flags, Mode::empty()) {
                Err(Errno::NOENT) => return Ok(entry),
                fd => fd?,
            };
            if FileType::from_raw_mode(fstat(&fd)?.st_mode) != FileType::Symlink {
                return Ok(entry);
            }
            if is_proc(&fd)? {
                return Ok(entry);
            }
            let target = self.link(&fd)?;
            let slash = entry.slash;
            entry = self.entry(entry.folder, &target)?;
            entry.slash |= slash;
        }
    }

    /// A descriptor of the file at the end of the links that a path names.
    ///
    /// # Errors
    /// As the kernel answers a call with such a path; `ACCESS` for links of /proc that are not the caller's.
    pub(crate) fn target(&mut self, base: OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
        let entry = self.last(base, path)?;
        let fd = entry.open()?;
        self.through(&entry, fd)
    }

    /// The file behind a link of /proc; `fd` itself where it is none. `entry`: its name.
    ///
    /// # Errors
    /// `ACCESS` for links of /proc that are not the caller's.
    pub(crate) fn through(&mut self, entry: &Entry, fd: OwnedFd) -> Result<OwnedFd, Errno> {
        if FileType::from_raw_mode(fstat(&fd)?.st_mode) != FileType::Symlink {
            return Ok(fd);
        }
        if !is_proc(&fd)? {
            // It was put there meanwhile.
            return Err(Errno::LOOP);
        }
        // One of the caller's descriptors, for instance.
        self.own_folder(&entry.folder)?;
        openat(&entry.folder, entry.name(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
    }

    /// What a link says. Those of /proc mean another file for each reader, and are not followed.
    fn link(&mut self, fd: &OwnedFd) -> Result<Vec<u8>, Errno> {
        self.links = self.links.checked_sub(1).ok_or(Errno::LOOP)?;
        if is_proc(fd)? {
            return Err(Errno::ACCESS);
        }
        Ok(readlinkat(fd, "", Vec::with_capacity(256))?.into_bytes())
    }

    /// The folder that `path` names from `base`.
    fn folder(&mut self, base: OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
        let path = &path[path.iter().position(|byte| *byte != b'/').unwrap_or(path.len())..];
        if path.is_empty() {
            return Ok(base);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // Usually there is no link, and the kernel does it in one step.
        match openat2(&base, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Err(Errno::LOOP | Errno::AGAIN | Errno::XDEV) => {}
            done => return done,
        }
        self.steps(base, path)
    }

    fn steps(&mut self, base: OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
        let parts = |path: &[u8]| -> Vec<Vec<u8>> {
            path.split(|byte| *byte == b'/')
                .filter(|p| !p.is_empty() && *p != b".")
                .map(<[u8]>::to_vec)
                .collect()
        };
        let mut at = base;
        let mut rest: VecDeque<Vec<u8>> = parts(path).into();
        while let Some(part) = rest.pop_front() {
            let name = OsStr::from_bytes(&part);
            let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            if part == b".." {
                let root = self.caller.root()?;
                if !same(&at, &root)? {
                    at = openat(&at, name, flags | OFlags::DIRECTORY, Mode::empty())?;
                }
                continue;
            }
            let next = openat(&at, name, flags, Mode::empty())?;
            match FileType::from_raw_mode(fstat(&next)?.st_mode) {
                FileType::Directory => at = next,
                FileType::Symlink if is_proc(&next)? => at = self.proc_link(&at, name)?,
                FileType::Symlink => {
                    let target = self.link(&next)?;
                    if target.first() == Some(&b'/') {
                        at = self.caller.root()?;
                    }
                    for part in parts(&target).into_iter().rev() {
                        rest.push_front(part);
                    }
                }
                _ => return Err(Errno::NOTDIR),
            }
        }
        Ok(at)
    }

    /// A link in /proc on the way to a file. `self` means the caller, not this process. Others lead to a folder that
    /// some process has open, of which only the caller's own are followed.
    fn proc_link(&mut self, folder: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
        self.links = self.links.checked_sub(1).ok_or(Errno::LOOP)?;
        let process = self.caller.process().ok_or(Errno::SRCH)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |path: String| openat(CWD, path, flags, Mode::empty());
        match name.as_bytes() {
            b"self" => return open(format!("/proc/{process}")),
            b"thread-self" => return open(format!("/proc/{process}/task/{}", self.caller.thread())),
            _ => {}
        }
        self.own_folder(folder)?;
        openat(folder, name, flags, Mode::empty())
    }

    /// Fails unless the folder is one of the caller's own in /proc.
    fn own_folder(&self, folder: &OwnedFd) -> Result<(), Errno> {
        let process = self.caller.process().ok_or(Errno::SRCH)?;
        let own = path_of(folder)?.starts_with(format!("/proc/{process}"));
        if own && is_proc(folder)? { Ok(()) } else { Err(Errno::ACCESS) }
    }
}

pub(super) fn is_proc(fd: &OwnedFd) -> Result<bool, Errno> {
    #[allow(clippy::useless_conversion, reason = "the type differs between architectures")]
    Ok(i64::try_from(fstatfs(fd)?.f_type).is_ok_and(|kind| kind == PROC))
}

fn same(a: &OwnedFd, b: &OwnedFd) -> Result<bool, Errno> {
    let (a, b) = (fstat(a)?, fstat(b)?);
    Ok((a.st_dev, a.st_ino) == (b.st_dev, b.st_ino))
}
