//! The effect of a restore, and the conflicts with changes of others.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::error::{Result, SnapshotError};
use crate::names;
use crate::objects::id::Id;
use crate::objects::object::{Entry, Kind};
use crate::report::{Reason, Snapshot};
use crate::restore::goal::{Goal, SkipReason, SkippedPath};
use crate::scan::disk::{self, Folders};
use crate::shadow::Shadow;
use crate::view::compare::{Change, FileDiff, attributes_between, between, change, with_attributes};
use crate::view::{State, View};

/// Paths with their earlier states, and the snapshots that these come from.
type SourcedEntries = BTreeMap<Vec<u8>, (Option<Entry>, Id)>;

/// Paths that others changed, with their states before that.
#[derive(Debug, Default)]
struct OthersChanges {
    states: HashMap<Vec<u8>, State>,
    /// Of these only attributes are known to differ.
    attributes: HashMap<Vec<u8>, State>,
}

/// The effect of a restore that has not been done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub to: Id,
    /// The present state, for which the plan was made.
    pub now: Snapshot,
    /// Paths that would change, sorted.
    pub items: Vec<Item>,
    /// Paths that differ, or may differ, and stay as they are in any case.
    pub left: Vec<SkippedPath>,
    /// Files that `to` does not cover, with the snapshot before a step that their content comes from.
    pub(crate) sources: BTreeMap<Vec<u8>, Id>,
}

/// One path of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// From the present state to the restored one.
    pub diff: FileDiff,
    /// The reason for which it is kept unless the answer says otherwise; [`Conflict::Mixed`] and [`Conflict::Unseen`] keep a copy.
    pub conflict: Option<Conflict>,
}

/// A reason to ask before a path is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// It was changed by others. `known`: the last state before that which the session knew.
    Changed { known: State },
    /// The file has this many names (hard links), of which only this one would change.
    Links(u64),
    /// The file is read-only, in the state to restore and now.
    ReadOnly,
    /// Others may have changed it while a step did. It is restored, and its present content kept beside.
    Mixed,
    /// As `Mixed`, where no witness saw the step: its present content is kept in a folder of the store.
    Unseen,
}

impl Conflict {
    /// Returns true if the path is restored without an answer.
    pub(super) fn is_restored(self) -> bool {
        matches!(self, Self::Mixed | Self::Unseen)
    }
}

impl Plan {
    /// The paths that need an answer.
    pub fn conflicts(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|i| i.conflict.is_some())
    }
}

impl Shadow {
    /// Plans a restore. The present state is stored for that.
    ///
    /// # Errors
    /// When a snapshot cannot be read, or the present state cannot be stored.
    pub fn plan(&mut self, goal: &Goal) -> Result<Plan> {
        let lock = self.lock()?;
        // Ignored paths that one of them covered must be covered now too.
        for id in [goal.to, goal.base].into_iter().chain(goal.steps.iter().map(|s| s.after)) {
            match self.kept(id) {
                Ok(kept) => self.cover_names(kept.named),
                Err(SnapshotError::Missing(_)) if id != goal.to => {}
                Err(e) => return Err(e),
            }
        }
        let now = self.take(&lock, None)?;
        let others = self.others(goal, now.id)?;
        let select = match &goal.select {
            None => None,
            Some(paths) => {
                let all: Result<Vec<_>> = paths.iter().map(|p| names::relative(&self.workspace, p)).collect();
                Some(all?)
            }
        };
        let (mine, then) = (self.view(now.id)?, self.view(goal.to)?);
        let root = self.root()?;
        let mut folders = root.as_ref().map(|r| Folders::new(r.as_fd()));
        let mut plan =
            Plan { to: goal.to, now, items: Vec::new(), left: Vec::new(), sources: BTreeMap::new() };
        let wanted = |path: &[u8]| select.as_ref().is_none_or(|s| s.iter().any(|s| names::within(path, s)));
        let set = |paths: &[PathBuf]| -> BTreeSet<Vec<u8>> {
            paths.iter().filter_map(|p| names::relative(&self.workspace, p).ok()).collect()
        };
        let (mixed, unseen) = (set(&goal.mixed), set(&goal.unseen));
        let all_unseen = goal.unseen.iter().any(|path| path.as_os_str().is_empty());
        let first = self.before_steps(goal, &then)?;
        plan.sources = first.iter().map(|(path, (_, source))| (path.clone(), *source)).collect();
        let mut all = with_attributes(between(&self.objects, &mine, &then)?, &mine, &then)?;
        all.retain(|(path, ..)| !first.contains_key(path));
        for (path, (entry, _)) in &first {
            let now = mine.entry(path)?;
            if now != *entry {
                all.push((path.clone(), now, *entry));
            }
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        for (path, old, mut new) in all {
            if !wanted(&path) {
                continue;
            }
            // A state that does not know sticky and set-ID bits takes none away.
            if let (Some(old), Some(new)) = (old, &mut new)
                && !then.kept.special
                && old.kind == new.kind
            {
                new.mode |= old.mode & 0o7000;
            }
            let (folder, name) = names::split(&path);
            let there = match &mut folders {
                Some(f) => f.of(&path).ok().and_then(|dir| disk::stat(dir, name).ok().flatten()),
                None => None,
            };
            let repository = || -> Result<bool> {
                let mut inside = mine.repositories().iter().filter(|r| names::within(folder, r));
                inside.try_fold(false, |yes, r| Ok(yes || (!then.repository(r) && then.entry(r)?.is_none())))
            };
            let why = match (old, new) {
                (None, Some(_)) if there.is_some() && !mine.looked_at(&path)? => Some(SkipReason::UnknownNow),
                (Some(_), None) if !first.contains_key(&path) && !then.looked_at(&path)? => {
                    Some(SkipReason::UnknownThen)
                }
                (Some(_), None) if repository()? => Some(SkipReason::Repository),
                _ => None,
            };
            if let Some(why) = why {
                plan.left.push(SkippedPath { path: names::path(&path), why });
                continue;
            }
            #[allow(clippy::unnecessary_cast, reason = "its type differs between systems")]
            let links = there.map_or(1, |s| s.st_nlink as u64);
            let same = old.is_some()
                && old.map(|e| (e.kind, e.mode, file(e))) == new.map(|e| (e.kind, e.mode, file(e)));
            let known = if same { others.attributes.get(&path) } else { others.states.get(&path) };
            let conflict = match known {
                Some(known) => Some(Conflict::Changed { known: *known }),
                None if links > 1 && old.is_some_and(|e| e.kind == Kind::File) => {
                    Some(Conflict::Links(links))
                }
                None if protected(old) && protected(new) => Some(Conflict::ReadOnly),
                None if mixed.contains(&path) && !same && self.has_bytes(old)? => Some(Conflict::Mixed),
                None if (all_unseen || unseen.contains(&path)) && !same && self.has_bytes(old)? => {
                    Some(Conflict::Unseen)
                }
                None => None,
            };
            let change: Change = change(old, new);
            let diff = FileDiff { path: names::path(&path), change, before: old, after: new };
            plan.items.push(Item { diff, conflict });
        }
        let removed = plan.items.iter().filter(|i| i.diff.after.is_none());
        let removed: BTreeSet<PathBuf> = removed.map(|i| i.diff.path.clone()).collect();
        let mut absent = |path: &[u8]| {
            removed.contains(&names::path(path))
                || !folders.as_mut().is_some_and(|f| {
                    let there =
                        f.of(path).ok().and_then(|d| disk::look(d, names::split(path).1).ok().flatten());
                    there.is_some()
                })
        };
        for lost in &then.kept.snapshot.uncovered {
            let (path, reason) = (lost.path.as_os_str().as_bytes(), lost.reason);
            let path = if reason == Reason::Repository { names::join(path, b".git") } else { path.to_vec() };
            let kept = first.get(&path).is_some_and(|(old, _)| old.is_some());
            if wanted(&path) && !kept && absent(&path) {
                plan.left.push(SkippedPath { path: names::path(&path), why: SkipReason::Vanished(reason) });
            }
        }
        let states = goal.steps.iter().flat_map(|s| [s.before, s.after]).chain([plan.now.id]);
        let states: Vec<Id> = states.collect();
        for (path, at) in self.ignored_and_gone(&states)? {
            let kept = match first.get(&path) {
                // It was deleted after the session created it, or it did not exist when the session created another
                // one.
                Some((None, source)) => {
                    states.iter().position(|id| id == source).is_none_or(|made| at > made)
                }
                Some((Some(_), _)) => true,
                None => then.entry(&path)?.is_some(),
            };
            if wanted(&path) && !kept && absent(&path) {
                plan.left.push(SkippedPath {
                    path: names::path(&path),
                    why: SkipReason::Vanished(Reason::Ignored),
                });
            }
        }
        let told = plan.items.iter().map(|i| &i.diff.path).chain(plan.left.iter().map(|l| &l.path));
        let told: BTreeSet<PathBuf> = told.cloned().collect();
        for unkept in self.unkept(goal.to, plan.now.id)? {
            let path = unkept.path.as_os_str().as_bytes();
            let why = match unkept.change {
                Change::Modified => SkipReason::Changed(unkept.reason),
                Change::Added => SkipReason::Created(unkept.reason),
                // Told above, where it does not exist.
                _ if unkept.reason != Reason::OtherDisk => continue,
                _ => SkipReason::Vanished(unkept.reason),
            };
            if wanted(path) && !told.contains(&unkept.path) && !first.contains_key(path) {
                plan.left.push(SkippedPath { path: unkept.path, why });
            }
        }
        plan.left.sort_by(|a, b| a.path.cmp(&b.path));
        plan.left.dedup_by(|a, b| a.path == b.path);
        Ok(plan)
    }

    /// Returns true for a file that is not empty.
    fn has_bytes(&self, entry: Option<Entry>) -> Result<bool> {
        let file = entry.filter(|e| e.kind == Kind::File);
        file.map_or(Ok(false), |e| Ok(self.size(e.id)? > 0))
    }

    /// Ignored paths that were deleted before one of these states, with the index of the first such state.
    fn ignored_and_gone(&self, states: &[Id]) -> Result<BTreeMap<Vec<u8>, usize>> {
        let mut gone = BTreeMap::new();
        for (at, id) in states.iter().enumerate() {
            match self.kept(*id) {
                Ok(kept) => {
                    for path in kept.vanished {
                        gone.entry(path).or_insert(at);
                    }
                }
                Err(SnapshotError::Missing(_)) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(gone)
    }

    /// Files that the state to restore does not cover and that the session changed since, with their states before its
    /// first change, and the snapshots that these come from. A tool's call covers the files that it names, though they
    /// are ignored or large.
    fn before_steps(&self, goal: &Goal, then: &View<'_>) -> Result<SourcedEntries> {
        let mut first = BTreeMap::new();
        for step in &goal.steps {
            let (before, after) = match (self.view(step.before), self.view(step.after)) {
                (Err(SnapshotError::Missing(_)), _) | (_, Err(SnapshotError::Missing(_))) => continue,
                (before, after) => (before?, after?),
            };
            for (path, old, new) in between(&self.objects, &before, &after)? {
                let known = (old.is_some() || before.looked_at(&path)?)
                    && (new.is_some() || after.looked_at(&path)?);
                if known
                    && !first.contains_key(&path)
                    && then.entry(&path)?.is_none()
                    && !then.looked_at(&path)?
                {
                    first.insert(path, (old, step.before));
                }
            }
        }
        Ok(first)
    }

    /// Paths that others changed since `base`, with the state that the session knew.
    fn others(&self, goal: &Goal, now: Id) -> Result<OthersChanges> {
        let mut found = OthersChanges::default();
        let mut at = match self.view(goal.base) {
            Err(SnapshotError::Missing(_)) => self.view(goal.to)?,
            other => other?,
        };
        for step in &goal.steps {
            // A step that was collected counts as a change of others: that only asks more often.
            let (before, after) = match (self.view(step.before), self.view(step.after)) {
                (Err(SnapshotError::Missing(_)), _) | (_, Err(SnapshotError::Missing(_))) => continue,
                (before, after) => (before?, after?),
            };
            self.gap(&at, &before, &mut found)?;
            at = after;
        }
        self.gap(&at, &self.view(now)?, &mut found)?;
        Ok(found)
    }

    fn gap(&self, from: &View<'_>, to: &View<'_>, found: &mut OthersChanges) -> Result<()> {
        for (path, old, new) in between(&self.objects, from, to)? {
            let known = |view: &View<'_>, e: Option<Entry>| -> Result<bool> {
                Ok(e.is_some() || view.looked_at(&path)?)
            };
            if known(from, old)? && known(to, new)? {
                found.states.entry(path).or_insert(old.map_or(State::Absent, State::Is));
            }
        }
        for (path, old, _) in attributes_between(from, to)? {
            found.attributes.entry(path).or_insert(old.map_or(State::Absent, State::Is));
        }
        Ok(())
    }
}

/// The content of a file or link; that of a folder has paths of its own.
fn file(entry: Entry) -> Option<Id> {
    (entry.kind != Kind::Folder).then_some(entry.id)
}

/// Returns true if the file has no permission to write, for anyone.
fn protected(entry: Option<Entry>) -> bool {
    entry.is_some_and(|e| e.kind == Kind::File && e.mode & 0o222 == 0)
}
