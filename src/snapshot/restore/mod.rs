//! Restoring: the present state is stored, new contents are staged, a journal lists the operations, and then each file
//! changes atomically.

pub(crate) mod amend;
pub(crate) mod goal;
mod interrupted;
pub(crate) mod journal;
pub(crate) mod kept;
pub(crate) mod plan;
pub(crate) mod recover;
pub(crate) mod replace;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, hash_map};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode};
use tiller_fs::Attributes;

use crate::error::{Result, SnapshotError, at};
use crate::names;
use crate::objects::Batch;
use crate::objects::flush;
use crate::objects::id::{Id, Sort};
use crate::objects::object::{Entry, Kind};
use crate::objects::place::Lock;
use crate::report::Snapshot;
use crate::restore::goal::{Goal, SkipReason, SkippedPath, Step};
use crate::restore::journal::{Journal, Op, Phase};
use crate::restore::kept::CopiesApart;
use crate::restore::plan::{Conflict, Plan};
use crate::restore::replace::Replace;
use crate::scan::beside;
use crate::scan::disk;
use crate::shadow::Shadow;
use crate::view::View;

/// The decision about one path of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Leave it as it is.
    Keep,
    /// Restore it.
    Restore,
    /// Write this content: some hunks, or a merge.
    Content(Vec<u8>),
}

/// The result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreResult {
    /// The state before it; restoring that one undoes it.
    pub before: Snapshot,
    /// The state that it made, without concurrent changes of others.
    pub after: Snapshot,
    /// Changed paths.
    pub done: Vec<PathBuf>,
    /// Paths that stayed as they were, and why.
    pub left: Vec<SkippedPath>,
    /// New files with what stood at changed paths that others may have written. They are in `done` too.
    pub kept: Vec<PathBuf>,
    /// Copies of what stood at changed paths that others may have written while no witness saw it.
    pub apart: Option<CopiesApart>,
}

impl RestoreResult {
    /// The restore as a step of the session.
    pub fn step(&self) -> Step {
        Step { before: self.before.id, after: self.after.id }
    }

    /// The goal that undoes it. Changes since then are conflicts. To redo, undo the undo.
    pub fn undo(&self) -> Goal {
        let (to, base, select) = (self.before.id, self.after.id, Some(self.done.clone()));
        Goal { base, select, ..Goal::back(to, Vec::new()) }
    }
}

impl Shadow {
    /// Carries out a plan. Paths without an answer are restored, or kept if they have a conflict. Paths that changed
    /// since the plan was made are kept in any case.
    ///
    /// # Errors
    /// Before the first change: nothing was changed. Later: the journal stays, and the next restore or the next start
    /// finishes it.
    pub fn restore(&mut self, plan: &Plan, answers: &BTreeMap<PathBuf, Answer>) -> Result<RestoreResult> {
        let lock = self.lock()?;
        recover::run(self, &lock)?;
        let before = self.take(&lock, None)?;
        let mut left = plan.left.clone();
        let (mut ops, mut kept, mut apart) = (Vec::new(), Vec::new(), Vec::new());
        let mut batch = Batch::new(&self.objects, true);
        let now = self.view(before.id)?;
        for item in &plan.items {
            let path = names::relative(&self.workspace, &item.diff.path)?;
            let why = match answers.get(&item.diff.path) {
                Some(Answer::Keep) => Some(SkipReason::Asked),
                None if matches!(item.conflict, Some(Conflict::Links(_))) => Some(SkipReason::Links),
                None if item.conflict == Some(Conflict::ReadOnly) => Some(SkipReason::ReadOnly),
                None if item.conflict.is_some_and(|c| !c.is_restored()) => Some(SkipReason::Conflict),
                _ if !unchanged(now.entry(&path)?, item.diff.before) => Some(SkipReason::ChangedSince),
                _ => None,
            };
            if let Some(why) = why {
                left.push(SkippedPath { path: item.diff.path.clone(), why });
                continue;
            }
            let to = match answers.get(&item.diff.path) {
                Some(Answer::Content(data)) => {
                    let like = item.diff.before.or(item.diff.after).filter(|e| e.kind == Kind::File);
                    let id = batch.put(Sort::Content, data)?;
                    Some(Entry { kind: Kind::File, mode: like.map_or(0o644, |e| e.mode), id })
                }
                _ => item.diff.after,
            };
            let answered = answers.contains_key(&item.diff.path);
            let source = plan.sources.get(&path).copied();
            if item.conflict == Some(Conflict::Mixed) && to != item.diff.before {
                let beside = self.free_name(&now, &path)?;
                kept.push(names::path(&beside));
                ops.push(Op { path: beside, from: None, to: item.diff.before, links: false, source: None });
            }
            if let (Some(Conflict::Unseen), Some(old)) = (item.conflict, item.diff.before)
                && to != Some(old)
            {
                apart.push((item.diff.path.clone(), old));
            }
            ops.push(Op { path, from: item.diff.before, to, links: answered, source });
        }
        drop(now);
        batch.finish()?;
        let apart = kept::keep_apart(self, &apart)?;
        let mut touched: Vec<Vec<u8>> = ops.iter().map(|op| op.path.clone()).collect();
        // A path that is not covered does not become covered by name because a restore named it.
        let unkept = |why: &SkipReason| {
            matches!(why, SkipReason::Vanished(_) | SkipReason::Changed(_) | SkipReason::Created(_))
        };
        let known = left.iter().filter(|l| !unkept(&l.why));
        touched.extend(known.filter_map(|l| names::relative(&self.workspace, &l.path).ok()));
        let mut change = || -> Result<(SkippedOps, Snapshot)> {
            let fates = self.carry_out(&lock, (before.id, plan.to), &ops, apart.as_ref())?;
            let seen = self.take(&lock, Some(&touched))?;
            let after = self.amend(before.id, seen, &ops, &|n| !fates.contains_key(&n))?;
            Ok((fates, after))
        };
        let (fates, after) = change().map_err(|e| kept::named(e, apart.as_ref()))?;
        let (done, more) = sorted(&ops, &fates);
        left.extend(more);
        let changed: HashSet<&PathBuf> = done.iter().collect();
        kept.retain(|path| changed.contains(path));
        let apart = apart.and_then(|apart| apart.only(&changed));
        Ok(RestoreResult { before, after, done, left, kept, apart })
    }

    /// A name that nothing has, for what stands at a path now.
    fn free_name(&self, now: &View<'_>, path: &[u8]) -> Result<Vec<u8>> {
        let mut number = 1_u32;
        loop {
            let mut name = path.to_vec();
            name.extend_from_slice(format!(".kept-{number}").as_bytes());
            let there = self.workspace.join(names::path(&name)).symlink_metadata().is_ok();
            if !there && now.entry(&name)?.is_none() {
                return Ok(name);
            }
            number += 1;
        }
    }

    /// Stages, journals and changes. Returns the operations that left their path as it was, and why.
    fn carry_out(
        &self,
        lock: &Lock,
        (before, to): (Id, Id),
        ops: &[Op],
        apart: Option<&CopiesApart>,
    ) -> Result<SkippedOps> {
        if ops.is_empty() {
            return Ok(SkippedOps::new());
        }
        let root = self.root_or_new()?;
        let apart = apart.and_then(|copies| Some(copies.folder.file_name()?.to_str()?.to_owned()));
        let journal = Journal { staging: self.staging_name(&root)?, before, to, ops: ops.to_vec(), apart };
        journal.begin(&self.place.dir, &self.steps)?;
        match self.lay_out(root.as_fd(), &journal) {
            Ok(staging) => {
                Journal::go(&self.place.dir, &self.steps)?;
                self.finish(lock, root.as_fd(), staging.as_fd(), &journal)
            }
            Err(e) => {
                // Nothing was changed; the staged contents are removed. If that fails too, the next start does it.
                let _ = recover::roll_back(self, &journal);
                Err(e)
            }
        }
    }

    fn root_or_new(&self) -> Result<OwnedFd> {
        if let Some(root) = self.root()? {
            return Ok(root);
        }
        self.steps.at("make workspace").map_err(at(&self.workspace))?;
        std::fs::create_dir_all(&self.workspace).map_err(at(&self.workspace))?;
        disk::open_root(&self.workspace).map_err(at(&self.workspace))
    }

    /// A name that is free in the workspace.
    fn staging_name(&self, root: &OwnedFd) -> Result<String> {
        let base = String::from_utf8_lossy(names::STAGING).into_owned();
        for n in 0..1000 {
            let name = format!("{base}{}-{n}", std::process::id());
            if disk::look(root.as_fd(), name.as_bytes()).map_err(at(&self.workspace))?.is_none() {
                return Ok(name);
            }
        }
        Err(SnapshotError::Io {
            path: self.workspace.clone(),
            detail: "old restore folders are in the way".into(),
        })
    }

    /// All operations that need disk space happen here, before any file changes. What a kill leaves behind is removed
    /// as a whole.
    fn lay_out(&self, root: BorrowedFd<'_>, journal: &Journal) -> Result<OwnedFd> {
        let name = journal.staging.as_bytes();
        let path = self.workspace.join(&journal.staging);
        self.steps.at("make staging").map_err(at(&path))?;
        rustix::fs::mkdirat(root, name, Mode::RWXU).map_err(|e| at(&path)(e.into()))?;
        let staging = disk::open_dir(root, name).map_err(at(&path))?;
        let mut files = Vec::new();
        let attributes = self.attributes(journal)?;
        let exact = self.kept(journal.to)?.special;
        let replace = self.replace((root, staging.as_fd()), &|_| 0o755, &attributes, exact);
        for (number, op) in journal.ops.iter().enumerate() {
            let Some(to) = op.to.filter(|_| is_leaf(op.to)) else { continue };
            let data = self.objects.read(&to.id, Sort::Content)?;
            let file =
                replace.stage(number.to_string().as_bytes(), &op.path, to, &data).map_err(at(&path))?;
            if to.kind == Kind::File && self.steps.durable() {
                files.push(file);
            }
            if files.len() >= flush::TOGETHER {
                flush::files(&mut files).map_err(at(&path))?;
            }
        }
        flush::files(&mut files).map_err(at(&path))?;
        Ok(staging)
    }

    fn replace<'a>(
        &'a self,
        (root, staging): (BorrowedFd<'a>, BorrowedFd<'a>),
        folder_mode: &'a dyn Fn(&[u8]) -> u32,
        attributes: &'a HashMap<Vec<u8>, Attributes>,
        exact: bool,
    ) -> Replace<'a> {
        let most = self.limits.named_bytes();
        Replace { root, staging, steps: &self.steps, most, folder_mode, attributes, exact }
    }

    /// The attributes of the files that a journal restores, each from the snapshot that its content comes from.
    pub(crate) fn attributes(&self, journal: &Journal) -> Result<HashMap<Vec<u8>, Attributes>> {
        let mut all = self.attributes_in(journal.to)?;
        let mut sources = HashMap::new();
        for op in &journal.ops {
            let Some(source) = op.source else { continue };
            let there = match sources.entry(source) {
                hash_map::Entry::Occupied(known) => known.into_mut(),
                hash_map::Entry::Vacant(new) => new.insert(self.attributes_in(source)?),
            };
            if let Some(attributes) = there.remove(&op.path) {
                all.insert(op.path.clone(), attributes);
            }
        }
        Ok(all)
    }

    /// The attributes of the files of a snapshot. A snapshot of an older program has none.
    fn attributes_in(&self, id: Id) -> Result<HashMap<Vec<u8>, Attributes>> {
        let read = || match self.kept(id)?.attributes {
            Some(object) => Ok(beside::read(&self.objects.read(&object, Sort::Content)?)),
            None => Ok(HashMap::new()),
        };
        match read() {
            // Files are restored without attributes rather than not at all.
            Err(SnapshotError::Missing(_) | SnapshotError::Damaged { .. }) => Ok(HashMap::new()),
            other => other,
        }
    }

    /// Changes the files of a journal whose contents are staged, then ends it.
    pub(crate) fn finish(
        &self,
        _lock: &Lock,
        root: BorrowedFd<'_>,
        staging: BorrowedFd<'_>,
        journal: &Journal,
    ) -> Result<SkippedOps> {
        let then = self.view(journal.to)?;
        let folder_mode = |path: &[u8]| match then.entry(path) {
            Ok(Some(Entry { kind: Kind::Folder, mode, .. })) => mode,
            _ => 0o755,
        };
        let attributes = self.attributes(journal)?;
        let replace = self.replace((root, staging), &folder_mode, &attributes, then.kept.special);
        let fail = at(&self.workspace);
        let all = || -> io::Result<SkippedOps> {
            let mut left = SkippedOps::new();
            // Deepest first: a folder is empty before it is removed.
            for (number, op) in journal.ops.iter().enumerate().rev() {
                if (op.to.is_none() || is_leaf(op.from) != is_leaf(op.to))
                    && let Some(why) = replace.remove(op, number)?
                {
                    left.insert(number, why);
                }
            }
            let ours = |path: &[u8]| {
                !matches!(then.entry(path), Ok(Some(Entry { kind: Kind::Folder, .. })) | Err(_))
            };
            for op in journal.ops.iter().rev().filter(|op| op.to.is_none()) {
                replace.prune(&op.path, &ours)?;
            }
            for (number, op) in journal.ops.iter().enumerate() {
                if !left.contains_key(&number)
                    && let Some(why) = replace.create(op, number)?
                {
                    left.insert(number, why);
                }
            }
            Ok(left)
        };
        let left = all().map_err(fail)?;
        self.flush_parents(root, journal)?;
        self.clear(root, staging, journal)?;
        Journal::end(&self.place.dir, Phase::Going, &self.steps)?;
        Ok(left)
    }

    /// Waits until the new names survive a loss of power; only then may the journal be removed.
    fn flush_parents(&self, root: BorrowedFd<'_>, journal: &Journal) -> Result<()> {
        if !self.steps.durable() {
            return Ok(());
        }
        let parents: BTreeSet<&[u8]> = journal.ops.iter().map(|op| names::split(&op.path).0).collect();
        flush::folders(root, parents).map_err(at(&self.workspace))
    }

    /// Removes the staging folder. Only Tiller's own names are deleted; their content is in the store.
    pub(crate) fn clear(
        &self,
        root: BorrowedFd<'_>,
        staging: BorrowedFd<'_>,
        journal: &Journal,
    ) -> Result<()> {
        let path = self.workspace.join(&journal.staging);
        for name in disk::list(staging).map_err(at(&path))? {
            if !is_staged(&name) {
                continue;
            }
            self.steps.at("clear staged").map_err(at(&path))?;
            match rustix::fs::unlinkat(staging, name.as_slice(), AtFlags::empty()) {
                Ok(()) | Err(rustix::io::Errno::NOENT) => {}
                Err(e) => return Err(at(&path)(e.into())),
            }
        }
        self.steps.at("remove staging").map_err(at(&path))?;
        // A foreign file in it keeps the folder.
        let _ = rustix::fs::unlinkat(root, journal.staging.as_bytes(), AtFlags::REMOVEDIR);
        Ok(())
    }
}

/// Whether it is a number, or one with a suffix of Tiller's.
fn is_staged(name: &[u8]) -> bool {
    let number = name.strip_suffix(b".old").or_else(|| name.strip_suffix(b".new")).unwrap_or(name);
    !number.is_empty() && number.iter().all(u8::is_ascii_digit)
}

/// Operations that left their path as it was, and why.
pub(crate) type SkippedOps = BTreeMap<usize, SkipReason>;

/// Changed paths, and unchanged ones with the reason.
pub(crate) fn sorted(ops: &[Op], fates: &SkippedOps) -> (Vec<PathBuf>, Vec<SkippedPath>) {
    let (mut done, mut left) = (Vec::new(), Vec::new());
    for (number, op) in ops.iter().enumerate() {
        let path = names::path(&op.path);
        match fates.get(&number) {
            None => done.push(path),
            Some(why) => left.push(SkippedPath { path, why: why.clone() }),
        }
    }
    (done, left)
}

/// Whether it is a file or a link.
pub(crate) fn is_leaf(entry: Option<Entry>) -> bool {
    entry.is_some_and(|e| e.kind != Kind::Folder)
}

/// Whether a path is as in the plan. The content of a folder counts only when it should be empty.
fn unchanged(now: Option<Entry>, planned: Option<Entry>) -> bool {
    match (now, planned) {
        (Some(a), Some(b)) if a.kind == Kind::Folder && b.kind == Kind::Folder => a.mode == b.mode,
        // A folder in place of nothing: its content has paths of its own.
        (Some(a), None) => a.kind == Kind::Folder,
        (a, b) => a == b,
    }
}
