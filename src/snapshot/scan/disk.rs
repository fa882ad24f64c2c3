//! Reads the workspace through folder descriptors: links are examined, never followed.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};

use tiller_fs::{Attributes, attributes};

use crate::names;
use crate::objects::id::{Id, Sort};
use crate::objects::object::{Entry, Kind};

/// Metadata by which a later scan recognises an unchanged file without reading it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
    pub(crate) ino: u64,
    pub(crate) mode: u32,
}

/// The device that a file is on.
#[allow(clippy::unnecessary_cast, reason = "its type differs between systems")]
pub(crate) fn device(stat: &Stat) -> u64 {
    stat.st_dev as u64
}

impl Stamp {
    #[allow(clippy::unnecessary_cast, reason = "the types of these fields differ between systems")]
    pub(crate) fn of(stat: &Stat) -> Self {
        let nanos = |s: i64, n: i64| s.saturating_mul(1_000_000_000).saturating_add(n);
        Self {
            size: stat.st_size as u64,
            mtime: nanos(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            ctime: nanos(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            ino: stat.st_ino as u64,
            mode: stat.st_mode as u32,
        }
    }

    /// Whether any later change must alter the stamp, when the content was read at `now` or later. Stamps come from a
    /// clock with ticks, on some file systems of two seconds.
    pub(crate) fn settled(&self, now: i64) -> bool {
        let coarse = self.mtime % 1_000_000_000 == 0 && self.ctime % 1_000_000_000 == 0;
        let grain = if coarse { 2_000_000_000 } else { 50_000_000 };
        self.mtime.max(self.ctime) < now - grain
    }

    pub(crate) fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.mode as _)
    }

    /// All of it as one word, by which a change of a file that is not read is recognised.
    pub(crate) fn word(&self) -> String {
        format!("{:x}.{:x}.{:x}.{:x}.{:x}", self.size, self.mtime, self.ctime, self.ino, self.mode)
    }

    /// Permission bits, with sticky and set-ID bits.
    pub(crate) fn perms(&self) -> u32 {
        self.mode & 0o7777
    }
}

/// The real time in nanoseconds. Only compared with stamps of the file system, which use this clock.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

const DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens the workspace itself; its path has no symbolic links.
pub(crate) fn open_root(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(CWD, path, DIR, Mode::empty())?)
}

/// Opens a folder in a folder.
pub(crate) fn open_dir(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(dir, name, DIR, Mode::empty())?)
}

/// Opens a folder anywhere below the root, part by part.
pub(crate) fn open_below(root: BorrowedFd<'_>, path: &[u8]) -> io::Result<OwnedFd> {
    let mut here = root.try_clone_to_owned()?;
    for part in names::parts(path) {
        here = open_dir(here.as_fd(), part)?;
    }
    Ok(here)
}

/// The stamp of a name; `None` when it does not exist.
pub(crate) fn look(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<Option<Stamp>> {
    Ok(stat(dir, name)?.map(|s| Stamp::of(&s)))
}

pub(crate) fn stat(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<Option<Stat>> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// The content of a file or link.
pub(crate) struct FileContent {
    pub(crate) stamp: Stamp,
    pub(crate) settled: bool,
    pub(crate) entry: Entry,
    pub(crate) data: Vec<u8>,
    pub(crate) attributes: Attributes,
}

/// Why nothing was read.
#[derive(Debug)]
pub(crate) enum ReadFailure {
    Gone,
    TooLarge,
    /// Neither file nor link (any more).
    Other,
    /// It cannot be read.
    Failed,
}

impl From<io::Error> for ReadFailure {
    fn from(e: io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::NotFound => Self::Gone,
            _ => Self::Failed,
        }
    }
}

impl From<rustix::io::Errno> for ReadFailure {
    fn from(e: rustix::io::Errno) -> Self {
        Self::from(io::Error::from(e))
    }
}

/// Reads a file or link of at most `most` bytes. A file that changes while it is read is read again, a few times; then
/// it counts as not settled.
pub(crate) fn read(dir: BorrowedFd<'_>, name: &[u8], most: u64) -> Result<FileContent, ReadFailure> {
    let mut got = read_once(dir, name, most)?;
    for _ in 0..3 {
        match look(dir, name)? {
            Some(after) if after == got.stamp => return Ok(got),
            _ => got = read_once(dir, name, most)?,
        }
    }
    got.settled = false;
    Ok(got)
}

fn read_once(dir: BorrowedFd<'_>, name: &[u8], most: u64) -> Result<FileContent, ReadFailure> {
    let before = now();
    let stamp = look(dir, name)?.ok_or(ReadFailure::Gone)?;
    if stamp.size > most {
        return Err(ReadFailure::TooLarge);
    }
    let (kind, mode, data, attributes) = match stamp.file_type() {
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(dir, name, Vec::new())?.into_bytes();
            (Kind::Link, 0, target, Attributes::default())
        }
        FileType::RegularFile => {
            // NONBLOCK: it may have become a pipe, and opening that must not wait for a writer.
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = File::from(rustix::fs::openat(dir, name, flags, Mode::empty())?);
            if !file.metadata()?.is_file() {
                return Err(ReadFailure::Other);
            }
            let mut data = Vec::with_capacity(usize::try_from(stamp.size).unwrap_or(0) + 1);
            let attributes = attributes::read(&file).of_the_owner();
            file.take(most + 1).read_to_end(&mut data)?;
            if data.len() as u64 > most {
                return Err(ReadFailure::TooLarge);
            }
            (Kind::File, stamp.perms(), data, attributes)
        }
        _ => return Err(ReadFailure::Other),
    };
    let entry = Entry { kind, mode, id: Id::of(Sort::Content, &data) };
    Ok(FileContent { stamp, settled: stamp.settled(before), entry, data, attributes })
}

/// The names in a folder, unsorted, without `.` and `..`.
pub(crate) fn list(dir: BorrowedFd<'_>) -> io::Result<Vec<Vec<u8>>> {
    Ok(list_some(dir, usize::MAX)?.unwrap_or_default())
}

/// The names in a folder as [`list`] returns them; `None` when there are more than `most`.
pub(crate) fn list_some(dir: BorrowedFd<'_>, most: usize) -> io::Result<Option<Vec<Vec<u8>>>> {
    let mut names = Vec::new();
    for item in rustix::fs::Dir::read_from(dir)? {
        let item = item?;
        let name = item.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.to_vec());
        }
        if names.len() > most {
            return Ok(None);
        }
    }
    Ok(Some(names))
}

/// Opens folders of the workspace one after the other; neighbours share their parent's descriptor.
pub(crate) struct Folders<'a> {
    root: BorrowedFd<'a>,
    last: Option<(Vec<u8>, OwnedFd)>,
}

impl<'a> Folders<'a> {
    pub(crate) fn new(root: BorrowedFd<'a>) -> Self {
        Self { root, last: None }
    }

    /// The folder that holds `path`.
    pub(crate) fn of(&mut self, path: &[u8]) -> io::Result<BorrowedFd<'_>> {
        let (folder, _) = names::split(path);
        if self.last.as_ref().is_none_or(|(known, _)| known != folder) {
            self.last = Some((folder.to_vec(), open_below(self.root, folder)?));
        }
        self.last.as_ref().map(|(_, fd)| fd.as_fd()).ok_or_else(|| io::Error::other("no folder"))
    }
}
