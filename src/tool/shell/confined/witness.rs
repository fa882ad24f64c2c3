//! The files that the programs of a call changed, as their supervisors saw it: what else changed meanwhile is another's.
//!
//! A supervisor sees every opening for writing and every change of a name before it happens. It does not see the writes
//! themselves, so a second writer of a file that a program opened is found by traces: the file was changed before the program
//! opened it, another file stands in its place, it was closed once more than the program opened it, or it was changed long after
//! the last opening.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tiller_protocol::lock;

/// Paths that are remembered of a call. Of a call that changes more, nothing is known.
const PATHS: usize = 200_000;
/// Programs write for some time after they opened a file. A change that is later than this may be another's.
const HELD: Duration = Duration::from_secs(2);

/// A file's identity, and when it was changed last (`st_ctime`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMark {
    pub device: u64,
    pub inode: u64,
    pub changed: SystemTime,
}

impl FileMark {
    /// The mark of what has this name now, links not followed; `None`: nothing has it.
    pub fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let found = path.symlink_metadata().ok()?;
        Some(Self::new(found.dev(), found.ino(), found.ctime(), found.ctime_nsec()))
    }

    /// The mark with a time as stat(2) has it.
    pub fn new(device: u64, inode: u64, seconds: i64, nanoseconds: i64) -> Self {
        let whole = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        let part = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or_default());
        Self { device, inode, changed: SystemTime::UNIX_EPOCH + whole + part }
    }

    fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// A path that the call itself is about to write.
#[derive(Clone, Debug)]
pub struct PathBefore {
    path: PathBuf,
    mark: Option<FileMark>,
    folder: bool,
}

impl PathBefore {
    /// Returns the path with what stands there now.
    pub fn of(path: &Path) -> Self {
        let folder = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        Self { path: path.to_owned(), mark: FileMark::of(path), folder }
    }
}

/// State in which a program leaves a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// This file stands there, new, changed or moved.
    File(FileMark),
    /// A folder, a link or a device.
    Other,
    /// A folder was moved here, or from here, with all that lies below.
    Tree,
    /// The name is free.
    Nothing,
    /// The file is as it was, but for its other names or its times.
    Same,
}

/// Author of a change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The programs of the call made it.
    Call,
    /// The programs of the call did not touch the file.
    Others,
    /// Both touched it, as far as can be seen.
    Both,
    /// The programs of the call made it. Writes of others in the same file are not recorded.
    Unsure,
}

/// Changes that the supervisors of a call's programs saw. Clones share it. The supervisors add to it; it is read when the
/// files are compared after the call.
#[derive(Clone, Debug, Default)]
pub struct Witness(Arc<Mutex<Seen>>);

/// Only clones are equal.
impl PartialEq for Witness {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Witness {}

#[derive(Debug, Default)]
struct Seen {
    /// When the state of the files before the call was taken.
    began: Option<SystemTime>,
    /// When the call ended. A file that was changed later may have another writer.
    ended: Option<SystemTime>,
    /// Programs of the call, and those of them whose supervisor sees what they write.
    programs: usize,
    supervised: usize,
    /// Sorted: those below a folder stand together.
    paths: BTreeMap<PathBuf, SeenPath>,
    full: bool,
}

#[derive(Debug)]
struct SeenPath {
    left: Left,
    /// A folder was moved here, or from here, before.
    tree: bool,
    /// When the programs of the call last did something with it.
    last: SystemTime,
    /// Another had changed it before.
    mixed: bool,
    /// Writes of others in the file, after the programs of the call had opened it, are not recorded.
    unsure: bool,
}

impl Witness {
    /// Begins anew: the state of the files before the call is taken after `now`.
    pub fn begin(&self, now: SystemTime) {
        *lock(&self.0) = Seen { began: Some(now), ..Seen::default() };
    }

    /// Notes that the call ends now, unless something is changed for it later.
    pub fn end(&self) {
        lock(&self.0).ended = Some(SystemTime::now());
    }

    /// Notes that these files have been made anew, with the content that the programs of the call left.
    pub fn remade(&self, paths: &[PathBuf]) {
        let mut seen = lock(&self.0);
        for path in paths {
            if let Some(known) = seen.paths.get_mut(path)
                && let (Left::File(_), Some(now)) = (known.left, FileMark::of(path))
            {
                known.left = Left::File(now);
            }
        }
    }

    /// A program of the call begins. `supervised`: its supervisor is there already.
    pub(super) fn program(&self, supervised: bool) {
        let mut seen = lock(&self.0);
        seen.programs += 1;
        seen.supervised += usize::from(supervised);
    }

    /// Notes that something works for the call that no supervisor sees.
    pub fn goes_blind(&self) {
        self.program(false);
    }

    /// The supervisor of a program has come.
    pub(super) fn supervisor(&self) {
        lock(&self.0).supervised += 1;
    }

    /// Notes what a program of the call has just made of a path. `was`: what stood there before.
    pub fn changed(&self, path: &Path, left: Left, was: Option<FileMark>) {
        let mut seen = lock(&self.0);
        seen.ended = None;
        let late = was.is_some_and(|was| seen.began.is_some_and(|began| was.changed >= began));
        let mixed = late && !seen.paths.contains_key(path);
        if let Some(known) = seen.paths.get_mut(path) {
            known.mixed |= mixed || was.is_some() && known.is_changed_by_others(was, None);
            known.last = SystemTime::now();
            known.tree |= left == Left::Tree;
            if left != Left::Same {
                known.left = left;
            }
        } else if seen.paths.len() < PATHS {
            let (tree, last) = (left == Left::Tree, SystemTime::now());
            seen.paths.insert(path.to_owned(), SeenPath { left, tree, last, mixed, unsure: false });
        } else {
            seen.full = true;
        }
    }

    /// Notes that a program of the call has just moved a file or folder, which leaves `left` at its new name. `file`: the moved
    /// file, `over`: the one that stood at its new name.
    pub fn moved(
        &self,
        (old, new): (&Path, &Path),
        left: Left,
        file: Option<FileMark>,
        over: Option<FileMark>,
    ) {
        self.changed(new, left, over);
        self.changed(old, if left == Left::Tree { left } else { Left::Nothing }, file);
        let mut seen = lock(&self.0);
        seen.share_mixed(old, new);
        if left == Left::Tree {
            let below = seen.take_below(old);
            // Only an empty folder is replaced.
            seen.take_below(new);
            seen.put_below(new, below);
        }
    }

    /// Notes that a program of the call has just exchanged two names, which leaves this at each. `files`: what stood there.
    pub fn exchanged(&self, names: [&Path; 2], left: [Left; 2], files: [Option<FileMark>; 2]) {
        for at in 0..2 {
            self.changed(names[at], left[at], files[at]);
        }
        let mut seen = lock(&self.0);
        seen.share_mixed(names[0], names[1]);
        seen.share_mixed(names[1], names[0]);
        let below = names.map(|name| seen.take_below(name));
        for (name, below) in [names[1], names[0]].into_iter().zip(below) {
            seen.put_below(name, below);
        }
    }

    /// Notes that a program of the call has closed a file that it could write.
    pub fn closed(&self, path: &Path) {
        if let Some(known) = lock(&self.0).paths.get_mut(path) {
            known.last = SystemTime::now();
        }
    }

    /// Notes a file that a program of the call has just opened, and in which writes of other programs are not recorded.
    pub fn not_looked_at(&self, path: &Path) {
        if let Some(known) = lock(&self.0).paths.get_mut(path) {
            known.unsure = true;
        }
    }

    /// Notes that another program has written a file in its place.
    pub fn written_by_others(&self, path: &Path) {
        if let Some(known) = lock(&self.0).paths.get_mut(path) {
            known.mixed = true;
        }
    }

    /// Notes what the call itself, not a program of it, made of a path that it was to write.
    pub fn wrote(&self, before: &PathBefore) {
        let now = PathBefore::of(&before.path);
        if now.folder || before.folder {
            self.changed(&before.path, Left::Tree, None);
        } else if now.mark != before.mark {
            self.changed(&before.path, now.mark.map_or(Left::Nothing, Left::File), before.mark);
        }
    }

    /// Returns true if it saw all that the programs of the call changed.
    pub fn is_complete(&self) -> bool {
        let seen = lock(&self.0);
        seen.programs > 0 && seen.supervised >= seen.programs && !seen.full && seen.began.is_some()
    }

    /// Returns whose the change of a path is. `now`: what stands there.
    pub fn whose(&self, path: &Path, now: Option<FileMark>) -> Whose {
        let seen = lock(&self.0);
        let tree =
            || path.ancestors().skip(1).any(|above| seen.paths.get(above).is_some_and(|known| known.tree));
        let Some(known) = seen.paths.get(path).filter(|known| known.left != Left::Same) else {
            // A change there is no trace of a moved folder's.
            let late = || now.is_some_and(|now| seen.began.is_some_and(|began| now.changed >= began));
            return match tree() {
                true if late() => Whose::Both,
                true => Whose::Call,
                false => Whose::Others,
            };
        };
        match known {
            _ if known.mixed || known.is_changed_by_others(now, seen.ended) => Whose::Both,
            _ if known.unsure => Whose::Unsure,
            _ => Whose::Call,
        }
    }
}

impl SeenPath {
    /// Returns true if what stands there shows that others changed it after the programs of the call, which `ended` then.
    fn is_changed_by_others(&self, now: Option<FileMark>, ended: Option<SystemTime>) -> bool {
        let later =
            |now: FileMark| now.changed > self.last + HELD || ended.is_some_and(|ended| now.changed > ended);
        match (self.left, now) {
            (Left::File(file), Some(now)) => !file.is_same_file(&now) || later(now),
            (Left::Other | Left::Tree | Left::Same, Some(now)) => later(now),
            (Left::Nothing, now) => now.is_some(),
            (_, None) => false,
        }
    }
}

impl Seen {
    /// Notes for `new` what another wrote at `old`, or may have, which has moved there.
    fn share_mixed(&mut self, old: &Path, new: &Path) {
        let moved = self.paths.get(old).map(|known| (known.mixed, known.unsure));
        if let (Some((mixed, unsure)), Some(known)) = (moved, self.paths.get_mut(new)) {
            known.mixed |= mixed;
            known.unsure |= unsure;
        }
    }

    /// Takes out what was noted below a folder, with paths in it.
    fn take_below(&mut self, folder: &Path) -> Vec<(PathBuf, SeenPath)> {
        let after = self.paths.range::<Path, _>((Bound::Excluded(folder), Bound::Unbounded));
        let below = after.map(|(path, _)| path).take_while(|path| path.starts_with(folder));
        let below: Vec<PathBuf> = below.cloned().collect();
        let taken = below.into_iter().filter_map(|path| self.paths.remove_entry(&path));
        let inner = |path: &Path| path.strip_prefix(folder).map(Path::to_owned).unwrap_or_default();
        taken.map(|(path, known)| (inner(&path), known)).collect()
    }

    fn put_below(&mut self, folder: &Path, below: Vec<(PathBuf, SeenPath)>) {
        self.paths.extend(below.into_iter().map(|(path, known)| (folder.join(path), known)));
    }
}

#[cfg(test)]
#[path = "witness_tests.rs"]
mod tests;
