//! The data folder: modes, owner, kind of file system, the lock that marks living processes, and the stamp of a clean
//! end.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Result, StoreError};

/// `path` with `suffix` appended to its file name, for instance `tiller.db-wal`.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

/// The search index of a database.
pub(crate) fn search_index(db: &Path) -> PathBuf {
    db.with_file_name("search.db")
}

/// Files beside a database whose names begin with its own, with the rest of their names.
pub(crate) fn companions(db: &Path) -> Vec<(PathBuf, String)> {
    let Some(own) = db.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let items = db.parent().and_then(|dir| fs::read_dir(dir).ok()).into_iter().flatten().flatten();
    let rest = |item: fs::DirEntry| {
        let rest = item.file_name().to_str()?.strip_prefix(own)?.to_owned();
        Some((item.path(), rest))
    };
    let mut found: Vec<_> = items.filter_map(rest).filter(|(_, rest)| !rest.is_empty()).collect();
    found.sort();
    found
}

/// What lies beside a database that only an earlier one leaves: backups, damaged ones, marks of its end, its search index,
/// snapshots of files. Empty in a folder where none was.
pub(crate) fn traces(db: &Path) -> Vec<PathBuf> {
    let marks = [".clean", ".suspect", ".salvage-report"];
    let left = |rest: &str| marks.contains(&rest) || rest.starts_with(".damaged-") || rest.ends_with(".bak");
    let mut found: Vec<PathBuf> =
        companions(db).into_iter().filter(|(_, rest)| left(rest)).map(|(path, _)| path).collect();
    found.extend(Some(search_index(db)).filter(|index| size(index) > 0));
    let snapshots = db.with_file_name("snapshots");
    found.extend(fs::read_dir(&snapshots).ok().and_then(|mut all| all.next()).map(|_| snapshots));
    found
}

/// Creates the folder (0700) if needed, and checks that it belongs to `uid` and is writable.
pub(crate) fn prepare_dir(dir: &Path, uid: u32) -> Result<()> {
    if !dir.exists() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(|e| StoreError::from_io(&e, dir))?;
    }
    let meta = fs::metadata(dir).map_err(|e| StoreError::from_io(&e, dir))?;
    if !meta.is_dir() {
        return Err(StoreError::ReadOnly { path: dir.into(), detail: "it is not a folder".into() });
    }
    if meta.uid() != uid {
        return Err(StoreError::Foreign { path: dir.into(), owner: meta.uid() });
    }
    if meta.permissions().mode() & 0o777 != 0o700 {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))
            .map_err(|e| StoreError::from_io(&e, dir))?;
    }
    Ok(())
}

/// Creates an empty database file (0600) if there is none. True when it was created.
///
/// An existing file is never opened here: closing any descriptor of it would drop SQLite's locks.
pub(crate) fn prepare_file(path: &Path, uid: u32) -> Result<bool> {
    let io = |e: std::io::Error| StoreError::from_io(&e, path);
    let made = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => {
            // The name itself must survive a loss of power, too.
            if let Some(dir) = path.parent() {
                File::open(dir).and_then(|d| d.sync_all()).map_err(io)?;
            }
            true
        }
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => false,
        Err(e) => return Err(io(e)),
    };
    let meta = fs::symlink_metadata(path).map_err(io)?;
    if meta.uid() != uid {
        return Err(StoreError::Foreign { path: path.into(), owner: meta.uid() });
    }
    if !meta.is_file() {
        return Err(StoreError::ReadOnly { path: path.into(), detail: "it is not a regular file".into() });
    }
    if meta.permissions().mode() & 0o777 != 0o600 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(io)?;
    }
    Ok(made)
}

/// The name of the file system, when it is shared by several machines or served by a process.
pub(crate) fn network_kind(dir: &Path) -> Option<String> {
    #[cfg(target_os = "linux")]
    {
        let magic = rustix::fs::statfs(dir).ok()?.f_type;
        name_of_magic(u32::try_from(magic & 0xffff_ffff).unwrap_or(0)).map(Into::into)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = dir;
        None
    }
}

/// File systems without reliable shared memory or locks, by `statfs` magic (statfs(2), linux/magic.h).
#[cfg(any(target_os = "linux", test))]
pub(crate) fn name_of_magic(magic: u32) -> Option<&'static str> {
    Some(match magic {
        0x0000_6969 => "NFS",
        0x0000_517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x0000_564c => "NCP",
        0x0102_1997 => "9P",
        0x00c3_6400 => "Ceph",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x786f_4256 => "a VirtualBox share",
        _ => return None,
    })
}

/// A lock that is held while the store is open. Processes share it; a process that gets it exclusively is the only one.
/// The kernel releases it when a process ends.
#[derive(Debug)]
pub(crate) struct Presence {
    file: File,
}

impl Presence {
    /// Takes the lock. The flag: no other process has the store open; others then wait until [`Presence::share`].
    pub(crate) fn take(db: &Path) -> Result<(Self, bool)> {
        let path = beside(db, ".lock");
        let io = |e: std::io::Error| StoreError::from_io(&e, &path);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => Ok((Self { file }, true)),
            Err(TryLockError::WouldBlock) => {
                file.lock_shared().map_err(io)?;
                Ok((Self { file }, false))
            }
            // The file system has no locks: assume that there are other processes.
            Err(TryLockError::Error(_)) => Ok((Self { file }, false)),
        }
    }

    /// Lets other processes open the store.
    pub(crate) fn share(&self) {
        if self.file.lock_shared().is_err() {
            tracing::debug!("the presence lock cannot be shared on this file system");
        }
    }

    /// Whether no other process has the store open now. Others wait while it is true.
    pub(crate) fn alone(&self) -> bool {
        self.file.try_lock().is_ok()
    }
}

/// The stamp: size, time and inode of the files at the end of the last process. When it is equal at the next start,
/// that process ended cleanly and the files were not changed.
pub(crate) fn stamp_of(db: &Path) -> String {
    let one = |path: &Path| match fs::metadata(path) {
        Ok(m) => format!("{} {} {}.{:09}", m.ino(), m.len(), m.mtime(), m.mtime_nsec()),
        Err(_) => "-".into(),
    };
    format!("{}\n{}\n", one(db), one(&beside(db, "-wal")))
}

/// Writes the stamp; called after the last connection was closed. A failure only costs a check later.
pub(crate) fn write_stamp(db: &Path) {
    let path = beside(db, ".clean");
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut f| std::io::Write::write_all(&mut f, stamp_of(db).as_bytes()));
    if let Err(error) = written {
        tracing::debug!(%error, "the clean-shutdown marker could not be written");
    }
}

/// The result of comparing the stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// The last end was clean, and the files were not changed since.
    Right,
    /// Another program changed them.
    Wrong,
    /// The last process ended uncleanly.
    Absent,
}

/// Reads the stamp and removes it.
pub(crate) fn take_stamp(db: &Path) -> Stamp {
    let path = beside(db, ".clean");
    let stamp = match fs::read_to_string(&path) {
        Ok(text) if text == stamp_of(db) => Stamp::Right,
        Ok(_) => Stamp::Wrong,
        Err(_) => Stamp::Absent,
    };
    if stamp != Stamp::Absent && fs::remove_file(&path).is_err() {
        tracing::debug!("the stamp of a clean end cannot be removed");
        return Stamp::Wrong;
    }
    stamp
}

/// A mark beside a database that it may be without its log: from before one that is opened has it until it is there, and from
/// before one that is closed loses it until the stamp is written. Without the mark, a log that is missing after an unclean end
/// was lost.
#[derive(Debug)]
pub(crate) struct LogMark {
    db: PathBuf,
    /// An earlier process ended while it had the mark.
    pub(crate) found: bool,
}

impl LogMark {
    /// Puts it there. A failure only costs a false notice, after an end at this very moment.
    pub(crate) fn put(db: &Path) -> Self {
        let path = Self::path(db);
        let found = path.exists();
        let made = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        if let Err(error) = made {
            tracing::debug!(%error, "the mark of a database without its log could not be made");
        }
        Self { db: db.to_owned(), found }
    }

    fn path(db: &Path) -> PathBuf {
        beside(db, ".unlogged")
    }
}

impl Drop for LogMark {
    fn drop(&mut self) {
        let told = beside(&self.db, "-wal").exists() || beside(&self.db, ".clean").exists();
        if told && fs::remove_file(Self::path(&self.db)).is_err() {
            tracing::debug!("the mark of a database without its log cannot be removed");
        }
    }
}

/// Identity of the file at a path: device and inode.
pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|m| (m.dev(), m.ino()))
}

/// Size of a file in bytes; 0 when there is none.
pub(crate) fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |m| m.len())
}
