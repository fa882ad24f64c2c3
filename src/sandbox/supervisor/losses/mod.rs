//! Files that a command has removed and that nothing brings back: the count of the guard of deletions. `git_index` reads the
//! files that git has, `ignored` those that it ignores.

mod git_index;
mod ignored;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::Timespec;
use tiller_tool::shell::{CommandWatch, Deletion};

use crate::policy::{Policy, Profile};
use git_index::GitIndex;
use ignored::Ignored;

/// Files of a folder that is moved away, as far as they are counted.
const LISTED: usize = 10_000;
/// File systems keep times in ticks: a file that is made now may look older, by this much at most.
const TICK: Duration = Duration::from_millis(10);
/// Below the home folder: what is there can be had again.
const CACHES: &[&str] =
    &[".cache", ".npm", ".cargo/registry", ".cargo/git", "go/pkg", ".gradle/caches", ".m2/repository"];

/// A moment in the form of the file system; 1970 for a clock that is wrong.
fn timespec(time: SystemTime) -> Timespec {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let tv_sec = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: since.subsec_nanos().into() }
}

/// The latest time of a file that was surely made before this moment.
fn before(time: SystemTime) -> Timespec {
    timespec(time.checked_sub(TICK).unwrap_or(time))
}

/// A file that is about to go.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileState {
    pub folder: bool,
    pub modified: Timespec,
    /// Where the file system keeps it.
    pub born: Option<Timespec>,
    pub size: u64,
}

/// What the person said about the removals of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    None,
    Continue,
    Refuse,
}

/// Where a file lies that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    /// Nothing is lost.
    None,
    Workspace,
    /// Elsewhere, for commands outside the sandbox: the first one is asked about.
    Outside,
}

/// The losses of the command that runs now. What does not count: the inside of `.git`, tracked files that are as git knows
/// them, files that git ignores, temporary files and caches, files that exist again, and files that the command itself has
/// made.
#[derive(Debug)]
pub(super) struct Losses {
    workspace: PathBuf,
    /// The command runs outside the sandbox, and may remove files everywhere.
    outside: bool,
    /// Temporary folders and caches.
    passing: Vec<PathBuf>,
    index: GitIndex,
    ignored: Ignored,
    lost: BTreeSet<PathBuf>,
    /// Number of the command that they belong to.
    command: u64,
    /// When it began.
    began: Timespec,
    answer: Answer,
}

impl Losses {
    pub(super) fn new(policy: &Policy) -> Self {
        let outside = policy.profile == Profile::Floor;
        let home = outside.then(|| std::env::var_os("HOME")).flatten();
        let caches = home.iter().flat_map(|home| CACHES.iter().map(|name| Path::new(home).join(name)));
        let temporary = [tempfile::env::temp_dir(), "/tmp".into(), "/dev/shm".into(), "/run".into()];
        let passing = temporary.into_iter().chain(caches);
        Self {
            workspace: policy.workspace.clone(),
            outside,
            passing: passing.filter_map(|path| path.canonicalize().ok()).collect(),
            index: GitIndex::new(&policy.workspace, policy.repository().as_ref()),
            ignored: Ignored::new(&policy.workspace, before(SystemTime::now())),
            lost: BTreeSet::new(),
            command: u64::MAX,
            began: Timespec { tv_sec: i64::MAX, tv_nsec: 0 },
            answer: Answer::None,
        }
    }

    /// Counts the removal of a file, before it is done. False: it must not be done. Asks when it is one too many.
    pub(super) fn allows(&mut self, path: &Path, state: FileState, watch: &CommandWatch) -> bool {
        self.follow(watch);
        let loss = self.loss(path, state);
        self.admit(loss, vec![path.to_owned()], watch)
    }

    /// Counts what lies in a folder that is moved to where it does not stay. `path`: the folder.
    pub(super) fn allows_folder(
        &mut self,
        path: &Path,
        state: impl Fn(&Path) -> Option<FileState>,
        watch: &CommandWatch,
    ) -> bool {
        self.follow(watch);
        let (mut folders, mut left, mut next) = (vec![path.to_owned()], LISTED, Vec::new());
        let mut outside = false;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let Some(rest) = usize::checked_sub(left, 1) else { break };
                left = rest;
                let path = entry.path();
                match state(&path) {
                    Some(state) if state.folder => folders.push(path),
                    Some(state) => match self.loss(&path, state) {
                        Loss::None => {}
                        loss => {
                            outside |= loss == Loss::Outside;
                            next.push(path);
                        }
                    },
                    None => {}
                }
            }
        }
        let loss = match (next.is_empty(), outside) {
            (true, _) => Loss::None,
            (false, true) => Loss::Outside,
            (false, false) => Loss::Workspace,
        };
        self.admit(loss, next, watch)
    }

    /// Asks before the workspace, or a folder above it, gets another name.
    pub(super) fn allows_workspace(&mut self, path: &Path, watch: &CommandWatch) -> bool {
        self.follow(watch);
        self.admit(Loss::Outside, vec![path.to_owned()], watch)
    }

    /// Whether a file that is there would count if it went from this path.
    pub(super) fn is_lost(&mut self, path: &Path, state: FileState, watch: &CommandWatch) -> bool {
        self.follow(watch);
        self.loss(path, state) != Loss::None
    }

    /// Begins anew when another command runs.
    fn follow(&mut self, watch: &CommandWatch) {
        let command = watch.command();
        if self.command != command.number {
            self.command = command.number;
            self.began = before(command.began);
            self.lost.clear();
            self.answer = Answer::None;
        }
    }

    fn admit(&mut self, loss: Loss, next: Vec<PathBuf>, watch: &CommandWatch) -> bool {
        let limit = match (loss, self.answer) {
            (Loss::None, _) | (_, Answer::Continue) => return true,
            (_, Answer::Refuse) => return false,
            (Loss::Outside, Answer::None) => 0,
            (Loss::Workspace, Answer::None) => watch.deletions(),
        };
        // A move to another file system is tried as a renaming first, and counts once.
        let fresh = |lost: &BTreeSet<PathBuf>| next.iter().filter(|path| !lost.contains(*path)).count();
        if self.lost.len() + fresh(&self.lost) > limit {
            self.lost.retain(|path| path.symlink_metadata().is_err());
        }
        if self.lost.len() + fresh(&self.lost) <= limit {
            self.lost.extend(next);
            return true;
        }
        let name = |path: &PathBuf| path.strip_prefix(&self.workspace).unwrap_or(path).to_owned();
        let deletion = Deletion {
            folder: self.workspace.clone(),
            removed: self.lost.iter().map(name).collect(),
            next: next.iter().map(name).collect(),
        };
        let yes = watch.ask_deletion(deletion);
        self.answer = if yes { Answer::Continue } else { Answer::Refuse };
        yes
    }

    fn loss(&mut self, path: &Path, state: FileState) -> Loss {
        use std::os::unix::ffi::OsStrExt;
        if state.born.is_some_and(|born| born >= self.began) {
            return Loss::None;
        }
        let Ok(name) = path.strip_prefix(&self.workspace) else {
            let internal = path.components().any(|part| part.as_os_str() == ".git");
            let passing = self.passing.iter().any(|folder| path.starts_with(folder));
            return if self.outside && !internal && !passing { Loss::Outside } else { Loss::None };
        };
        if name.components().any(|part| part.as_os_str() == ".git") {
            return Loss::None;
        }
        // A rule about ignored files does not hold for those that are tracked.
        let there = match self.index.find(name.as_os_str().as_bytes(), state.modified, state.size) {
            Some(clean) => clean,
            None => self.ignored.contains(name),
        };
        if there { Loss::None } else { Loss::Workspace }
    }
}
