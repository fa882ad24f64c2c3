//! Proof that the holder of a lease lives: a file of its own that it keeps locked. The kernel frees the lock when the
//! process dies, however it dies and in whatever name space it ran.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use uuid::Uuid;

use crate::lease::process::Process;
use crate::open::folder;

/// Files that a kill left are removed when there are more than so many.
const MANY: usize = 64;

/// The folder of the files, beside the database.
fn folder_of(db: &Path) -> PathBuf {
    folder::beside(db, ".leases")
}

/// One file, locked. Dropping it gives the lock back and removes the file.
#[derive(Debug)]
pub(crate) struct LeaseFile {
    path: PathBuf,
    _file: File,
}

impl LeaseFile {
    /// Makes and locks the file of a lease. `None` where that cannot be done: then a lease is judged by its process,
    /// as older programs do it.
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

/// Removes files without a lock. A file whose lock is not taken yet only loses this proof: its process is checked instead.
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

/// The leases of this store. When it goes, they end.
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

/// Tells living holders from dead ones.
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

    /// Whether the holder of a lease lives.
    pub(crate) fn alive(&self, nonce: Uuid, process: &Process) -> bool {
        self.locked(nonce).unwrap_or_else(|| process.alive())
    }

    /// Whether the file of a lease is locked. `None`: there is none, as with older programs, or it cannot be known.
    fn locked(&self, nonce: Uuid) -> Option<bool> {
        let file = File::open(self.folder.as_ref()?.join(nonce.to_string())).ok()?;
        // Shared: two that look at one time do not take each other for the holder.
        match file.try_lock_shared() {
            Ok(()) => Some(false),
            Err(TryLockError::WouldBlock) => Some(true),
            Err(TryLockError::Error(_)) => None,
        }
    }
}
