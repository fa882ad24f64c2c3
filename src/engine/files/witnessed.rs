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

/// Milliseconds. Within less a file is hardly edited beside a command that no supervisor sees.
const UNWATCHED: i64 = 2_000;
/// Files of such a command that a restore keeps beside what it writes. Of one that changes more, the state before the restore
/// keeps them.
pub(super) const KEPT: usize = 50;

/// The changes of the files while a command ran.
#[derive(Debug, Default)]
pub(super) struct SortedChanges {
    /// The command made them, those in `both` included.
    pub(super) own: Vec<FileDiff>,
    pub(super) others: Vec<PathBuf>,
    /// The command touched these files, and others may have.
    pub(super) both: Vec<PathBuf>,
}

/// Sorts changes by what `witness` saw. Where it did not see everything, they are all the command's; those of one that `took`
/// long, in milliseconds, may be those of others as well.
pub(super) fn sort(
    shadow: &Shadow,
    witness: Option<&Witness>,
    changed: Vec<FileDiff>,
    took: i64,
) -> SortedChanges {
    let Some(witness) = witness.filter(|witness| witness.is_complete()) else {
        let unknown = witness.is_some() && took >= UNWATCHED && changed.len() <= KEPT;
        let paths = changed.iter().map(|diff| diff.path.clone());
        let both = if unknown { paths.collect() } else { Vec::new() };
        return SortedChanges { own: changed, both, ..SortedChanges::default() };
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
                sorted.both.push(diff.path.clone());
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

/// Puts these paths first where a row names only some: those beyond are not marked.
pub(crate) fn put_first(changes: &mut [FileDiff], paths: &[PathBuf]) {
    if changes.len() > back::NAMED && !paths.is_empty() {
        let paths: HashSet<&PathBuf> = paths.iter().collect();
        changes.sort_by_key(|diff| !paths.contains(&diff.path));
    }
}

/// Marks these paths in a list: others may have changed them too.
pub(crate) fn mark(files: &mut [StepFile], paths: &[PathBuf]) {
    let paths: HashSet<String> = paths.iter().map(|path| back::shown(path)).collect();
    for file in files.iter_mut().filter(|file| paths.contains(&file.path)) {
        file.by = Some(By::Unknown);
    }
}

/// The paths of a list that others may have changed too.
pub(crate) fn marked(files: &[StepFile]) -> impl Iterator<Item = PathBuf> {
    files.iter().filter(|file| file.by == Some(By::Unknown)).map(|file| names::path(&file.path))
}

/// Marks all paths of a list.
pub(crate) fn mark_all(files: &mut [StepFile]) {
    files.iter_mut().for_each(|file| file.by = Some(By::Unknown));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_both_are_marked_however_many_changed() {
        let diff = |n: usize| FileDiff {
            path: format!("f{n:05}").into(),
            change: tiller_snapshot::Change::Modified,
            before: None,
            after: None,
        };
        let mut changes: Vec<FileDiff> = (0..=back::NAMED).map(diff).collect();
        let both = [changes[back::NAMED].path.clone()];
        put_first(&mut changes, &both);
        let mut named = back::named(&changes);
        mark(&mut named, &both);
        assert_eq!(marked(&named).collect::<Vec<_>>(), both);
    }
}
