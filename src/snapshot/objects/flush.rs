//! Flushes files and folders to the disk, from a few to thousands. One after the other, each would wait for the disk,
//! and `syncfs` would wait for the writes of all other programs: several threads share the waiting time.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::names;
use crate::scan::disk;

/// Maximum number of files that stay open to be flushed together.
pub(crate) const TOGETHER: usize = 128;
/// Threads that flush in parallel.
const AT_ONCE: usize = 8;
/// Fewer files are flushed without threads.
const FEW: usize = 4;

/// Flushes the contents of these files, and closes them.
pub(crate) fn files(files: &mut Vec<OwnedFd>) -> io::Result<()> {
    each(files.len(), &|at| Ok(rustix::fs::fsync(&files[at])?))?;
    files.clear();
    Ok(())
}

/// Flushes the entries of these folders; for a folder that is gone, those of its parent.
pub(crate) fn folders(root: BorrowedFd<'_>, paths: BTreeSet<&[u8]>) -> io::Result<()> {
    let paths: Vec<&[u8]> = paths.into_iter().collect();
    each(paths.len(), &|at| {
        let mut path = paths[at];
        loop {
            match disk::open_below(root, path) {
                Ok(dir) => return Ok(rustix::fs::fsync(dir.as_fd())?),
                // The workspace itself is gone: there is nothing to flush.
                Err(_) if path.is_empty() => return Ok(()),
                Err(_) => path = names::split(path).0,
            }
        }
    })
}

/// Calls `one` for each number below `count`, several in parallel. Returns the first error.
fn each(count: usize, one: &(dyn Fn(usize) -> io::Result<()> + Sync)) -> io::Result<()> {
    if count < FEW {
        return (0..count).try_for_each(one);
    }
    let next = AtomicUsize::new(0);
    let work = || -> io::Result<()> {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return Ok(());
            }
            one(at)?;
        }
    };
    std::thread::scope(|scope| {
        // The threads wait for the disk, so their number does not depend on the processors.
        let threads: Vec<_> = (1..AT_ONCE.min(count)).map(|_| scope.spawn(work)).collect();
        let mut result = work();
        for thread in threads {
            let other = thread.join().unwrap_or_else(|_| Err(io::Error::other("a flushing thread failed")));
            result = result.and(other);
        }
        result
    })
}
