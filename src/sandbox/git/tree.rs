//! The folders of a workspace, and which of them git takes for repositories.
//!
//! A folder that was read is read again only when its time of change is another one: no program can set that. So a look costs
//! one question for each folder, however many files lie in them.

use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::quarantine::make_accessible;
use crate::writes::NamesIn;

/// Folders of one workspace that are looked at.
const FOLDERS: usize = 100_000;
/// What was changed so shortly before it was read may have been changed again without a trace: the clocks of file systems
/// have steps.
pub(super) const STEP: Duration = Duration::from_secs(2);

/// The step of the kernel's clock by which files are stamped, with some room.
const TICK: Duration = Duration::from_millis(20);

/// Device and number of a file.
pub(super) type FileId = (u64, u64);

/// Which file this is, and when it was changed last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) file: FileId,
    size: u64,
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(meta: &Metadata) -> Self {
        Self { file: (meta.dev(), meta.ino()), size: meta.size(), changed: (meta.ctime(), meta.ctime_nsec()) }
    }

    /// Of what has this name itself, be it a link.
    pub(super) fn at(path: &Path) -> Option<Self> {
        path.symlink_metadata().ok().map(|meta| Self::of(&meta))
    }

    /// Whether it was changed at this time or later, as far as the steps of clocks tell.
    pub(super) fn is_since(&self, time: SystemTime) -> bool {
        self.time() + STEP >= time
    }

    /// Returns true if it was changed at this time or later, by the clock of its file system: one with long steps
    /// has no parts of a second.
    pub(super) fn is_just_since(&self, time: SystemTime) -> bool {
        self.time() + if self.changed.1 == 0 { STEP } else { TICK } >= time
    }

    fn time(&self) -> SystemTime {
        let seconds = Duration::from_secs(u64::try_from(self.changed.0).unwrap_or_default());
        UNIX_EPOCH + seconds + Duration::from_nanos(u64::try_from(self.changed.1).unwrap_or_default())
    }
}

/// A folder as it was read.
#[derive(Debug)]
struct Folder {
    stamp: Stamp,
    /// It cannot have changed since without another stamp.
    settled: bool,
    below: Vec<OsString>,
    /// Entries with the name of a repository's folder that are none: a file or a link leads git elsewhere.
    pointers: Vec<OsString>,
    /// Git takes it for a repository, whatever its name.
    repository: bool,
    /// Files and links with protected names.
    named: Vec<OsString>,
}

/// All folders of a workspace.
#[derive(Debug, Default)]
pub(super) struct Tree {
    folders: HashMap<PathBuf, Folder>,
    /// There are more.
    pub(super) cut: bool,
    /// Folders that were read by the last look, for tests.
    #[cfg(test)]
    pub(super) read: usize,
}

impl Tree {
    /// Looks at the folders below these, and reads those that were changed.
    pub(super) fn look(&mut self, tops: &[PathBuf]) {
        let mut old = std::mem::take(&mut self.folders);
        let workspace = tops.first().cloned().unwrap_or_default();
        // The upper folders first, where there are too many.
        let mut waiting = VecDeque::from(tops.to_vec());
        self.cut = false;
        let mut read = 0;
        while let Some(path) = waiting.pop_front() {
            if self.folders.len() >= FOLDERS {
                self.cut = true;
                break;
            }
            let Some(meta) = path.symlink_metadata().ok().filter(Metadata::is_dir) else { continue };
            let stamp = Stamp::of(&meta);
            let known = old.remove(&path).filter(|known| known.settled && known.stamp == stamp);
            let folder = known.unwrap_or_else(|| {
                read += 1;
                Folder::read(&path, &meta, &workspace)
            });
            waiting.extend(folder.below.iter().map(|name| path.join(name)));
            self.folders.insert(path, folder);
        }
        let _ = read;
        #[cfg(test)]
        {
            self.read = read;
        }
    }

    /// Number of folders.
    pub(super) fn len(&self) -> usize {
        self.folders.len()
    }

    /// The folders of repositories: those named so, and those that look like one.
    pub(super) fn repositories(&self) -> impl Iterator<Item = &Path> {
        let is_one = |path: &Path, folder: &Folder| {
            folder.repository || path.file_name().is_some_and(is_repository_name)
        };
        self.folders.iter().filter(move |(path, folder)| is_one(path, folder)).map(|(path, _)| path.as_path())
    }

    /// Files and links with protected names.
    pub(super) fn named(&self) -> impl Iterator<Item = PathBuf> {
        self.folders.iter().flat_map(|(path, folder)| folder.named.iter().map(|name| path.join(name)))
    }

    /// Files and links that lead git to a repository.
    pub(super) fn pointers(&self) -> impl Iterator<Item = PathBuf> {
        self.folders.iter().flat_map(|(path, folder)| folder.pointers.iter().map(|name| path.join(name)))
    }
}

impl Folder {
    fn read(path: &Path, meta: &Metadata, workspace: &Path) -> Self {
        let stamp = Stamp::of(meta);
        let settled = !stamp.is_since(SystemTime::now());
        let (below, pointers, named) = Default::default();
        let mut folder = Self { stamp, settled, below, pointers, repository: false, named };
        let (mut parts, mut names) = (Parts::default(), NamesIn::new(workspace, path));
        for entry in entries(path, meta) {
            let name = entry.file_name();
            parts.add(&name);
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folder.below.push(name),
                _ if is_repository_name(&name) => folder.pointers.push(name),
                Ok(kind) if names.has(&name, kind.is_symlink()) => folder.named.push(name),
                _ => {}
            }
        }
        folder.repository = parts.make_repository();
        folder
    }
}

/// The entries of a folder. One that its owner cannot read, though git can go through it, is made readable.
fn entries(path: &Path, meta: &Metadata) -> impl Iterator<Item = std::fs::DirEntry> {
    let mut entries = std::fs::read_dir(path);
    if entries.is_err() && meta.mode() & 0o500 != 0o500 {
        let _ = make_accessible(path);
        entries = std::fs::read_dir(path);
    }
    entries.into_iter().flatten().flatten()
}

/// Parts of a repository that a folder has.
#[derive(Default)]
struct Parts {
    head: bool,
    objects: bool,
    refs: bool,
    common: bool,
}

impl Parts {
    fn add(&mut self, name: &OsStr) {
        for (part, known) in [
            (&mut self.head, "HEAD"),
            (&mut self.objects, "objects"),
            (&mut self.refs, "refs"),
            (&mut self.common, "commondir"),
        ] {
            *part |= name.eq_ignore_ascii_case(known);
        }
    }

    fn make_repository(&self) -> bool {
        self.head && (self.objects && self.refs || self.common)
    }
}

/// Whether a file system could take this name for `.git`.
pub(super) fn is_repository_name(name: &OsStr) -> bool {
    if name.is_ascii() {
        return name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case("git~1");
    }
    let visible = |c: &char| tiller_shell::invisibles(c.encode_utf8(&mut [0; 4])).is_empty();
    let name: String = name.to_string_lossy().chars().filter(visible).collect();
    name.eq_ignore_ascii_case(".git")
}
