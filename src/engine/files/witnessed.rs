//! Changes by others while a command ran: those that no supervisor of its programs saw. They are left out of the state after the
//! command, so they lie between two steps, as what others change between two calls: every restore keeps them, and every list
//! names them.

use std::collections::HashSet;
use std::path::PathBuf;

use tiller_protocol::names;
use tiller_protocol::restore::{By, StepFile};
use tiller_snapshot::{Entry, FileDiff, Kind, Shadow};
use tiller_tool::shell::{FileMark, Whose, Witness};

use super::restore::back;

/// The changes of the files while a command ran.
#[derive(Debug, Default)]
pub(super) struct SortedChanges {
    /// The command made them, those in `both` included.
    pub(super) own: Vec<FileDiff>,
    pub(super) others: Vec<PathBuf>,
    pub(super) doubts: Doubts,
}

/// Files that others may have changed too while a step of the session did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Doubts {
    /// The command touched these files, and others may have: a restore keeps what stands there beside each.
    pub(crate) both: Vec<PathBuf>,
    /// Their writer is not recorded: a restore keeps what stands there in a folder of the store. The empty path: all files.
    pub(crate) unseen: Vec<PathBuf>,
}

/// Sorts changes by what `witness` saw. Where it did not see everything, all may be the command's, and those of others as well.
pub(super) fn sort(shadow: &Shadow, witness: Option<&Witness>, changed: Vec<FileDiff>) -> SortedChanges {
    let Some(witness) = witness.filter(|witness| witness.is_complete()) else {
        let unseen = changed.iter().map(|diff| diff.path.clone()).collect();
        let doubts = Doubts { unseen, ..Doubts::default() };
        return SortedChanges { own: changed, doubts, ..SortedChanges::default() };
    };
    // As the kernel names the files, which is what supervisors see.
    let folder = shadow.workspace();
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut sorted = SortedChanges::default();
    for diff in changed {
        let path = folder.join(&diff.path);
        match witness.whose(&path, FileMark::of(&path)) {
            // An empty folder holds nothing of anyone's.
            Whose::Others if !is_folder(&diff) => sorted.others.push(diff.path),
            Whose::Both => {
                sorted.doubts.both.push(diff.path.clone());
                sorted.own.push(diff);
            }
            Whose::Unsure => {
                sorted.doubts.unseen.push(diff.path.clone());
                sorted.own.push(diff);
            }
            Whose::Call | Whose::Others => sorted.own.push(diff),
        }
    }
    sorted
}

fn is_folder(diff: &FileDiff) -> bool {
    let folder = |e: Option<Entry>| e.is_none_or(|e| e.kind == Kind::Folder);
    folder(diff.before) && folder(diff.after)
}

impl Doubts {
    /// Returns what is marked in a list.
    pub(crate) fn of(files: &[StepFile]) -> Self {
        let mut doubts = Self::default();
        doubts.add(files);
        doubts
    }

    /// Adds what is marked in a list.
    pub(crate) fn add(&mut self, files: &[StepFile]) {
        let marked =
            |by: By| files.iter().filter(move |f| f.by.as_ref() == Some(&by)).map(|f| names::path(&f.path));
        self.both.extend(marked(By::Unknown));
        let before = self.unseen.len();
        self.unseen.extend(marked(By::Unseen));
        if self.unseen.len() > before && files.len() >= back::NAMED {
            // The list names only some of them.
            self.unseen.push(PathBuf::new());
        }
    }

    /// Marks them in a list.
    pub(crate) fn mark(&self, files: &mut [StepFile]) {
        let set = |paths: &[PathBuf]| -> HashSet<String> { paths.iter().map(|p| back::shown(p)).collect() };
        let (both, unseen) = (set(&self.both), set(&self.unseen));
        let all = unseen.contains("");
        for file in files {
            if both.contains(&file.path) {
                file.by = Some(By::Unknown);
            } else if all || unseen.contains(&file.path) {
                file.by = Some(By::Unseen);
            }
        }
    }

    /// Puts the files in doubt first where a list names only some: those beyond are not marked. Of those that no witness saw one
    /// in the list is enough, since it then stands for all beyond.
    pub(crate) fn put_first(&self, changes: &mut [FileDiff]) {
        if changes.len() > back::NAMED && !(self.both.is_empty() && self.unseen.is_empty()) {
            let both: HashSet<&PathBuf> = self.both.iter().collect();
            let unseen: HashSet<&PathBuf> = self.unseen.iter().collect();
            let first = changes.iter().find(|diff| unseen.contains(&diff.path)).map(|diff| diff.path.clone());
            changes.sort_by_key(|diff| match &diff.path {
                path if first.as_ref() == Some(path) => 0,
                path if both.contains(path) => 1,
                path if unseen.contains(path) => 2,
                _ => 3,
            });
        }
    }
}

/// Marks all files of a list: their writer is not recorded.
pub(crate) fn mark_unseen(files: &mut [StepFile]) {
    files.iter_mut().for_each(|file| file.by = Some(By::Unseen));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_doubt_are_marked_however_many_changed() {
        let diff = |n: usize| FileDiff {
            path: format!("f{n:05}").into(),
            change: tiller_snapshot::Change::Modified,
            before: None,
            after: None,
        };
        let mut changes: Vec<FileDiff> = (0..=back::NAMED).map(diff).collect();
        let both = Doubts { both: vec![changes[back::NAMED].path.clone()], ..Doubts::default() };
        both.put_first(&mut changes);
        let mut named = back::named(&changes);
        both.mark(&mut named);
        assert_eq!(Doubts::of(&named), both);

        // One that would not be named is, and stands for all that are not.
        let few = Doubts { unseen: vec![changes[back::NAMED].path.clone()], ..both };
        for doubts in [&few, &Doubts { both: Vec::new(), ..few.clone() }] {
            changes.sort_by(|a, b| a.path.cmp(&b.path));
            doubts.put_first(&mut changes);
            let mut named = back::named(&changes);
            doubts.mark(&mut named);
            assert!(Doubts::of(&named).unseen.contains(&PathBuf::new()));
        }

        let unseen = changes.iter().map(|diff| diff.path.clone()).collect();
        Doubts { unseen, ..Doubts::default() }.mark(&mut named);
        let doubts = Doubts::of(&named);
        assert!(doubts.unseen.contains(&PathBuf::new()), "those that are not named too");
        let mut other = [StepFile::new("beyond", tiller_protocol::ChangeKind::Modified)];
        doubts.mark(&mut other);
        assert_eq!(other[0].by, Some(By::Unseen));
    }
}
