//! Waiting for the disk, for a few names or for thousands. One after the other each would cost a turn of the
//! disk, and the file system as a whole would wait for what every other program writes: several at a time
//! share the turns and wait for nothing else.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::names;
use crate::scan::disk;

/// Files that may be kept open to be waited for together.
pub(crate) const TOGETHER: usize = 128;
/// Threads that wait at the same time.
const AT_ONCE: usize = 8;
/// Fewer are not worth threads.
const FEW: usize = 4;

/// Waits for the contents of these files, and closes them.
pub(crate) fn files(files: &mut Vec<OwnedFd>) -> io::Result<()> {
    each(files.len(), &|at| Ok(rustix::fs::fsync(&files[at])?))?;
    files.clear();
    Ok(())
}

/// Waits for the names in these folders; for one that is gone, those of the folder that held it.
pub(crate) fn folders(root: BorrowedFd<'_>, paths: BTreeSet<&[u8]>) -> io::Result<()> {
    let paths: Vec<&[u8]> = paths.into_iter().collect();
    each(paths.len(), &|at| {
        let mut path = paths[at];
        loop {
            match disk::open_below(root, path) {
                Ok(dir) => return Ok(rustix::fs::fsync(dir.as_fd())?),
                // Nobody can open the workspace itself any more: there is nothing to wait for.
                Err(_) if path.is_empty() => return Ok(()),
                Err(_) => path = names::split(path).0,
            }
        }
    })
}

/// Does `one` for each number below `count`, several at a time. Gives the first mistake.
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
        // They wait for the disk, not for a processor, so their number is not that of the processors.
        let threads: Vec<_> = (1..AT_ONCE.min(count)).map(|_| scope.spawn(work)).collect();
        let mut result = work();
        for thread in threads {
            let other = thread.join().unwrap_or_else(|_| Err(io::Error::other("a flushing thread failed")));
            result = result.and(other);
        }
        result
    })
}
