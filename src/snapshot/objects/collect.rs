//! Deletes unneeded snapshots, pack by pack, so that little free space is needed; and verifies the store.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::time::Duration;

use tiller_protocol::Time;

use crate::error::{Result, SnapshotError, at};
use crate::objects::id::{Id, Sort};
use crate::objects::object::{self, Kind};
use crate::pack::handles::Handles;
use crate::pack::join::delete;
use crate::pack::repack::Repack;
use crate::pack::write::{MOST, Writer};
use crate::pack::{Pack, PackLocation};
use crate::restore::journal::Journal;
use crate::restore::kept;
use crate::shadow::Shadow;

/// A snapshot younger than this, in milliseconds, is never collected: another process may be about to record it.
const GRACE: i64 = 2 * 3_600_000;
/// From this many small packs on, they are joined.
const MANY: usize = 20;
/// Maximum size of a small pack, in bytes.
const SMALL: u64 = 8 << 20;

/// The result of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectReport {
    /// Number of removed snapshots: old and not needed.
    pub removed: usize,
    /// Needed snapshots that were removed because of the quota, oldest first. They cannot be restored any more.
    pub dropped: Vec<Id>,
    /// Bytes before and after.
    pub bytes_before: u64,
    pub bytes_after: u64,
}

/// The result of verifying the whole store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    pub objects: usize,
    pub bytes: u64,
    /// The damage, as text.
    pub problems: Vec<String>,
}

/// The objects to keep, with their sizes.
struct Marks<'a> {
    shadow: &'a Shadow,
    sizes: HashMap<Id, u64>,
    live: HashSet<Id>,
}

impl Marks<'_> {
    /// All objects of a snapshot that are not marked yet, and their size.
    fn of(&self, id: Id) -> Result<(Vec<Id>, u64)> {
        let mut fresh = Vec::new();
        let mut seen = HashSet::new();
        let mut todo = vec![(id, Sort::Snapshot)];
        while let Some((id, sort)) = todo.pop() {
            if self.live.contains(&id) || !seen.insert(id) {
                continue;
            }
            fresh.push(id);
            match sort {
                Sort::Snapshot => {
                    let kept = self.shadow.kept(id)?;
                    todo.push((kept.snapshot.tree, Sort::Folder));
                    todo.extend(kept.attributes.map(|id| (id, Sort::Content)));
                }
                Sort::Folder => {
                    for n in self.shadow.objects.folder(&id)? {
                        let sort = if n.entry.kind == Kind::Folder { Sort::Folder } else { Sort::Content };
                        todo.push((n.entry.id, sort));
                    }
                }
                Sort::Content => {}
            }
        }
        let size = fresh.iter().filter_map(|id| self.sizes.get(id)).sum();
        Ok((fresh, size))
    }
}

impl Shadow {
    /// Every snapshot in the store with its time, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn list(&self) -> Result<Vec<(Id, Time)>> {
        self.objects.refresh(false)?;
        let mut all = Vec::new();
        for pack in self.objects.packs() {
            let path = self.objects.dir.join(&pack.name);
            for spot in pack.list().map_err(at(&path))? {
                if pack.sort(spot.offset).map_err(at(&path))? == Sort::Snapshot {
                    let data = self.objects.read(&spot.id, Sort::Snapshot)?;
                    if let Some((_, millis, _)) = object::read_snapshot(&data) {
                        all.push((spot.id, Time(millis)));
                    }
                }
            }
        }
        all.sort_by_key(|(id, time)| (*time, *id));
        all.dedup();
        Ok(all)
    }

    /// Bytes that the store takes on disk.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn bytes(&self) -> Result<u64> {
        let dir = self.place.packs();
        let mut sum = 0;
        for item in fs::read_dir(&dir).map_err(at(&dir))? {
            let item = item.map_err(at(&dir))?;
            sum += item.metadata().map_or(0, |m| m.len());
        }
        Ok(sum)
    }

    /// Deletes snapshots that are not in `keep` and older than `max_age`; then, while more than `quota` bytes are
    /// needed, the oldest others. The newest, and all of the last two hours, are always kept. Copies of files are deleted when
    /// they are 30 days old, and the oldest while they take more than `quota` bytes.
    ///
    /// # Errors
    /// When the store cannot be read or written. Deletions up to then remain; the rest is intact.
    pub fn collect(&mut self, keep: &[Id], max_age: Duration, quota: u64) -> Result<CollectReport> {
        // No other process copies packs in the meantime.
        self.joiner.finish();
        let joining = self.place.join_lock(self.limits.wait)?;
        let _lock = self.lock()?;
        self.place.sweep(&self.steps)?;
        let now = self.clock.now().millis();
        let oldest = now.saturating_sub(i64::try_from(max_age.as_millis()).unwrap_or(i64::MAX));
        let needed: HashSet<Id> = keep.iter().copied().collect();
        let mut out = CollectReport { bytes_before: self.bytes()?, ..CollectReport::default() };
        let mut sizes = HashMap::new();
        for pack in self.objects.packs() {
            // With its position in the index.
            let list = pack.list().map_err(at(self.objects.dir.join(&pack.name)))?;
            sizes.extend(list.into_iter().map(|s| (s.id, u64::from(s.len) + 40)));
        }
        let mut order = self.list()?;
        let newest = order.last().map(|(id, _)| *id);
        // By priority: the last hours, then needed snapshots from new to old, then the others from new to old.
        order.reverse();
        order.sort_by_key(|(id, time)| {
            if time.millis() > now - GRACE || Some(*id) == newest {
                0
            } else if needed.contains(id) {
                1
            } else {
                2
            }
        });
        let mut marks = Marks { shadow: self, sizes, live: HashSet::new() };
        let mut used = 0;
        for (id, time) in order {
            let safe = time.millis() > now - GRACE || Some(id) == newest;
            if !safe && !needed.contains(&id) && time.millis() < oldest {
                out.removed += 1;
                continue;
            }
            let (fresh, size) = match marks.of(id) {
                Ok(found) => found,
                // A snapshot that lost an object cannot be restored; the objects that it shares with others are kept.
                Err(SnapshotError::Missing(_) | SnapshotError::Damaged { .. }) if !safe => {
                    out.removed += 1;
                    continue;
                }
                Err(e) => return Err(e),
            };
            if used + size > quota && !safe {
                if needed.contains(&id) {
                    out.dropped.push(id);
                } else {
                    out.removed += 1;
                }
                continue;
            }
            used += size;
            marks.live.extend(fresh);
        }
        out.dropped.reverse();
        let live = marks.live;
        self.sweep_packs(&live)?;
        kept::collect(&self.place.dir, self.clock.now(), quota, GRACE);
        drop(joining);
        out.bytes_after = self.bytes()?;
        Ok(out)
    }

    fn sweep_packs(&self, live: &HashSet<Id>) -> Result<()> {
        let mut packs = self.objects.packs();
        let join = packs.iter().filter(|p| p.len < SMALL).count() >= MANY;
        // Oldest first: newer objects are written as deltas. Torn packs last: the objects they share are taken from
        // other packs.
        packs.sort_by(|a, b| (a.torn(), a.written, &a.name).cmp(&(b.torn(), b.written, &b.name)));
        let dir = &self.objects.dir;
        let deltas = self.place.deltas();
        // Objects of a pack that is kept need not be copied from another one.
        let mut seen = HashSet::new();
        let mut out: Option<Repack<'_>> = None;
        let mut old = Vec::new();
        for pack in packs.iter() {
            let path = dir.join(&pack.name);
            let mut list = pack.list().map_err(at(&path))?;
            if pack.torn() {
                // A damaged object would otherwise be copied as intact.
                list.retain(|s| {
                    let read = pack.read(s.offset, &self.objects.bases);
                    read.is_ok_and(|(sort, data)| Id::of(sort, &data) == s.id)
                });
            }
            let total: u64 = list.iter().map(|s| u64::from(s.len)).sum();
            let stay: Vec<PackLocation> =
                list.iter().filter(|s| live.contains(&s.id) && !seen.contains(&s.id)).copied().collect();
            let kept: u64 = stay.iter().map(|s| u64::from(s.len)).sum();
            // A little waste is cheaper than rewriting the pack.
            if kept * 10 >= total * 9 && !(join && pack.len < SMALL) && !pack.torn() {
                seen.extend(list.iter().map(|s| s.id));
                continue;
            }
            if !stay.is_empty() {
                let out = match &mut out {
                    Some(out) => out,
                    empty => {
                        let writer = Writer::new(dir, "tmp_pack", &self.steps).map_err(at(dir))?;
                        empty.insert(Repack::new(writer, &self.objects, deltas))
                    }
                };
                match out.take(pack, &stay) {
                    Ok(()) => {}
                    // Damaged: its remaining objects stay where they are.
                    Err(e) if e.kind() == io::ErrorKind::InvalidData => continue,
                    Err(e) => return Err(at(&path)(e)),
                }
            }
            seen.extend(stay.iter().map(|s| s.id));
            old.push(pack);
            // Closed early, so that old packs can be deleted before everything is copied.
            if out.as_ref().is_some_and(|out| out.writer.len() > MOST / 4) {
                self.replace_packs(out.take(), &mut old)?;
            }
        }
        self.replace_packs(out, &mut old)
    }

    /// Closes the new pack, then deletes the packs whose objects it contains.
    fn replace_packs(&self, out: Option<Repack<'_>>, old: &mut Vec<&std::sync::Arc<Pack>>) -> Result<()> {
        let mut fresh = None;
        if let Some(out) = out {
            let name = out.writer.finish(true).map_err(at(&self.objects.dir))?;
            self.objects.add(&name)?;
            self.objects.flushed.add(std::slice::from_ref(&name), &[]);
            fresh = Some(name);
        }
        for pack in old.drain(..).filter(|p| fresh.as_ref() != Some(&p.name)) {
            delete(&self.objects.dir, &pack.name, &self.steps)?;
        }
        self.objects.refresh(false).map(drop)
    }

    /// Reads every object and verifies its hash.
    ///
    /// # Errors
    /// When the store cannot be read at all.
    pub fn verify(&self) -> Result<VerifyReport> {
        let mut out = VerifyReport::default();
        let dir = self.place.packs();
        let mut known = HashSet::new();
        let handles = Handles::default();
        self.objects.refresh(false)?;
        for item in fs::read_dir(&dir).map_err(at(&dir))? {
            let name = item.map_err(at(&dir))?.file_name();
            let Some(name) = name.to_str().and_then(|n| n.strip_suffix(".pack")) else { continue };
            let result = Pack::open(&dir, name, None, &handles).and_then(|pack| {
                if !pack.check()? {
                    out.problems.push(format!("{name}: its content does not match its checksum"));
                }
                out.bytes += pack.len;
                for spot in pack.list()? {
                    match pack.read(spot.offset, &self.objects.bases) {
                        Ok((sort, data)) if Id::of(sort, &data) == spot.id => {
                            known.insert(spot.id);
                        }
                        _ => out.problems.push(format!("{name}: {} is damaged", spot.id.short())),
                    }
                }
                Ok(())
            });
            if let Err(e) = result {
                out.problems.push(format!("{name}: {e}"));
            }
        }
        let journal = Journal::damaged(&self.place.dir);
        if journal.exists() {
            let path = journal.display();
            out.problems.push(format!("a restore was interrupted and its journal is damaged: {path}"));
        }
        out.objects = known.len();
        for (id, _) in self.list().unwrap_or_default() {
            let marks = Marks { shadow: self, sizes: HashMap::new(), live: HashSet::new() };
            match marks.of(id) {
                Ok((needs, _)) => {
                    let lost = |n: &&Id| !known.contains(*n) && **n != object::empty_folder();
                    if let Some(lost) = needs.iter().find(lost) {
                        out.problems.push(format!("snapshot {} is missing {}", id.short(), lost.short()));
                    }
                }
                Err(e) => out.problems.push(format!("snapshot {}: {e}", id.short())),
            }
        }
        Ok(out)
    }
}
