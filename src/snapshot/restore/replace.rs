//! Changes one path of the workspace without losing any byte that is not in the store: the replaced file is swapped out
//! first and compared, and swapped back when it is not the expected one.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use tiller_fs::{Attributes, attributes};

use crate::names;
use crate::objects::object::{Entry, Kind};
use crate::restore::goal::SkipReason;
use crate::restore::journal::Op;
use crate::scan::beside;
use crate::scan::disk::{self, ReadFailure};
use crate::steps::Steps;

/// The outcome for a path: `None` is done.
pub(crate) type Outcome = Option<SkipReason>;

/// The workspace and the staging folder, between which files are moved.
pub(crate) struct Replace<'a> {
    pub(crate) root: BorrowedFd<'a>,
    pub(crate) staging: BorrowedFd<'a>,
    pub(crate) steps: &'a Steps,
    /// A larger file was not stored, so it must not be replaced.
    pub(crate) most: u64,
    /// Permissions of a folder that has to be created.
    pub(crate) folder_mode: &'a dyn Fn(&[u8]) -> u32,
    /// The attributes of files and folders in the state to restore.
    pub(crate) attributes: &'a HashMap<Vec<u8>, Attributes>,
    /// Whether that state knows all of them. One of an earlier version knows none of folders.
    pub(crate) exact: bool,
}

/// The present type and state of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Now {
    Nothing,
    Is(Entry),
    /// A folder.
    Folder,
    /// Something that snapshots do not hold.
    Other,
}

fn failed(e: Errno) -> SkipReason {
    SkipReason::Failed(io::Error::from(e).to_string())
}

impl Replace<'_> {
    /// Examines a name.
    pub(crate) fn now(&self, dir: BorrowedFd<'_>, name: &[u8]) -> Now {
        match disk::read(dir, name, self.most) {
            Ok(got) => Now::Is(got.entry),
            Err(ReadFailure::Gone) => Now::Nothing,
            Err(ReadFailure::Other) => match disk::look(dir, name) {
                Ok(Some(stamp)) if stamp.file_type() == rustix::fs::FileType::Directory => Now::Folder,
                _ => Now::Other,
            },
            Err(_) => Now::Other,
        }
    }

    /// The folder that holds a path; created when it is missing and `make` is set.
    pub(crate) fn parent(&self, path: &[u8], make: bool) -> io::Result<Result<OwnedFd, SkipReason>> {
        let mut here = self.root.try_clone_to_owned()?;
        let mut done = Vec::new();
        for part in names::parts(names::split(path).0) {
            done = names::join(&done, part);
            here = match disk::open_dir(here.as_fd(), part) {
                Ok(next) => next,
                Err(e) if e.kind() == io::ErrorKind::NotFound && make => {
                    self.steps.at("make folder")?;
                    let mode = (self.folder_mode)(&done);
                    if let Err(e) = rustix::fs::mkdirat(here.as_fd(), part, bits(mode)) {
                        return Ok(Err(failed(e)));
                    }
                    let Ok(next) = disk::open_dir(here.as_fd(), part) else {
                        return Ok(Err(SkipReason::InTheWay));
                    };
                    if let Err(e) = self.equip(next.as_fd(), &done, mode) {
                        return Ok(Err(failed(e)));
                    }
                    next
                }
                Err(_) => return Ok(Err(SkipReason::InTheWay)),
            };
        }
        Ok(Ok(here))
    }

    /// The first half of an operation: removes what is there.
    pub(crate) fn remove(&self, op: &Op, number: usize) -> io::Result<Outcome> {
        let Some(from) = op.from else { return Ok(None) };
        let dir = match self.parent(&op.path, false)? {
            Ok(dir) => dir,
            // Nothing is there, as wanted, unless something else stands in its place.
            Err(why) => return Ok(if op.to.is_none() { self.gone(&op.path) } else { Some(why) }),
        };
        let (dir, name) = (dir.as_fd(), names::split(&op.path).1);
        if from.kind == Kind::Folder {
            self.steps.at("remove folder")?;
            return Ok(match rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => None,
                Err(Errno::NOTEMPTY | Errno::EXIST) => Some(SkipReason::NotEmpty),
                Err(e) => Some(failed(e)),
            });
        }
        match self.now(dir, name) {
            Now::Nothing => return Ok(None),
            Now::Is(entry) if entry == from => {}
            _ => return Ok(Some(SkipReason::ChangedSince)),
        }
        if !op.links && links(dir, name) > 1 {
            return Ok(Some(SkipReason::Links));
        }
        let old = format!("{number}.old");
        self.steps.at("move old")?;
        match rename_new(dir, name, self.staging, old.as_bytes()) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(None),
            Err(e) => return Ok(Some(failed(e))),
        }
        if self.now(self.staging, old.as_bytes()) == Now::Is(from) {
            return Ok(None);
        }
        self.back(dir, name, old.as_bytes())?;
        Ok(Some(SkipReason::ChangedSince))
    }

    /// Checks that nothing is at a path whose folder cannot be opened; below a file there is nothing.
    fn gone(&self, path: &[u8]) -> Outcome {
        let mut here = self.root.try_clone_to_owned().ok();
        for part in names::parts(path) {
            let dir = here.take()?;
            match disk::look(dir.as_fd(), part) {
                Ok(Some(stamp)) if stamp.file_type() == rustix::fs::FileType::Directory => {
                    here = disk::open_dir(dir.as_fd(), part).ok();
                    if here.is_none() {
                        return Some(SkipReason::InTheWay);
                    }
                }
                Ok(_) => return None,
                Err(e) => return Some(SkipReason::Failed(e.to_string())),
            }
        }
        Some(SkipReason::InTheWay)
    }

    /// Moves a foreign file back to its name, or to a name beside it when that is taken again.
    pub(crate) fn back(&self, dir: BorrowedFd<'_>, name: &[u8], staged: &[u8]) -> io::Result<()> {
        self.steps.at("move back")?;
        if rename_new(self.staging, staged, dir, name).is_ok() {
            return Ok(());
        }
        for n in 1..1000 {
            let mut beside = name.to_vec();
            beside.extend_from_slice(format!(".kept-{n}").as_bytes());
            match rename_new(self.staging, staged, dir, &beside) {
                Ok(()) => return Ok(()),
                Err(Errno::EXIST | Errno::NOTEMPTY) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Err(io::Error::other("a file that was changed in the meantime could not be restored"))
    }

    /// The second half of an operation: moves the staged content to its place.
    pub(crate) fn create(&self, op: &Op, number: usize) -> io::Result<Outcome> {
        let Some(to) = op.to else { return Ok(None) };
        let dir = match self.parent(&op.path, true)? {
            Ok(dir) => dir,
            Err(why) => return Ok(Some(why)),
        };
        let (dir, name) = (dir.as_fd(), names::split(&op.path).1);
        if to.kind == Kind::Folder {
            return self.folder(op, dir, name, to.mode);
        }
        let staged = number.to_string();
        let staged = staged.as_bytes();
        let found = self.now(dir, name);
        if found == Now::Is(to) {
            // Only attributes differ. They are set in place, so doing it again after a kill changes nothing.
            let alone = op.from == Some(to) && to.kind == Kind::File;
            return Ok(if alone { self.attributes_alone(dir, name, op, to) } else { None });
        }
        let swap = op.from.filter(|f| f.kind != Kind::Folder && found == Now::Is(*f));
        if let Some(from) = swap {
            if !op.links && links(dir, name) > 1 {
                return Ok(Some(SkipReason::Links));
            }
            if let Err(why) = self.like_present(dir, name, staged, op, to) {
                return Ok(Some(why));
            }
            self.steps.at("exchange")?;
            match rustix::fs::renameat_with(dir, name, self.staging, staged, RenameFlags::EXCHANGE) {
                Ok(()) => return self.check_swap(dir, name, staged, from, to),
                // Not every file system can exchange two names.
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                    if let Some(why) = self.remove(op, number)? {
                        return Ok(Some(why));
                    }
                }
                Err(e) => return Ok(Some(failed(e))),
            }
        } else if found != Now::Nothing {
            return Ok(Some(SkipReason::ChangedSince));
        }
        self.steps.at("place new")?;
        Ok(match rename_new(self.staging, staged, dir, name) {
            Ok(()) => None,
            Err(Errno::EXIST | Errno::NOTEMPTY) => Some(SkipReason::ChangedSince),
            Err(e) => Some(failed(e)),
        })
    }

    /// Gives a folder its permissions and attributes.
    fn equip(&self, folder: BorrowedFd<'_>, path: &[u8], mode: u32) -> Result<(), Errno> {
        if !self.exact {
            return rustix::fs::fchmod(folder, bits(mode));
        }
        self.attributes.get(path).cloned().unwrap_or_default().give_all(folder, mode | 0o700)
    }

    /// Gives a file its attributes.
    fn attributes_alone(&self, dir: BorrowedFd<'_>, name: &[u8], op: &Op, to: Entry) -> Outcome {
        if !op.links && links(dir, name) > 1 {
            return Some(SkipReason::Links);
        }
        let file = match open(dir, name) {
            Ok(file) => file,
            Err(e) => return Some(failed(e)),
        };
        let mut wanted = self.attributes.get(&op.path).cloned().unwrap_or_default();
        wanted = wanted.or(attributes::read(&file).of_the_owner().longer_than(beside::VALUE));
        wanted.give_all(&file, to.mode).err().map(failed)
    }

    /// Gives the staged file the owner of the file that it replaces, and those attributes that the state to restore
    /// does not know.
    fn like_present(
        &self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        staged: &[u8],
        op: &Op,
        to: Entry,
    ) -> Result<(), SkipReason> {
        if to.kind != Kind::File || op.from.is_none_or(|from| from.kind != Kind::File) {
            return Ok(());
        }
        let old = open(dir, name).map_err(failed)?;
        let new = match open(self.staging, staged) {
            Ok(new) => new,
            // Its permissions prevent even its owner from reading; then owner and attributes stay as staged.
            Err(Errno::ACCESS) => return Ok(()),
            Err(e) => return Err(failed(e)),
        };
        let (was, made) =
            (rustix::fs::fstat(&old).map_err(failed)?, rustix::fs::fstat(&new).map_err(failed)?);
        let mut present = attributes::read(&old).of_the_owner();
        // An access list changes the permissions too.
        if self.exact && op.from.is_some_and(|from| from.id == to.id) {
            present = present.longer_than(beside::VALUE);
        }
        let owner = (was.st_uid, was.st_gid) != (made.st_uid, made.st_gid);
        if !owner && present.is_empty() {
            return Ok(());
        }
        if owner {
            // Only as far as permitted; a change of the group often succeeds when one of the owner does not.
            let uid = rustix::process::Uid::from_raw(was.st_uid);
            let gid = rustix::process::Gid::from_raw(was.st_gid);
            if rustix::fs::fchown(&new, Some(uid), Some(gid)).is_err() {
                let _ = rustix::fs::fchown(&new, None, Some(gid));
            }
        }
        let then = self.attributes.get(&op.path).cloned().unwrap_or_default();
        then.or(present).give(&new, to.mode).map_err(failed)
    }

    fn check_swap(
        &self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        staged: &[u8],
        from: Entry,
        to: Entry,
    ) -> io::Result<Outcome> {
        if self.now(self.staging, staged) == Now::Is(from) {
            return Ok(None);
        }
        // Another process wrote between the last comparison and the exchange.
        self.steps.at("exchange back")?;
        match rustix::fs::renameat_with(dir, name, self.staging, staged, RenameFlags::EXCHANGE) {
            // If it wrote once more after it, both of its versions are kept.
            Ok(()) if self.now(self.staging, staged) != Now::Is(to) => self.back(dir, name, staged)?,
            Ok(()) => {}
            Err(_) => self.back(dir, name, staged)?,
        }
        Ok(Some(SkipReason::ChangedSince))
    }

    fn folder(&self, op: &Op, dir: BorrowedFd<'_>, name: &[u8], mode: u32) -> io::Result<Outcome> {
        self.steps.at("make folder")?;
        let made = match rustix::fs::mkdirat(dir, name, bits(mode)) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(e) => return Ok(Some(failed(e))),
        };
        let Ok(here) = disk::open_dir(dir, name) else { return Ok(Some(SkipReason::InTheWay)) };
        // A folder that others created keeps its permissions.
        if made || op.from.is_some_and(|f| f.kind == Kind::Folder) {
            self.steps.at("folder mode")?;
            return Ok(self.equip(here.as_fd(), &op.path, mode).err().map(failed));
        }
        Ok(None)
    }

    /// Stages a content under a name.
    pub(crate) fn stage(&self, name: &[u8], path: &[u8], to: Entry, data: &[u8]) -> io::Result<OwnedFd> {
        self.steps.at("stage")?;
        if to.kind == Kind::Link {
            rustix::fs::symlinkat(data, self.staging, name)?;
            return self.staging.try_clone_to_owned();
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(self.staging, name, flags, Mode::RUSR | Mode::WUSR)?;
        let mut file = std::fs::File::from(fd);
        self.steps.at("write staged")?;
        io::Write::write_all(&mut file, data)?;
        let none = Attributes::default();
        self.attributes.get(path).unwrap_or(&none).give(&file, to.mode)?;
        Ok(file.into())
    }

    /// Stages a content under its number when files have changed already. It gets that name only when it is complete: a
    /// file with that name and foreign content was swapped out, so incomplete content of Tiller's must never be taken
    /// for foreign.
    pub(crate) fn stage_again(&self, number: usize, op: &Op, to: Entry, data: &[u8]) -> io::Result<()> {
        let (name, half) = (number.to_string(), format!("{number}.new"));
        self.steps.at("clear half")?;
        match rustix::fs::unlinkat(self.staging, half.as_bytes(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(e) => return Err(e.into()),
        }
        self.stage(half.as_bytes(), &op.path, to, data)?;
        self.steps.at("name staged")?;
        Ok(rename_new(self.staging, half.as_bytes(), self.staging, name.as_bytes())?)
    }

    /// Removes folders that became empty, upwards, while `ours` says that they should not exist.
    pub(crate) fn prune(&self, path: &[u8], ours: &dyn Fn(&[u8]) -> bool) -> io::Result<()> {
        let (mut here, _) = names::split(path);
        while !here.is_empty() && ours(here) {
            let Ok(dir) = self.parent(here, false)? else { return Ok(()) };
            self.steps.at("prune folder")?;
            // Not empty: it holds foreign or ignored files.
            match rustix::fs::unlinkat(dir.as_fd(), names::split(here).1, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => here = names::split(here).0,
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }
}

fn open(dir: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty())
}

/// A folder's permissions; always including its owner's, since its files could not be restored otherwise.
fn bits(mode: u32) -> Mode {
    Mode::from_raw_mode((mode | 0o700) as _)
}

/// Number of names of a file.
fn links(dir: BorrowedFd<'_>, name: &[u8]) -> u64 {
    #[allow(clippy::unnecessary_cast, reason = "its type differs between systems")]
    disk::stat(dir, name).ok().flatten().map_or(1, |s| s.st_nlink as u64)
}

/// Renames to a name that must be free.
fn rename_new(from: BorrowedFd<'_>, name: &[u8], to: BorrowedFd<'_>, new: &[u8]) -> Result<(), Errno> {
    match rustix::fs::renameat_with(from, name, to, new, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            rustix::fs::linkat(from, name, to, new, AtFlags::empty())?;
            rustix::fs::unlinkat(from, name, AtFlags::empty())
        }
        other => other,
    }
}
