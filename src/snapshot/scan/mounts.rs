//! Other file systems below the workspace. A restore cannot move files there, so their files are not kept; stamps tell
//! which of them changed.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::fs::FileType;
use tiller_protocol::Clock;

use crate::names;
use crate::scan::disk::{self, Stamp};
use crate::scan::ignored;
use crate::scan::notes::Watched;

/// Maximum number of names of one file system, and the longest time that looking at them may take.
const NAMES: usize = 1_000;
const TIME: Duration = Duration::from_millis(200);
/// Maximum depth below the mount point.
const DEEPEST: usize = 32;
/// Kinds of file systems whose files are no data: proc, sysfs, cgroup, devpts.
const SYSTEM: [u64; 5] = [0x9fa0, 0x6265_6572, 0x27_e0eb, 0x6367_7270, 0x1cd1];

/// The files of other file systems as of the last scan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mounts {
    pub(crate) stamps: BTreeMap<Vec<u8>, Stamp>,
    /// Mount points with more names than are looked at.
    pub(crate) partly: BTreeSet<Vec<u8>>,
    /// Mount points where looking took too long. They are not looked at again.
    pub(crate) slow: BTreeSet<Vec<u8>>,
}

#[allow(clippy::unnecessary_cast, reason = "its type differs between systems")]
fn is_system(fs: &rustix::fs::StatFs) -> bool {
    SYSTEM.contains(&(fs.f_type as u64))
}

impl Mounts {
    /// Notes the files below a mount point, as far as that is quick.
    pub(crate) fn watch(&mut self, clock: &dyn Clock, fd: BorrowedFd<'_>, path: &[u8]) {
        let system = rustix::fs::fstatfs(fd).is_ok_and(|fs| is_system(&fs));
        if system || self.slow.contains(path) {
            return;
        }
        let end = clock.mono() + TIME;
        let mut left = NAMES;
        if !self.below(&mut || clock.mono() > end, fd, path, (DEEPEST, &mut left)) {
            self.partly.insert(path.to_vec());
        }
        if clock.mono() > end {
            self.slow.insert(path.to_vec());
        }
    }

    /// Adds the files to those that are not covered.
    pub(crate) fn tell(&self, watched: &mut Watched) {
        watched.stamps.extend(self.stamps.iter().map(|(path, stamp)| (path.clone(), stamp.word())));
        watched.partly.extend(self.partly.union(&self.slow).cloned());
    }

    /// Returns whether all names were looked at.
    fn below(
        &mut self,
        late: &mut dyn FnMut() -> bool,
        fd: BorrowedFd<'_>,
        path: &[u8],
        (depth, left): (usize, &mut usize),
    ) -> bool {
        let Ok(Some(mut names)) = disk::list_some(fd, *left) else { return false };
        names.sort_unstable();
        let mut all = depth > 0;
        for name in names {
            if !all || *left == 0 || late() {
                return false;
            }
            *left -= 1;
            let Ok(Some(stamp)) = disk::look(fd, &name) else { continue };
            let here = names::join(path, &name);
            match stamp.file_type() {
                FileType::Directory if ignored::is_output(&name) => {}
                FileType::Directory => {
                    let child = disk::open_dir(fd, &name);
                    all = child.is_ok_and(|child| self.below(late, child.as_fd(), &here, (depth - 1, left)));
                }
                _ => drop(self.stamps.insert(here, stamp)),
            }
        }
        all
    }
}
