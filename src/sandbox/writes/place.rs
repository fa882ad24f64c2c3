//! A path that is put back: its folders are opened step by step, so that a link which a process puts there meanwhile leads
//! nothing elsewhere.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use tempfile::TempPath;

use super::{BYTES, ENTRIES, TEMPORARY};
use crate::quarantine::{Budget, Keep, State, Violation};

/// A name in a folder that is open.
pub(super) struct Place {
    #[cfg(target_os = "linux")]
    _folder: std::os::fd::OwnedFd,
    /// A path of it that needs no other folder.
    pub(super) at: PathBuf,
}

impl Place {
    /// Opens it. `above`: the folder from which on folders are made that are missing.
    #[cfg(target_os = "linux")]
    pub(super) fn open(above: &Path, path: &Path) -> io::Result<Self> {
        use std::os::fd::AsRawFd;

        use rustix::fs::{Mode, OFlags, ResolveFlags, mkdirat, openat2};
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |folder: &std::os::fd::OwnedFd, name: &Path| {
            openat2(folder, name, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
        };
        let mut folder = openat2(CWD, above, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        let names = path.strip_prefix(above).map_err(io::Error::other)?;
        let name = names.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        for part in names.parent().into_iter().flat_map(Path::iter) {
            folder = match open(&folder, Path::new(part)) {
                Err(Errno::NOENT) => {
                    mkdirat(&folder, part, Mode::from_raw_mode(0o755))?;
                    open(&folder, Path::new(part))?
                }
                found => found?,
            };
        }
        let at = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
        Ok(Self { _folder: folder, at })
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn open(_above: &Path, path: &Path) -> io::Result<Self> {
        Ok(Self { at: path.to_owned() })
    }

    /// Puts a file of its own with this content there, so that no process has it open: one could write later. Owner, time and
    /// attributes stay.
    pub(super) fn settle(&self, bytes: &[u8], mode: u32) -> io::Result<()> {
        use std::io::Write;
        use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};

        use rustix::fs::OFlags;
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let old = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(&self.at)?;
        let meta = old.metadata()?;
        let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(self.folder()?)?;
        file.write_all(bytes)?;
        let new = file.as_file().metadata()?;
        if (new.uid(), new.gid()) != (meta.uid(), meta.gid()) {
            fchown(file.as_file(), Some(meta.uid()), Some(meta.gid()))?;
        }
        tiller_fs::attributes::read(&old).of_the_owner().give_all(file.as_file(), mode)?;
        file.as_file().set_times(std::fs::FileTimes::new().set_modified(meta.modified()?))?;
        file.persist(&self.at).map(drop).map_err(|e| e.error)
    }

    /// Puts a state in the place of another one, in one step. What was there is looked at again when it has left its place: where it
    /// is something else meanwhile, it comes back.
    ///
    /// # Errors
    /// When something else is there, or it cannot be made.
    pub(super) fn exchange(&self, was: &State, now: &State) -> io::Result<()> {
        let is_was = |path: &Path| match Budget::new(BYTES, ENTRIES).read(path)? == *was {
            true => Ok(()),
            false => Err(io::Error::other("it was changed meanwhile")),
        };
        is_was(&self.at)?;
        let Some(new) = self.make(now)? else {
            return if *was == State::Missing { Ok(()) } else { self.remove(is_was) };
        };
        if *was == State::Missing {
            return rename_new(&new, &self.at);
        }
        match swap(&new, &self.at) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                return new.persist(&self.at).map_err(|e| e.error);
            }
            done => done?,
        }
        let Err(error) = is_was(&new) else { return Ok(()) };
        if let Err(stays) = swap(&new, &self.at) {
            // What came out is not removed.
            return Err(left_beside(new, &error, &stays.into()));
        }
        Err(error)
    }

    /// Makes this state beside it; `None`: there is nothing to make.
    fn make(&self, state: &State) -> io::Result<Option<TempPath>> {
        use std::io::Write;
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = self.folder()?;
        let mut named = tempfile::Builder::new();
        named.prefix(TEMPORARY);
        match state {
            State::Missing => Ok(None),
            State::File(bytes, mode) => {
                let mut file = named.tempfile_in(folder)?;
                file.write_all(bytes)?;
                file.as_file().set_permissions(PermissionsExt::from_mode(*mode & 0o777))?;
                Ok(Some(file.into_temp_path()))
            }
            State::Link(to) => Ok(Some(named.make_in(folder, |path| symlink(to, path))?.into_temp_path())),
            State::Folder(..) | State::Other => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Removes it if this holds for it.
    fn remove(&self, is_was: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
        let move_away = |path: &Path| rename_new(&self.at, path);
        let away = tempfile::Builder::new().prefix(TEMPORARY).make_in(self.folder()?, move_away)?;
        let away = away.into_temp_path();
        let Err(error) = is_was(&away) else { return Ok(()) };
        if let Err(stays) = rename_new(&away, &self.at) {
            // It is not removed.
            return Err(left_beside(away, &error, &stays));
        }
        Err(error)
    }

    fn folder(&self) -> io::Result<&Path> {
        self.at.parent().ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    /// Keeps what is there elsewhere, and makes this state in its place.
    pub(super) fn put_back(&self, path: &Path, state: &State, keep: &mut Keep) -> Violation {
        Violation { path: path.to_owned(), ..keep.replace(&self.at, state) }
    }
}

/// Moves something where nothing is.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) if to.symlink_metadata().is_err() => {
            std::fs::rename(from, to)
        }
        done => Ok(done?),
    }
}

/// Leaves under its temporary name what could not be put back, and says so.
fn left_beside(temporary: TempPath, why: &io::Error, stays: &io::Error) -> io::Error {
    let name = temporary.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match temporary.keep() {
        Ok(_) => {
            io::Error::other(format!("{why}, and could not be put back: it is beside it as {name} ({stays})"))
        }
        Err(error) => error.error,
    }
}

fn swap(one: &Path, other: &Path) -> Result<(), Errno> {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)
}

/// Removes the folders below `above` that were made for `path` and are empty.
pub(super) fn remove_empty(above: &Path, path: &Path) {
    for folder in path.ancestors().skip(1).take_while(|folder| *folder != above) {
        if std::fs::remove_dir(folder).is_err() {
            return;
        }
    }
}
