//! Protected names of the workspace before and after a command that no supervisor watches.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use tiller_fs::links::{FileId, linked_file};

use super::tree::{Stamp, Tree};
use crate::quarantine::{Budget, State};
use crate::writes::ProtectedWrites;

/// Of one file, and of all of them.
const BYTES: usize = 4 << 20;
const ALL: usize = 64 << 20;
const ENTRIES: usize = 100;
/// Names of one workspace. Further ones are not compared.
const NAMES: usize = 10_000;

/// A protected name as it was.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    stamp: Option<Stamp>,
    /// `None`: it could not be read.
    state: Option<Arc<State>>,
    linked: Option<FileId>,
}

/// The protected names of a workspace.
pub(crate) type Names = BTreeMap<PathBuf, Named>;

/// Reads those of the tree, as far as they were changed since `old`.
pub(super) fn read(tree: &Tree, mut old: Names) -> Names {
    let settled = SystemTime::now();
    let mut left = ALL;
    let one = |path: PathBuf| {
        let stamp = Stamp::at(&path);
        let same =
            |known: &Named| known.stamp == stamp && stamp.is_some_and(|stamp| !stamp.is_since(settled));
        let named = old.remove(&path).filter(same).unwrap_or_else(|| {
            let state = Budget::new(BYTES.min(left), ENTRIES).read(&path).ok().map(Arc::new);
            Named { stamp, state, linked: linked_file(&path) }
        });
        if let Some(State::File(bytes, _)) = named.state.as_deref() {
            left = left.saturating_sub(bytes.len());
        }
        (path, named)
    };
    tree.named().take(NAMES).map(one).collect()
}

/// Notes those that are not as before, so that they are judged. `since`: when the command began. Returns how many were too
/// large to be judged.
pub(super) fn note_changed(
    workspace: &Path,
    (before, now): (&Names, &Tree),
    since: SystemTime,
    writes: &ProtectedWrites,
) -> usize {
    let paths: BTreeSet<PathBuf> = before.keys().cloned().chain(now.named()).collect();
    let mut missed = 0;
    let mut holding = None;
    for path in paths {
        let (was, stamp) = (before.get(&path), Stamp::at(&path));
        let (state, linked) = match was {
            Some(was) if was.stamp == stamp && !stamp.is_some_and(|stamp| stamp.is_since(since)) => continue,
            Some(Named { state: Some(state), linked, .. }) => (state.as_ref(), *linked),
            Some(_) => {
                missed += 1;
                continue;
            }
            // More than were read: it may have been there.
            None if before.len() >= NAMES => {
                missed += 1;
                continue;
            }
            // Made before the command: the person's.
            None if stamp.is_none_or(|stamp| !stamp.is_just_since(since)) => continue,
            None => (&State::Missing, None),
        };
        if Budget::new(BYTES, ENTRIES).read(&path).is_ok_and(|now| now == *state) {
            continue;
        }
        let holding = holding.get_or_insert_with(|| writes.hold());
        missed += usize::from(holding.note_changed(workspace, &path, state, linked).is_err());
    }
    missed
}
