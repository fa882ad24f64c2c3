//! A path that is put back: its folders are opened step by step, so that a link which a process puts there meanwhile leads
//! nothing elsewhere.

use std::io;
use std::path::{Path, PathBuf};

use crate::quarantine::{Keep, State, Violation};

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

        use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat2};
        use rustix::io::Errno;
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
        let folder = self.at.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let mut file = tempfile::Builder::new().prefix(".tiller-").tempfile_in(folder)?;
        file.write_all(bytes)?;
        let new = file.as_file().metadata()?;
        if (new.uid(), new.gid()) != (meta.uid(), meta.gid()) {
            fchown(file.as_file(), Some(meta.uid()), Some(meta.gid()))?;
        }
        tiller_fs::attributes::read(&old).of_the_owner().give_all(file.as_file(), mode)?;
        file.as_file().set_times(std::fs::FileTimes::new().set_modified(meta.modified()?))?;
        file.persist(&self.at).map(drop).map_err(|e| e.error)
    }

    /// Makes this state there, in one step.
    pub(super) fn put(&self, state: &State) -> io::Result<()> {
        use std::io::Write;
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = self.at.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let mut named = tempfile::Builder::new();
        named.prefix(".tiller-");
        match state {
            State::Missing => std::fs::remove_file(&self.at),
            State::File(bytes, mode) => {
                let mut file = named.tempfile_in(folder)?;
                file.write_all(bytes)?;
                file.as_file().set_permissions(PermissionsExt::from_mode(*mode & 0o777))?;
                file.persist(&self.at).map(drop).map_err(|e| e.error)
            }
            State::Link(to) => {
                let link = named.make_in(folder, |path| symlink(to, path))?;
                link.into_temp_path().persist(&self.at).map_err(|e| e.error)
            }
            State::Folder(..) | State::Other => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Keeps what is there elsewhere, and makes this state in its place.
    pub(super) fn put_back(&self, path: &Path, state: &State, keep: &mut Keep) -> Violation {
        Violation { path: path.to_owned(), ..keep.replace(&self.at, state) }
    }
}

/// Removes the folders below `above` that were made for `path` and are empty.
pub(super) fn remove_empty(above: &Path, path: &Path) {
    for folder in path.ancestors().skip(1).take_while(|folder| *folder != above) {
        if std::fs::remove_dir(folder).is_err() {
            return;
        }
    }
}
