//! Keeps a value in a file: the latest value is on disk a moment later, written by a thread of its own, so that a key
//! never waits for the disk.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;

/// A value is written when it was not changed for this time.
const GATHER: Duration = Duration::from_millis(150);

/// A value that changes all the time is written this often.
const LONGEST: Duration = Duration::from_secs(1);

/// A value that a saver keeps. An empty value ([`Default`]) removes the file.
pub(crate) trait Persistent: Serialize + Default + PartialEq + Send + 'static {
    /// The bytes of the file `path`. A value may write large parts into files of its own beside it.
    ///
    /// # Errors
    /// When such a file cannot be written.
    fn to_file(&self, _path: &Path) -> std::io::Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }

    /// Removes files beside `path` that the value written there does not use.
    fn sweep(&self, _path: &Path) {}

    /// True when it is written at once, because an older value on disk would be wrong and not only old.
    fn urgent(&self) -> bool {
        false
    }
}

/// How long values are gathered before one is written.
#[derive(Clone, Copy)]
struct Delays {
    gather: Duration,
    longest: Duration,
}

struct Slot<T> {
    next: Option<T>,
    /// How many values have come.
    changes: u64,
    done: bool,
    /// The value that waits is urgent.
    urgent: bool,
}

impl<T> Slot<T> {
    /// Nothing more is gathered.
    fn closes(&self) -> bool {
        self.done || self.urgent
    }
}

/// Writes the latest value to one file (0600, its folder 0700). Dropping it writes what is left and ends the thread.
pub(crate) struct Saver<T: Persistent> {
    path: PathBuf,
    delays: Delays,
    slot: Arc<(Mutex<Slot<T>>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Persistent> Saver<T> {
    /// Writes to `path`. Nothing is touched before the first value.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self::with_delays(path, Delays { gather: GATHER, longest: LONGEST })
    }

    fn with_delays(path: PathBuf, delays: Delays) -> Self {
        let slot = Slot { next: None, changes: 0, done: false, urgent: false };
        Self { path, delays, slot: Arc::new((Mutex::new(slot), Condvar::new())), thread: None }
    }

    /// Takes the value over. Never waits for the disk.
    pub(crate) fn save(&mut self, value: T) {
        if self.thread.is_none() {
            let (slot, path, delays) = (Arc::clone(&self.slot), self.path.clone(), self.delays);
            self.thread = std::thread::Builder::new()
                .name("draft".into())
                .spawn(move || run(&slot, &path, delays))
                .ok();
        }
        let mut s = self.slot.0.lock().unwrap_or_else(PoisonError::into_inner);
        s.changes = s.changes.wrapping_add(1);
        let urgent = value.urgent();
        s.urgent |= urgent;
        let before = s.next.replace(value);
        drop(s);
        // While something waits, the thread is up already.
        if before.is_none() || urgent {
            self.slot.1.notify_one();
        }
    }
}

impl<T: Persistent> Drop for Saver<T> {
    fn drop(&mut self) {
        self.slot.0.lock().unwrap_or_else(PoisonError::into_inner).done = true;
        self.slot.1.notify_one();
        if let Some(t) = self.thread.take() {
            // A writer that failed has logged why.
            let _ = t.join();
        }
    }
}

fn run<T: Persistent>(slot: &(Mutex<Slot<T>>, Condvar), path: &Path, delays: Delays) {
    let mut s = slot.0.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if s.next.is_none() {
            if s.done {
                return;
            }
            s = slot.1.wait(s).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        // It looks now and then, so that a key need not wake it.
        let first = Instant::now();
        while !s.closes() && first.elapsed() < delays.longest {
            let seen = s.changes;
            let waited = slot.1.wait_timeout_while(s, delays.gather, |s| !s.closes());
            s = waited.unwrap_or_else(PoisonError::into_inner).0;
            if s.changes == seen {
                break;
            }
        }
        s.urgent = false;
        if let Some(value) = s.next.take() {
            drop(s);
            if let Err(e) = write(path, &value) {
                tracing::warn!("The draft could not be saved in {}: {e}", path.display());
            }
            s = slot.0.lock().unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The lock beside the file of a window. `None`: another window has it. Where a file system has no locks, every file
/// is free, as with one window only.
pub(crate) fn own_lock(path: &Path) -> Option<File> {
    private_folder(path).ok()?;
    let mut options = private_options();
    let file = options.truncate(false).open(path.with_extension("lock")).ok()?;
    match file.try_lock() {
        Err(std::fs::TryLockError::WouldBlock) => None,
        Ok(()) | Err(std::fs::TryLockError::Error(_)) => Some(file),
    }
}

/// Writes a temporary file beside it and renames it, so that the file is never half written. An empty value removes the
/// file.
///
/// # Errors
/// When the folder or the file cannot be written.
pub(crate) fn write<T: Persistent>(path: &Path, value: &T) -> std::io::Result<()> {
    if *value == T::default() {
        return match std::fs::remove_file(path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
            _ => {
                value.sweep(path);
                Ok(())
            }
        };
    }
    let new = path.with_extension("new");
    write_private(&new, &value.to_file(path)?)?;
    std::fs::rename(&new, path)?;
    value.sweep(path);
    Ok(())
}

/// Writes a file that only its owner can read; makes its folder when it is not there.
///
/// # Errors
/// When the folder or the file cannot be written.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    private_folder(path)?;
    private_options().truncate(true).open(path)?.write_all(bytes)
}

/// Makes the folder of `path` (0700) when it is not there.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn private_folder(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    path.parent().map_or(Ok(()), |dir| std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir))
}

/// Opens a file for writing that only its owner can read.
pub(crate) fn private_options() -> std::fs::OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    options
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Default, PartialEq, Serialize, Deserialize)]
    struct Value {
        urgent: bool,
        n: u32,
    }

    impl Persistent for Value {
        fn urgent(&self) -> bool {
            self.urgent
        }
    }

    #[test]
    fn an_urgent_value_is_written_without_the_delay() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("value");
        let hour = Duration::from_secs(3600);
        let mut saver = Saver::with_delays(path.clone(), Delays { gather: hour, longest: hour });
        saver.save(Value { urgent: false, n: 1 });
        saver.save(Value { urgent: true, n: 2 });
        let end = Instant::now() + Duration::from_secs(60);
        while !path.exists() {
            assert!(Instant::now() < end, "it was not written");
            std::thread::park_timeout(Duration::from_millis(1));
        }
        let read = || serde_json::from_slice::<Value>(&std::fs::read(&path).unwrap()).unwrap().n;
        assert_eq!(read(), 2);
        // The next one is gathered again: only its end writes it.
        saver.save(Value { urgent: false, n: 3 });
        assert_eq!(read(), 2);
        drop(saver);
        assert_eq!(read(), 3);
    }
}
