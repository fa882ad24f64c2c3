//! The snapshots of one workspace.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tiller_protocol::{Clock, Time};

use crate::calls::Calls;
use crate::error::{Result, SnapshotError, at};
use crate::names;
use crate::objects::id::{Id, Sort};
use crate::objects::object;
use crate::objects::place::{Lock, StoreFolder};
use crate::objects::settle::PendingFlush;
use crate::objects::{Batch, Objects};
use crate::pack::join::{Joiner, Store};
use crate::report::{Limits, Mode, Snapshot};
use crate::restore::goal::RecoveryReport;
use crate::scan::beside;
use crate::scan::cache;
use crate::scan::disk;
use crate::scan::fill::fill;
use crate::scan::fold::Fold;
use crate::scan::ignored::IgnoredBudget;
use crate::scan::model::{Dir, Node};
use crate::scan::mounts::Mounts;
use crate::scan::notes::{self, SnapshotNotes, Watched};
use crate::scan::rules;
use crate::scan::tracked::{RuleSources, TrackedIndexes};
use crate::scan::{self, Job, Scan};
use crate::steps::Steps;

/// An unchanged state gets the same snapshot again while that is younger than this, in milliseconds. An older one might
/// be collected by another process before this one has recorded that it needs it.
const REUSE: i64 = 3_600_000;

/// The snapshots of one workspace, in a folder outside of it. Several values and processes may share a store: changes
/// are serialised by its lock.
pub struct Shadow {
    pub(crate) workspace: PathBuf,
    pub(crate) place: StoreFolder,
    pub(crate) objects: Objects,
    pub(crate) limits: Limits,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) steps: Steps,
    pub(crate) calls: Calls,
    mode: Mode,
    memory: Memory,
    /// Number of writes without a flush, and how many of them are flushed.
    written: u64,
    settled: Arc<AtomicU64>,
    /// The outcome of an interrupted restore, until it is asked for.
    pub(crate) recovered: Option<RecoveryReport>,
    pub(crate) joiner: Joiner,
}

/// State that is kept between two scans.
#[derive(Default)]
struct Memory {
    /// The folder as of the last scan; `None` when not known.
    model: Option<Dir>,
    /// Paths that are covered although git would ignore them, because a call named them.
    named: BTreeSet<Vec<u8>>,
    /// What git tracks.
    tracked: TrackedIndexes,
    /// Tracked paths that are covered although git's ignore rules match them.
    forced: BTreeSet<Vec<u8>>,
    /// Files on other file systems below the workspace.
    mounts: Mounts,
    /// The last snapshot that was taken or found.
    last: Option<SnapshotNotes>,
    /// Whether this process has scanned the folder. A model from the disk may be older than the last state.
    looked: bool,
    /// The snapshot whose objects the model assumes to be stored.
    relies_on: Option<Id>,
    /// The snapshot that the cache on disk belongs to.
    cached: Option<Id>,
}

impl std::fmt::Debug for Shadow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shadow").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

impl Shadow {
    /// An open store, before anything in it was read.
    pub(crate) fn new(
        workspace: PathBuf,
        place: StoreFolder,
        mode: Mode,
        limits: Limits,
        clock: Arc<dyn Clock>,
        steps: Steps,
    ) -> Self {
        Self {
            objects: Objects::new(&place.dir, place.packs(), steps.clone()),
            mode,
            workspace,
            calls: Calls::new(&place.dir),
            place,
            limits,
            clock,
            steps,
            memory: Memory::default(),
            written: 0,
            settled: Arc::default(),
            recovered: None,
            joiner: Joiner::default(),
        }
    }

    /// Loads the cache of the last process, as far as it exists.
    pub(crate) fn remember(&mut self) {
        if let Some(kept) = self.place.last().and_then(|id| self.kept(id).ok()) {
            self.memory.named = kept.named.iter().cloned().collect();
            self.memory.last = Some(kept);
        }
        // A tree whose scan once cost too much is tried again: it may be smaller now.
        if let Some((id, model)) = cache::load(&self.place.cache())
            && self.kept(id).is_ok_and(|kept| kept.snapshot.mode == self.mode)
        {
            self.memory.model = Some(model);
            self.memory.relies_on = Some(id);
            self.memory.cached = Some(id);
        }
    }

    /// The outcome of an interrupted restore; returned once.
    pub fn recovered(&mut self) -> Option<RecoveryReport> {
        self.recovered.take()
    }

    /// The folder, its links resolved.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// What the next snapshot covers, as far as is known.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The last snapshot that this value took or found.
    pub fn last(&self) -> Option<&Snapshot> {
        self.memory.last.as_ref().map(|k| &k.snapshot)
    }

    /// Stores the state of the whole folder. An unchanged state gives the same snapshot again.
    ///
    /// # Errors
    /// When it cannot be stored; then nothing was.
    pub fn snapshot(&mut self) -> Result<Snapshot> {
        let lock = self.lock()?;
        let taken = self.take(&lock, None);
        drop(lock);
        self.join_when_due();
        taken
    }

    /// Stores the state after scanning named files only (absolute paths, or relative to the workspace), which is quick;
    /// the rest is as of the last scan. Call it before and after an edit of files that [`Self::snapshot`] would not
    /// cover: from the first call on they are covered, though git ignores them. It does not wait for the disk;
    /// [`Self::settle`] does. Paths outside of the workspace are ignored.
    ///
    /// # Errors
    /// As [`Self::snapshot`].
    pub fn snapshot_touched<P: AsRef<Path>>(&mut self, paths: &[P]) -> Result<Snapshot> {
        let lock = self.lock()?;
        let paths: Vec<Vec<u8>> =
            paths.iter().filter_map(|p| names::relative(&self.workspace, p.as_ref()).ok()).collect();
        let taken = self.take(&lock, Some(&paths));
        drop(lock);
        self.join_when_due();
        taken
    }

    /// Covers these paths from now on, though git ignores them.
    pub fn cover<P: AsRef<Path>>(&mut self, paths: &[P]) {
        let paths = paths.iter().filter_map(|p| names::relative(&self.workspace, p.as_ref()).ok());
        self.memory.named.extend(paths.filter(|p| !p.is_empty()));
    }

    /// Covers these names from now on, though git ignores them.
    pub(crate) fn cover_names(&mut self, names: impl IntoIterator<Item = Vec<u8>>) {
        self.memory.named.extend(names);
    }

    /// The path relative to the workspace; `None`: it is outside.
    pub fn relative(&self, path: &Path) -> Option<PathBuf> {
        let name = names::relative(&self.workspace, path).ok()?;
        Some(PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(name)))
    }

    /// Waits until everything stored so far survives a loss of power.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn settle(&mut self) -> Result<()> {
        self.unsettled().settle()
    }

    /// What must be flushed before everything stored so far survives a loss of power. This call is quick; the flush may
    /// run elsewhere.
    pub fn unsettled(&self) -> PendingFlush {
        let dir = self.place.packs();
        let upto = self.written;
        let new = upto > self.settled.load(Ordering::Acquire);
        // Including those of other processes, since their objects are not written again.
        let packs = if new { self.objects.packs() } else { Vec::new() };
        let flushed = &self.objects.flushed;
        let packs = packs.iter().filter(|p| !p.torn() && !flushed.has(&p.name));
        let packs = packs.map(|p| dir.join(&p.name)).collect();
        PendingFlush { packs, dir, upto, settled: self.settled.clone(), flushed: flushed.clone() }
    }

    pub(crate) fn lock(&self) -> Result<Lock> {
        let lock = self.place.lock(self.limits.wait)?;
        self.objects.refresh(true)?;
        Ok(lock)
    }

    /// Everything that is known of a snapshot.
    pub(crate) fn kept(&self, id: Id) -> Result<SnapshotNotes> {
        let data = self.objects.read(&id, Sort::Snapshot)?;
        let damaged = || SnapshotError::Damaged {
            path: self.place.dir.clone(),
            detail: format!("snapshot {}", id.short()),
        };
        let (tree, millis, text) = object::read_snapshot(&data).ok_or_else(damaged)?;
        Ok(notes::read(id, tree, millis, text))
    }

    /// A snapshot by its name.
    ///
    /// # Errors
    /// When it was collected or is damaged.
    pub fn find(&self, id: Id) -> Result<Snapshot> {
        Ok(self.kept(id)?.snapshot)
    }

    /// The workspace, opened; `None` when it is gone.
    pub(crate) fn root(&self) -> Result<Option<OwnedFd>> {
        match disk::open_root(&self.workspace) {
            Ok(fd) => Ok(Some(fd)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(at(&self.workspace)(e)),
        }
    }

    /// Takes a snapshot of everything, or of named paths only.
    pub(crate) fn take(&mut self, _lock: &Lock, paths: Option<&[Vec<u8>]>) -> Result<Snapshot> {
        // Another process may have collected the last snapshot.
        if let Some(id) = self.memory.relies_on
            && !self.objects.has(&id)?
        {
            (self.memory.relies_on, self.memory.model) = (None, None);
        }
        if let Some(last) = &self.memory.last
            && !self.objects.has(&last.snapshot.id)?
        {
            self.memory.last = None;
        }
        // On any error the model may name objects that were not written.
        let result = self.look(paths);
        if result.is_err() {
            self.memory.model = None;
        }
        result
    }

    fn look(&mut self, paths: Option<&[Vec<u8>]>) -> Result<Snapshot> {
        let root = self.root()?;
        let mut model = self.memory.model.take();
        let (mut jobs, mut vanished) = (Vec::new(), Vec::new());
        if let Some(root) = &root {
            let stat = rustix::fs::fstat(root).map_err(|e| at(&self.workspace)(e.into()))?;
            let end = self.clock.mono() + self.limits.scan;
            let mut scan = Scan {
                workspace: &self.workspace,
                limits: &self.limits,
                clock: &*self.clock,
                end,
                dev: crate::scan::disk::device(&stat),
                person: rules::person(&self.workspace, self.limits.global_ignore.as_deref()),
                jobs: Vec::new(),
                known: HashMap::new(),
                other_rules: false,
                files: 0,
                bytes: 0,
                vanished: Vec::new(),
                budget: IgnoredBudget::default(),
                mounts: self.memory.mounts.clone(),
            };
            let outer = rules::outer(&self.workspace, self.limits.global_ignore.as_deref());
            let mut again: Vec<Vec<u8>> = paths.map(<[_]>::to_vec).unwrap_or_default();
            let known = model.is_some() && self.memory.looked;
            if self.mode == Mode::Full && (paths.is_none() || !known || again.iter().any(Vec::is_empty)) {
                let mut old = model.take().unwrap_or_default();
                let by_name = || self.memory.named.iter().chain(&self.memory.forced);
                scan.known = by_name().filter_map(|p| Some((p.clone(), scan::leaf_of(&old, p)?))).collect();
                by_name().for_each(|p| scan::untouch(&mut old, p));
                scan.mounts = Mounts { slow: std::mem::take(&mut scan.mounts.slow), ..Mounts::default() };
                match scan.walk(root.as_fd(), &[], old, &outer, false) {
                    Ok(Node::Dir(dir)) => {
                        let ground =
                            RuleSources { workspace: &self.workspace, outer: &outer, person: &scan.person };
                        self.memory.forced =
                            self.memory.tracked.look(&ground, &dir, scan.other_rules).clone();
                        model = Some(*dir);
                    }
                    Ok(_) => {
                        let detail = "the folder cannot be read".into();
                        return Err(SnapshotError::Io { path: self.workspace.clone(), detail });
                    }
                    Err(why) => {
                        self.mode = Mode::Named(why);
                        scan.jobs.clear();
                    }
                }
                again.extend(self.memory.named.iter().chain(&self.memory.forced).cloned());
            }
            let full = self.mode == Mode::Full;
            if !full {
                if paths.is_none() || !known {
                    again.extend(self.memory.named.iter().cloned());
                }
                self.memory.named.extend(again.iter().filter(|p| !p.is_empty()).cloned());
            }
            let mut dir = model.take().unwrap_or_else(|| Dir { partial: true, ..Dir::default() });
            for path in again.iter().filter(|p| !p.is_empty()) {
                (scan.files, scan.bytes) = (0, 0);
                match scan.touch(root.as_fd(), &mut dir, (&[], path), &outer, full) {
                    Ok(ignored) if (ignored && !self.memory.forced.contains(path)) || !full => {
                        self.memory.named.insert(path.clone());
                    }
                    Ok(_) => {}
                    // The new content below one name is too much: from now on named files only.
                    Err(why) if full => {
                        self.mode = Mode::Named(why);
                        return self.look(paths);
                    }
                    // A named folder that itself costs too much is left out; its files can be named one by one.
                    Err(_) => {
                        self.memory.named.remove(path);
                    }
                }
            }
            model = Some(dir);
            (jobs, vanished, self.memory.mounts) = (scan.jobs, scan.vanished, scan.mounts);
        } else {
            model = Some(Dir::default());
        }
        let model = model.unwrap_or_default();
        self.keep(root, model, (&jobs, &vanished), paths.is_none())
    }

    /// Writes the result of a scan, and remembers it.
    fn keep(
        &mut self,
        root: Option<OwnedFd>,
        mut model: Dir,
        (jobs, vanished): (&[Job], &[Vec<u8>]),
        sync: bool,
    ) -> Result<Snapshot> {
        let mut batch = Batch::new(&self.objects, sync);
        let mut write = || -> Result<(SnapshotNotes, bool)> {
            let done = match &root {
                Some(root) => fill(root.as_fd(), jobs, &self.objects, &mut batch)?,
                None => Vec::new(),
            };
            let mut fold = Fold {
                batch: &mut batch,
                done,
                uncovered: Vec::new(),
                attributes: Vec::new(),
                seen: Watched::default(),
            };
            let (tree, _) = fold.dir(&mut model, &[])?;
            let (mut uncovered, attributes) = (fold.uncovered, beside::write(&fold.attributes));
            let mut watched = fold.seen;
            self.memory.mounts.tell(&mut watched);
            let attributes = attributes.map(|data| batch.put(Sort::Content, &data)).transpose()?;
            let named: Vec<Vec<u8>> = self.memory.named.union(&self.memory.forced).cloned().collect();
            let text = notes::write(self.mode, &mut uncovered, &named, attributes, vanished, &watched);
            let now = self.clock.now().millis();
            let mut mine = notes::read(Id([0; 32]), tree, now, &text);
            if let Some(last) = &self.memory.last
                && mine.same(last)
                && (0..REUSE).contains(&(now - last.snapshot.time.millis()))
            {
                mine.snapshot = last.snapshot.clone();
                return Ok((SnapshotNotes { named, ..mine }, false));
            }
            let id = batch.put(Sort::Snapshot, &object::snapshot(tree, now, &text))?;
            (mine.snapshot.id, mine.snapshot.time) = (id, Time(now));
            Ok((SnapshotNotes { named, ..mine }, true))
        };
        let (kept, fresh) = match write() {
            Ok(found) => found,
            Err(e) => {
                batch.discard();
                return Err(e);
            }
        };
        batch.finish()?;
        let snapshot = kept.snapshot.clone();
        if fresh && !sync {
            self.written += 1;
        }
        if fresh {
            // Without it the next start only reads more.
            let _ = self.place.set_last(snapshot.id, &self.steps);
        }
        (self.memory.model, self.memory.looked) = (Some(model), true);
        self.memory.relies_on = Some(snapshot.id);
        self.memory.last = Some(kept);
        // Only speeds up the next start: missing data is read again. So it is written for large changes only.
        if self.memory.cached.is_none() || jobs.len() > 500 {
            self.save_cache();
        }
        Ok(snapshot)
    }

    /// Writes the cache, so that the next start need not read the whole folder.
    pub fn save_cache(&mut self) {
        if let (Some(last), Some(model)) = (&self.memory.last, &self.memory.model)
            && self.memory.cached != Some(last.snapshot.id)
            && cache::save(&self.place.cache(), last.snapshot.id, model, &self.steps).is_ok()
        {
            self.memory.cached = Some(last.snapshot.id);
        }
    }

    /// Joins all packs. Blocks. For idle moments; snapshots start joins by themselves.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub fn tidy(&mut self) -> Result<()> {
        self.joiner.join_all(Store { place: &self.place, objects: &self.objects, wait: self.limits.wait })
    }

    /// Starts a join when there are enough packs. The caller holds no lock.
    fn join_when_due(&mut self) {
        self.joiner.begin_when_due(Store {
            place: &self.place,
            objects: &self.objects,
            wait: self.limits.wait,
        });
    }
}

impl Drop for Shadow {
    fn drop(&mut self) {
        self.joiner.end(&self.objects);
    }
}
