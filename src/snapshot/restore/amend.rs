//! Removes concurrent changes of others from the state after a restore or a command, so that they keep being attributed to them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::Result;
use crate::names;
use crate::objects::id::{Id, Sort};
use crate::objects::object::{self, Entry, FolderEntry, Kind};
use crate::objects::{Batch, Objects};
use crate::report::Snapshot;
use crate::restore::journal::Op;
use crate::shadow::Shadow;
use crate::view::compare::pairs;

/// A state of a path that is put into a tree.
type Put = (Vec<u8>, Option<Entry>);

impl Shadow {
    /// `seen` was taken after a restore from `before`; changes in it that are not the restore's own are removed.
    /// Without such changes it is returned unchanged. `done` tells which operations succeeded.
    pub(crate) fn amend(
        &self,
        before: Id,
        seen: Snapshot,
        ops: &[Op],
        done: &dyn Fn(usize) -> bool,
    ) -> Result<Snapshot> {
        let folder = |e: Option<Entry>| e.is_none_or(|e| e.kind == Kind::Folder);
        let mut puts: BTreeMap<Vec<u8>, Option<Entry>> = BTreeMap::new();
        // Folders are created and deleted with their content.
        for (path, old, new) in pairs(&self.objects, self.kept(before)?.snapshot.tree, seen.tree)? {
            if !(folder(old) && folder(new)) {
                puts.insert(path, old);
            }
        }
        let view = self.view(seen.id)?;
        for (_, op) in ops.iter().enumerate().filter(|(number, _)| done(*number)) {
            let now = view.entry(&op.path)?;
            if now == op.to || (folder(now) && folder(op.to)) {
                puts.remove(&op.path);
            } else {
                puts.insert(op.path.clone(), op.to);
            }
        }
        self.with_entries(seen, puts)
    }

    /// `seen` without the changes of these paths since `before`: the state that its other changes alone would have made.
    ///
    /// # Errors
    /// When a snapshot cannot be read or stored.
    pub fn without(&self, before: Id, seen: Snapshot, paths: &[PathBuf]) -> Result<Snapshot> {
        let _lock = self.lock()?;
        let then = self.view(before)?;
        let mut puts = BTreeMap::new();
        for path in paths {
            let path = names::relative(&self.workspace, path)?;
            let old = then.entry(&path)?;
            puts.insert(path, old);
        }
        self.with_entries(seen, puts)
    }

    /// `seen` with other states of these paths.
    fn with_entries(&self, seen: Snapshot, puts: BTreeMap<Vec<u8>, Option<Entry>>) -> Result<Snapshot> {
        if puts.is_empty() {
            return Ok(seen);
        }
        // Deletions first: a folder may replace a file, and vice versa.
        let (gone, put): (Vec<Put>, Vec<Put>) = puts.into_iter().partition(|(_, e)| e.is_none());
        let mut tree = seen.tree;
        for changes in [gone, put].iter().filter(|c| !c.is_empty()) {
            let mut batch = Batch::new(&self.objects, true);
            let all: Vec<(&[u8], Option<Entry>)> = changes.iter().map(|(p, e)| (p.as_slice(), *e)).collect();
            tree = edit(&self.objects, &mut batch, tree, &all)?;
            batch.finish()?;
        }
        let data = self.objects.read(&seen.id, Sort::Snapshot)?;
        let Some((_, millis, notes)) = object::read_snapshot(&data) else { return Ok(seen) };
        let mut batch = Batch::new(&self.objects, true);
        let id = batch.put(Sort::Snapshot, &object::snapshot(tree, millis, notes))?;
        batch.finish()?;
        Ok(Snapshot { id, tree, ..seen })
    }
}

/// A tree with other states of some paths; sorted by path.
fn edit(
    objects: &Objects,
    batch: &mut Batch<'_>,
    tree: Id,
    changes: &[(&[u8], Option<Entry>)],
) -> Result<Id> {
    let mut names = objects.folder(&tree)?;
    let mut rest = changes;
    while let Some((path, entry)) = rest.first() {
        let Some(name) = names::parts(path).next().map(<[u8]>::to_vec) else { break };
        let here = names.iter().position(|n| n.name == name);
        let same = |p: &[u8]| names::within(p, &name);
        if *path == name.as_slice() {
            rest = &rest[1..];
            match (here, entry) {
                (Some(at), Some(entry)) => names[at].entry = *entry,
                // The content of a folder has paths of its own.
                (Some(at), None) if names[at].entry.kind != Kind::Folder => {
                    names.remove(at);
                }
                (None, Some(entry)) => names.push(FolderEntry { name, entry: *entry }),
                _ => {}
            }
            continue;
        }
        let count = rest.iter().take_while(|(p, _)| same(p)).count().max(1);
        let (inside, after) = rest.split_at(count);
        rest = after;
        let inner: Vec<(&[u8], Option<Entry>)> =
            inside.iter().map(|(p, e)| (p.get(name.len() + 1..).unwrap_or_default(), *e)).collect();
        let old = here.map(|at| names[at].entry);
        let (was, mode) = match old {
            Some(Entry { kind: Kind::Folder, id, mode }) => (id, mode),
            // There is nothing below it to remove.
            _ if inner.iter().all(|(_, e)| e.is_none()) => continue,
            _ => (object::empty_folder(), 0o755),
        };
        let id = edit(objects, batch, was, &inner)?;
        let entry = Entry { kind: Kind::Folder, mode, id };
        match here {
            Some(at) if id == object::empty_folder() && was != id => {
                names.remove(at);
            }
            Some(at) => names[at].entry = entry,
            None => names.push(FolderEntry { name, entry }),
        }
    }
    batch.put(Sort::Folder, &object::folder(&mut names))
}
