//! Proof that the holder of a lease is alive: a lock file of its own. The kernel releases the lock when the process
//! ends, however it ends and in whichever namespace it ran.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use uuid::Uuid;

use crate::lease::process::Process;
use crate::open::folder;

/// With more files than this, unlocked files that a kill left are removed.
const MANY: usize = 64;

/// The folder of the lock files, beside the database.
fn folder_of(db: &Path) -> PathBuf {
    folder::beside(db, ".leases")
}

/// One locked file. Dropping it releases the lock and removes the file.
#[derive(Debug)]
pub(crate) struct LeaseFile {
    path: PathBuf,
    _file: File,
}

impl LeaseFile {
    /// Creates and locks the file of a lease. `None` where that is not possible: then the lease is checked by its
    /// process, as for older programs.
    pub(crate) fn take(db: &Path, nonce: Uuid) -> Option<Self> {
        let dir = folder_of(db);
        DirBuilder::new().recursive(true).mode(0o700).create(&dir).ok()?;
        sweep(&dir);
        let path = dir.join(nonce.to_string());
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).ok()?;
        match file.try_lock() {
            Ok(()) => Some(Self { path, _file: file }),
            Err(_) => {
                let _ = fs::remove_file(&path);
                None
            }
        }
    }
}

impl Drop for LeaseFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes unlocked files. A file that is about to be locked only loses this proof: its process is checked instead.
fn sweep(dir: &Path) {
    let Ok(items) = fs::read_dir(dir) else { return };
    let paths: Vec<PathBuf> = items.flatten().map(|item| item.path()).collect();
    if paths.len() <= MANY {
        return;
    }
    for path in paths {
        if File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// The lock files of this store's leases. Dropping it ends them.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseFiles(Arc<Mutex<HashMap<Uuid, Arc<LeaseFile>>>>);

impl LeaseFiles {
    pub(crate) fn keep(&self, nonce: Uuid, hold: Option<&Arc<LeaseFile>>) {
        if let Some(hold) = hold {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(nonce, Arc::clone(hold));
        }
    }

    pub(crate) fn end(&self, nonce: Uuid) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&nonce);
    }
}

/// Checks whether the holders of leases are alive.
#[derive(Debug)]
pub(crate) struct LivenessCheck {
    /// `None`: the database is in memory.
    folder: Option<PathBuf>,
}

impl LivenessCheck {
    pub(crate) fn of(conn: &Connection) -> Self {
        let db = conn.path().filter(|path| !path.is_empty());
        Self { folder: db.map(|db| folder_of(Path::new(db))) }
    }

    /// Whether the holder of a lease is alive.
    pub(crate) fn alive(&self, nonce: Uuid, process: &Process) -> bool {
        self.locked(nonce).unwrap_or_else(|| process.alive())
    }

    /// Whether the file of a lease is locked. `None`: there is no file, as with older programs, or it cannot be
    /// determined.
    fn locked(&self, nonce: Uuid) -> Option<bool> {
        let file = File::open(self.folder.as_ref()?.join(nonce.to_string())).ok()?;
        // A shared lock: two processes that check at the same time do not take each other for the holder.
        match file.try_lock_shared() {
            Ok(()) => Some(false),
            Err(TryLockError::WouldBlock) => Some(true),
            Err(TryLockError::Error(_)) => None,
        }
    }
}
