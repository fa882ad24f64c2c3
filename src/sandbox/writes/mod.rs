//! Protected names that commands write below the workspace, in any folder, existing or not.
//!
//! The supervisor opens files and makes names in the place of a command, so it knows each of these before it is changed. It
//! notes what was there and lets the call go on: git must be able to check out, merge and remove what it tracks. After the
//! command the new content is judged: what a commit from before the session has under this path stays, with a line about it, as does
//! what the path had earlier in the session. Everything else is kept in the quarantine, and the former state put back; where a person
//! can answer, they are asked whether it stays. Files that agents read as instructions are judged in the same way.
//!
//! | module | holds |
//! | --- | --- |
//! | `judge` | the judgement after a command |
//! | `held` | what a person can keep of what was put back |
//! | `history` | what commits from before the session have |
//! | `place` | a path whose folders cannot be replaced by links meanwhile |

mod held;
mod history;
mod judge;
mod place;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tiller_fs::links::{FileId, linked_file};
use tiller_protocol::protected_names;

use crate::quarantine::{Budget, State};
pub(crate) use held::Held;
pub(crate) use history::Tips;
pub(crate) use judge::Judged;

/// The largest file that can be noted, in bytes.
const BYTES: usize = 4 << 20;
/// All states together that are noted until the command ends, in bytes.
const ALL: usize = 64 << 20;
/// Entries of a folder in the place of a file.
const ENTRIES: usize = 100;
/// Names that are noted until the command ends.
const NAMES: usize = 10_000;
/// Paths whose contents are remembered.
const SEEN: usize = 10_000;

/// Names of repositories. What is in them is judged by what git obeys of it.
const REPOSITORY: [&str; 2] = [".git", "git~1"];
/// The folder of Tiller, which a command does not write by git either.
const OWN: &str = ".tiller";
/// Begins the names of what is put in place from here. They count as protected: a command that opens one waits until it is there.
const TEMPORARY: &str = ".tiller-held-";

/// Returns the folder above the protected name that this path in the workspace goes through. `link`: a link may lie there, so
/// that the first part of a name counts too. `None`: none, or it is a part of a package or of a repository.
pub(crate) fn folder_above(workspace: &Path, path: &Path, link: bool) -> Option<PathBuf> {
    let below = path.strip_prefix(workspace).ok()?;
    let parts = folded(below);
    let found = protected_names::find(&parts).or_else(|| protected_names::find_instructions(&parts));
    let at = match found {
        Some(found) if REPOSITORY.contains(&found.name) => return None,
        Some(found) => found.at,
        None => {
            let temporary = parts.iter().position(|part| part.starts_with(TEMPORARY));
            temporary.or_else(|| protected_names::find_begun(&parts).filter(|_| link))?
        }
    };
    (!protected_names::is_package(&parts)).then(|| workspace.join(below.iter().take(at).collect::<PathBuf>()))
}

/// Finds the protected names in one folder of a workspace.
pub(crate) struct NamesIn {
    /// The path of the folder below the workspace, folded; `None`: no name counts in it.
    folder: Option<Vec<String>>,
}

impl NamesIn {
    pub(crate) fn new(workspace: &Path, folder: &Path) -> Self {
        let parts = folder.strip_prefix(workspace).ok().map(folded);
        let free = |parts: &Vec<String>| {
            protected_names::is_package(parts) || parts.iter().any(|part| REPOSITORY.contains(&part.as_str()))
        };
        Self { folder: parts.filter(|parts| !free(parts)) }
    }

    /// Returns true if this file or link has one, as [`folder_above`] says.
    pub(crate) fn has(&mut self, name: &OsStr, link: bool) -> bool {
        let Some(parts) = &mut self.folder else { return false };
        parts.push(tiller_shell::fold(&name.to_string_lossy()));
        let found = protected_names::find(parts).or_else(|| protected_names::find_instructions(parts));
        let has = found.is_some() || link && protected_names::find_begun(parts).is_some();
        parts.pop();
        has
    }
}

/// Returns true for paths that need no note: in packages or in a repository, where other rules hold, or outside.
pub(crate) fn are_free(workspace: &Path, paths: [&Path; 2]) -> bool {
    paths.into_iter().all(|path| {
        let Ok(below) = path.strip_prefix(workspace) else { return true };
        let parts = folded(below);
        protected_names::is_package(&parts) || parts.iter().any(|part| REPOSITORY.contains(&part.as_str()))
    })
}

/// Returns true if a person can keep what a command wrote at this path of the workspace: Tiller's own folder only they write.
fn may_keep(workspace: &Path, path: &Path) -> bool {
    let Ok(below) = path.strip_prefix(workspace) else { return false };
    protected_names::find(&folded(below)).is_none_or(|found| found.name != OWN)
}

/// Returns true if agents read this path of the workspace as instructions, and no other program obeys it.
pub(crate) fn instructs(workspace: &Path, path: &Path) -> bool {
    path.strip_prefix(workspace).is_ok_and(|below| {
        let parts = folded(below);
        protected_names::find(&parts).is_none() && protected_names::find_instructions(&parts).is_some()
    })
}

/// Returns true if git may write this protected path, relative to the workspace: it is judged after a command then, not kept
/// from being written.
pub(crate) fn is_judged(path: &Path) -> bool {
    let found = protected_names::find(&folded(path));
    found.is_some_and(|found| found.name != OWN && !REPOSITORY.contains(&found.name))
}

fn folded(path: &Path) -> Vec<String> {
    path.iter().map(|part| tiller_shell::fold(&part.to_string_lossy())).collect()
}

/// A path as it was before a command changed it.
#[derive(Debug)]
struct Before {
    /// The workspace that it lies in.
    workspace: PathBuf,
    /// The folder above the protected name.
    above: PathBuf,
    state: State,
    /// The state that came here from another protected name with its folder.
    moved: Option<State>,
    /// It has another name, and had it where it came from.
    moved_linked: Option<FileId>,
    /// It had another name.
    linked: Option<FileId>,
    /// It is the first part of a name: only a link counts.
    begun: bool,
}

impl Before {
    /// Returns the state that may be there.
    fn lawful(&self) -> &State {
        self.moved.as_ref().unwrap_or(&self.state)
    }

    /// Returns the bytes that are held.
    fn size(&self) -> usize {
        size(&self.state) + self.moved.as_ref().map_or(0, size)
    }
}

/// The protected names that the commands of one agent, or one process, have written and that were not judged yet.
#[derive(Debug, Default)]
pub struct ProtectedWrites {
    noted: Mutex<Noted>,
    news: AtomicBool,
}

#[derive(Debug, Default)]
struct Noted {
    before: BTreeMap<PathBuf, Before>,
    /// The bytes of all of them.
    bytes: usize,
    /// The contents of paths before these commands, by the numbers of git.
    seen: HashMap<PathBuf, HashSet<String>>,
}

/// A name cannot be noted: it is too large, or there are too many, or all together are too large. It must not be changed.
#[derive(Debug)]
pub(crate) struct TooMuch;

/// Keeps names from being judged until the call that changes them is over.
#[derive(Debug)]
pub(crate) struct Holding<'a>(MutexGuard<'a, Noted>);

impl ProtectedWrites {
    /// Keeps names from being judged meanwhile.
    pub(crate) fn hold(&self) -> Holding<'_> {
        self.news.store(true, Ordering::Relaxed);
        Holding(self.noted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns true if there is more than at the last call.
    pub(crate) fn take_news(&self) -> bool {
        self.news.swap(false, Ordering::Relaxed)
    }
}

impl Holding<'_> {
    /// Notes what is at this path of the workspace, if it has a protected name. `link`: as [`folder_above`].
    ///
    /// # Errors
    /// When it cannot be noted.
    pub(crate) fn note(&mut self, workspace: &Path, path: &Path, link: bool) -> Result<(), TooMuch> {
        let Some(above) = folder_above(workspace, path, link) else { return Ok(()) };
        if self.0.before.contains_key(path) {
            return Ok(());
        }
        if self.0.before.len() >= NAMES {
            return Err(TooMuch);
        }
        let left = BYTES.min(ALL.saturating_sub(self.0.bytes));
        let state = Budget::new(left, ENTRIES).read(path).map_err(|_| TooMuch)?;
        self.insert(workspace, path, above, state, linked_file(path));
        Ok(())
    }

    /// Notes a path that has been changed already. `state`, `linked`: as it was before.
    ///
    /// # Errors
    /// When there is too much: it is not judged then.
    pub(crate) fn note_changed(
        &mut self,
        workspace: &Path,
        path: &Path,
        state: &State,
        linked: Option<FileId>,
    ) -> Result<(), TooMuch> {
        let Some(above) = folder_above(workspace, path, true) else { return Ok(()) };
        if self.0.before.len() >= NAMES || self.0.bytes + size(state) > ALL {
            return Err(TooMuch);
        }
        if !self.0.before.contains_key(path) {
            self.insert(workspace, path, above, state.clone(), linked);
        }
        Ok(())
    }

    fn insert(
        &mut self,
        workspace: &Path,
        path: &Path,
        above: PathBuf,
        state: State,
        linked: Option<FileId>,
    ) {
        let begun = folder_above(workspace, path, false).is_none();
        if self.0.seen.len() < SEEN
            && let Some(id) = content(&state)
        {
            self.0.seen.entry(path.to_owned()).or_default().insert(id);
        }
        let workspace = workspace.to_owned();
        let before = Before { workspace, above, state, moved: None, moved_linked: None, linked, begun };
        self.0.bytes += before.size();
        self.0.before.insert(path.to_owned(), before);
    }

    /// Notes both paths of something that is moved with a folder: what was lawful at the old one is at the new one.
    ///
    /// # Errors
    /// When they cannot be noted.
    pub(crate) fn note_moved(&mut self, workspace: &Path, old: &Path, new: &Path) -> Result<(), TooMuch> {
        self.note(workspace, old, true)?;
        self.note(workspace, new, true)?;
        let from = self.0.before.get(old);
        if self.0.bytes + from.map_or(0, |from| size(from.lawful())) > ALL {
            return Err(TooMuch);
        }
        let moved = from.map(|from| from.lawful().clone());
        let linked = from.and_then(|from| if from.moved.is_some() { from.moved_linked } else { from.linked });
        let noted = &mut *self.0;
        if let Some(before) = noted.before.get_mut(new) {
            noted.bytes -= before.size();
            (before.moved, before.moved_linked) = (moved, linked);
            noted.bytes += before.size();
        }
        Ok(())
    }
}

/// Returns the bytes of the files of a state.
fn size(state: &State) -> usize {
    match state {
        State::File(bytes, _) => bytes.len(),
        State::Folder(entries, _) => entries.values().map(size).sum(),
        State::Missing | State::Link(_) | State::Other => 0,
    }
}

/// Returns content and kind of a file or link, in one word.
fn content(state: &State) -> Option<String> {
    match state {
        State::File(bytes, mode) => Some(format!("{}{}", history::blob(bytes), mode & 0o100)),
        State::Link(target) => Some(target.display().to_string()),
        _ => None,
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
pub(crate) mod tests;
