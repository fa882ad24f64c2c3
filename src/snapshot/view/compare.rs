//! Differences between two snapshots.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tiller_protocol::names::is_temporary;

use crate::error::Result;
use crate::names;
use crate::objects::Objects;
use crate::objects::id::{Id, Sort};
use crate::objects::object::{self, Entry, FolderEntry, Kind};
use crate::report::{Reason, Uncovered};
use crate::restore::goal::Step;
use crate::scan::ignored;
use crate::shadow::Shadow;
use crate::view::View;

/// How a path changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Added,
    Deleted,
    /// Another content; possibly other permissions too.
    Modified,
    /// The same content with other permissions.
    Mode,
    /// A file became a link, a folder a file, or the like.
    Type,
    /// One of the two did not cover it, so nothing is known.
    Unknown,
}

/// One path that differs. An empty folder is a path of its own; others are represented by their content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    pub path: PathBuf,
    pub change: Change,
    pub before: Option<Entry>,
    pub after: Option<Entry>,
}

/// A change of a file of which one of two snapshots has no content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnkeptChange {
    pub path: PathBuf,
    /// Why it is not covered.
    pub reason: Reason,
    /// [`Change::Added`], [`Change::Deleted`] or [`Change::Modified`].
    pub change: Change,
}

impl UnkeptChange {
    /// Whether content was lost that was no program's log and no build output.
    pub fn is_loss(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default().as_bytes();
        self.change != Change::Added && !ignored::is_log(name) && !ignored::is_output(name)
    }
}

/// A path with its two states.
pub(crate) type Pair = (Vec<u8>, Option<Entry>, Option<Entry>);

impl Shadow {
    /// The differences from `a` to `b`, sorted by path.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn compare(&self, a: Id, b: Id) -> Result<Vec<FileDiff>> {
        let (before, after) = (self.view(a)?, self.view(b)?);
        let mut diffs = Vec::new();
        for (path, old, new) in with_attributes(between(&self.objects, &before, &after)?, &before, &after)? {
            let change = match (old, new) {
                (None, Some(_)) if !before.looked_at(&path)? => Change::Unknown,
                (Some(_), None) if !after.looked_at(&path)? => Change::Unknown,
                _ => change(old, new),
            };
            diffs.push(FileDiff { path: names::path(&path), change, before: old, after: new });
        }
        Ok(diffs)
    }

    /// The differences that the calls of one turn made together, sorted by path: each path from its state before the first
    /// step that changed it to its state after the last one. A path that is as it was is left out, and so is what
    /// others changed between two steps, except in a path that a step changed too.
    ///
    /// # Errors
    /// When one of the states cannot be read.
    pub fn turn_changes(&self, steps: &[Step]) -> Result<Vec<FileDiff>> {
        let mut ends: BTreeMap<PathBuf, (Option<Entry>, Option<Entry>)> = BTreeMap::new();
        for step in steps {
            let known = self.compare(step.before, step.after)?.into_iter();
            for diff in known.filter(|d| d.change != Change::Unknown) {
                ends.entry(diff.path).or_insert((diff.before, None)).1 = diff.after;
            }
        }
        let differs = ends.into_iter().filter(|(_, (before, after))| before != after);
        Ok(differs
            .map(|(path, (before, after))| FileDiff { path, change: change(before, after), before, after })
            .collect())
    }

    /// Changes between `a` and `b` of files of which one of them has no content, sorted by path: deleted, overwritten or new
    /// ones. A folder whose files are no longer covered stands for them.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn unkept(&self, a: Id, b: Id) -> Result<Vec<UnkeptChange>> {
        let (before, after) = (self.view(a)?, self.view(b)?);
        let mut found: BTreeMap<Vec<u8>, (Reason, Change)> = BTreeMap::new();
        for lost in self.vanished(a, b)? {
            found.insert(lost.path.as_os_str().as_bytes().to_vec(), (lost.reason, Change::Deleted));
        }
        let (old, new) = (&before.kept.watched, &after.kept.watched);
        for (path, stamp) in &old.stamps {
            let now = new.stamps.get(path);
            if now == Some(stamp) {
                continue;
            }
            let Some(reason) = before.uncovered(path) else { continue };
            let change = match now {
                Some(_) => Change::Modified,
                None if after.entry(path)?.is_some() => Change::Modified,
                None if reason == Reason::OtherDisk && after.watches(path) => Change::Deleted,
                None => continue,
            };
            found.entry(path.clone()).or_insert((reason, change));
        }
        for path in new.stamps.keys().filter(|path| !old.stamps.contains_key(*path)) {
            let Some(reason) = after.uncovered(path) else { continue };
            let absent =
                if reason == Reason::OtherDisk { before.watches(path) } else { before.looked_at(path)? };
            if before.entry(path)?.is_some() {
                found.insert(path.clone(), (reason, Change::Modified));
            } else if absent {
                found.insert(path.clone(), (reason, Change::Added));
            }
        }
        for (path, was, now) in between(&self.objects, &before, &after)? {
            if was.is_some()
                && now.is_none()
                && let Some(left_out) = after.left_out(&path)
            {
                found.entry(left_out.to_vec()).or_insert((Reason::Ignored, Change::Modified));
            }
        }
        let all = found.into_iter();
        Ok(all
            .map(|(path, (reason, change))| UnkeptChange { path: names::path(&path), reason, change })
            .collect())
    }

    /// Paths that `a` did not cover and that do not exist in `b`. A repository stands for its history. Ignored paths:
    /// those that were deleted between `b` and the snapshot before it.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub(crate) fn vanished(&self, a: Id, b: Id) -> Result<Vec<Uncovered>> {
        let (view, after) = (self.view(a)?, self.view(b)?);
        let mut gone = Vec::new();
        for lost in &view.kept.snapshot.uncovered {
            let path = lost.path.as_os_str().as_bytes();
            let there = if lost.reason == Reason::Repository {
                after.repository(path)
            } else {
                after.entry(path)?.is_some() || !after.looked_at(path)?
            };
            if !there {
                gone.push(lost.clone());
            }
        }
        for path in &after.kept.vanished {
            let told = gone.iter().any(|u| u.path.as_os_str().as_bytes() == path);
            if !told && view.entry(path)?.is_none() && after.entry(path)?.is_none() {
                gone.push(Uncovered { path: names::path(path), reason: Reason::Ignored });
            }
        }
        gone.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(gone)
    }

    /// The differences from a snapshot to the present folder.
    ///
    /// # Errors
    /// When the snapshot cannot be read, or the present state cannot be stored.
    pub fn present(&mut self, id: Id) -> Result<Vec<FileDiff>> {
        let now = self.snapshot()?;
        self.compare(id, now.id)
    }

    /// The content of a file in a snapshot (of a link: its target); `None` when it does not exist.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, id: Id, path: &Path) -> Result<Option<Vec<u8>>> {
        match self.state(id, path)?.entry() {
            Some(Entry { kind: Kind::File | Kind::Link, id, .. }) => self.content(id).map(Some),
            _ => Ok(None),
        }
    }

    /// The content that an [`Entry`] names.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn content(&self, id: Id) -> Result<Vec<u8>> {
        self.objects.read(&id, Sort::Content)
    }

    /// The length of the content that an [`Entry`] names, in bytes.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn size(&self, id: Id) -> Result<u64> {
        self.objects.len(&id)
    }

    /// Every path of a snapshot, with its state; empty folders included.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn files(&self, id: Id) -> Result<Vec<(PathBuf, Entry)>> {
        let all = pairs(&self.objects, object::empty_folder(), self.kept(id)?.snapshot.tree)?;
        Ok(all.into_iter().filter_map(|(path, _, entry)| Some((names::path(&path), entry?))).collect())
    }
}

pub(crate) fn change(old: Option<Entry>, new: Option<Entry>) -> Change {
    match (old, new) {
        (None, _) => Change::Added,
        (_, None) => Change::Deleted,
        (Some(a), Some(b)) if a.kind != b.kind => Change::Type,
        (Some(a), Some(b)) if a.id == b.id || a.kind == Kind::Folder => Change::Mode,
        _ => Change::Modified,
    }
}

/// All paths that differ between two snapshots, sorted. Sticky and set-ID bits count where both know them.
pub(crate) fn between(objects: &Objects, a: &View<'_>, b: &View<'_>) -> Result<Vec<Pair>> {
    let mut all = pairs(objects, a.tree(), b.tree())?;
    if !(a.kept.special && b.kept.special) {
        let bits = |e: &Option<Entry>| e.map(|e| Entry { mode: e.mode & 0o777, ..e });
        let folders =
            |x: &Entry, y: &Entry| x.kind == Kind::Folder && y.kind == Kind::Folder && x.mode == y.mode;
        all.retain(|(_, old, new)| {
            let (old, new) = (bits(old), bits(new));
            old != new && !old.zip(new).is_some_and(|(old, new)| folders(&old, &new))
        });
    }
    Ok(all)
}

/// Adds to the differences of two snapshots the paths of which only attributes or access lists differ.
pub(crate) fn with_attributes(mut all: Vec<Pair>, a: &View<'_>, b: &View<'_>) -> Result<Vec<Pair>> {
    let told: BTreeSet<Vec<u8>> = all.iter().map(|(path, ..)| path.clone()).collect();
    all.extend(attributes_between(a, b)?.into_iter().filter(|(path, ..)| !told.contains(path)));
    all.sort_by(|x, y| x.0.cmp(&y.0));
    Ok(all)
}

/// The paths in both snapshots whose attributes or access lists differ.
pub(crate) fn attributes_between(a: &View<'_>, b: &View<'_>) -> Result<Vec<Pair>> {
    let mut all = Vec::new();
    if a.kept.attributes == b.kept.attributes {
        return Ok(all);
    }
    let (Some(old), Some(new)) = (a.attributes()?, b.attributes()?) else { return Ok(all) };
    for path in old.keys().chain(new.keys().filter(|path| !old.contains_key(*path))) {
        if old.get(path).zip(new.get(path)).is_some_and(|(old, new)| old.same(new)) {
            continue;
        }
        let (Some(x), Some(y)) = (a.entry(path)?, b.entry(path)?) else { continue };
        // An earlier version stored those of files only.
        if x.kind == y.kind && (x.kind != Kind::Folder || (a.kept.special && b.kept.special)) {
            all.push((path.clone(), Some(x), Some(y)));
        }
    }
    Ok(all)
}

/// All paths that differ between two trees, sorted.
pub(crate) fn pairs(objects: &Objects, a: Id, b: Id) -> Result<Vec<Pair>> {
    let mut out = Vec::new();
    both(objects, &[], a, b, &mut out)?;
    out.sort_by(|x, y| x.0.cmp(&y.0));
    Ok(out)
}

fn sorted(objects: &Objects, id: Id) -> Result<Vec<FolderEntry>> {
    let mut names = objects.folder(&id)?;
    names.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(names)
}

fn both(objects: &Objects, path: &[u8], a: Id, b: Id, out: &mut Vec<Pair>) -> Result<()> {
    if a == b {
        return Ok(());
    }
    let mut old = sorted(objects, a)?.into_iter().peekable();
    let mut new = sorted(objects, b)?.into_iter().peekable();
    loop {
        let name = match (old.peek(), new.peek()) {
            (Some(x), Some(y)) => x.name.clone().min(y.name.clone()),
            (Some(x), None) => x.name.clone(),
            (None, Some(y)) => y.name.clone(),
            (None, None) => return Ok(()),
        };
        let x = old.next_if(|n| n.name == name).map(|n| n.entry);
        let y = new.next_if(|n| n.name == name).map(|n| n.entry);
        // An earlier version may have stored one.
        if !is_temporary(&name) {
            one(objects, names::join(path, &name), x, y, out)?;
        }
    }
}

fn one(
    objects: &Objects,
    path: Vec<u8>,
    x: Option<Entry>,
    y: Option<Entry>,
    out: &mut Vec<Pair>,
) -> Result<()> {
    if x == y {
        return Ok(());
    }
    let full = |e: Option<Entry>| {
        e.filter(|e| e.kind == Kind::Folder && e.id != object::empty_folder()).map(|e| e.id)
    };
    let both_folders = x.zip(y).is_some_and(|(x, y)| x.kind == Kind::Folder && y.kind == Kind::Folder);
    if both_folders {
        if let Some((x, y)) = x.zip(y) {
            both(objects, &path, x.id, y.id, out)?;
            if x.mode != y.mode {
                out.push((path, Some(x), Some(y)));
            }
        }
        return Ok(());
    }
    // The content of a folder has paths of its own; only an empty one is a state of its own path.
    if let Some(id) = full(x) {
        both(objects, &path, id, object::empty_folder(), out)?;
    }
    if let Some(id) = full(y) {
        both(objects, &path, object::empty_folder(), id, out)?;
    }
    let (x, y) = (x.filter(|_| full(x).is_none()), y.filter(|_| full(y).is_none()));
    if x.is_some() || y.is_some() {
        out.push((path, x, y));
    }
    Ok(())
}
