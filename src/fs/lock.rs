//! Lock files: a file whose kernel lock (`flock`) keeps processes and threads from doing the same work at the same time.
//!
//! The file has no content and stays there. What counts is the lock on the open file, which the kernel releases when the
//! holder closes the file or its process ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two attempts to get a lock. The kernel has no wait for a lock that ends at a deadline.
const PAUSE: Duration = Duration::from_millis(2);

/// A held lock. Dropping it releases the lock; a program that another thread is about to start inherits the lock and keeps it
/// until it runs.
#[derive(Debug)]
#[must_use = "dropping it releases the lock"]
pub struct LockFile {
    _file: File,
}

/// Why a lock is not held.
#[derive(Debug)]
pub enum LockError {
    /// Another process, or another open file of this one, held it for the whole wait.
    Held,
    /// The file cannot be created or opened for writing, or its file system has no locks.
    Io(io::Error),
}

impl LockFile {
    /// Creates the file at `path` where there is none (readable by the user alone), and locks it. A link is followed. Blocks
    /// for `wait` at most while the lock is held elsewhere; with a `wait` of zero it tries once. A thread that holds the lock
    /// must not take it again.
    ///
    /// # Errors
    /// [`LockError::Held`] after the whole wait; [`LockError::Io`] at once, also when the file's folder does not exist.
    #[expect(
        clippy::disallowed_methods,
        reason = "a lock of another process can be waited for in no other way that ends"
    )]
    pub fn acquire(path: &Path, wait: Duration) -> Result<Self, LockError> {
        Self::acquire_with(path, wait, || std::thread::sleep(PAUSE))
    }

    /// As [`Self::acquire`]. `pause` is called between two attempts.
    fn acquire_with(path: &Path, wait: Duration, mut pause: impl FnMut()) -> Result<Self, LockError> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path).map_err(LockError::Io)?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if began.elapsed() < wait => pause(),
                Err(TryLockError::WouldBlock) => return Err(LockError::Held),
                Err(TryLockError::Error(e))
                    if e.kind() == io::ErrorKind::Interrupted && began.elapsed() < wait =>
                {
                    pause();
                }
                Err(TryLockError::Error(e)) => return Err(LockError::Io(e)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Longer than any test: the wait ends by the release of the lock.
    const LONG: Duration = Duration::from_secs(600);

    /// The pause of a test with one attempt only.
    fn never() {
        panic!("there is a second attempt");
    }

    #[test]
    fn a_held_lock_is_refused_and_a_released_one_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let first = LockFile::acquire(&path, Duration::ZERO).unwrap();
        assert!(matches!(LockFile::acquire_with(&path, Duration::ZERO, never), Err(LockError::Held)));
        let other = LockFile::acquire(&dir.path().join("other"), Duration::ZERO);
        assert!(other.is_ok(), "each file is a lock of its own");
        drop(first);
        assert!(LockFile::acquire(&path, LONG).is_ok());
    }

    #[test]
    fn a_lock_that_becomes_free_during_the_wait_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let mut first = Some(LockFile::acquire(&path, Duration::ZERO).unwrap());
        let mut pauses = 0;
        let second = LockFile::acquire_with(&path, LONG, || {
            pauses += 1;
            if pauses == 3 {
                drop(first.take());
            }
        });
        assert!(second.is_ok());
        assert!(pauses >= 3, "it was tried {pauses} times before the release");
        assert!(matches!(LockFile::acquire(&path, Duration::ZERO), Err(LockError::Held)));
    }

    #[test]
    fn threads_hold_it_one_after_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let holders = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let _held = LockFile::acquire(&path, LONG).unwrap();
                        assert_eq!(holders.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        holders.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    }
                });
            }
        });
    }

    #[test]
    fn the_wait_ends_at_its_deadline() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let _first = LockFile::acquire(&path, Duration::ZERO).unwrap();
        let wait = Duration::from_millis(5);
        let began = Instant::now();
        assert!(matches!(LockFile::acquire(&path, wait), Err(LockError::Held)));
        assert!(began.elapsed() >= wait);
    }

    #[test]
    fn the_file_is_private_and_one_that_cannot_be_opened_is_an_error_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        drop(LockFile::acquire(&path, Duration::ZERO).unwrap());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        // What is in a file stays there.
        std::fs::write(&path, "text").unwrap();
        drop(LockFile::acquire(&path, LONG).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "text");

        let missing = dir.path().join("missing/lock");
        let Err(LockError::Io(e)) = LockFile::acquire_with(&missing, LONG, never) else {
            panic!("a file in a folder that does not exist")
        };
        assert_eq!(e.kind(), io::ErrorKind::NotFound);
        let Err(LockError::Io(e)) = LockFile::acquire_with(dir.path(), LONG, never) else {
            panic!("a folder in place of the file")
        };
        assert_eq!(e.kind(), io::ErrorKind::IsADirectory);
    }
}
