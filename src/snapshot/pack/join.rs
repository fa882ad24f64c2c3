//! Joining packs. Each snapshot writes a pack of its own; in the background many packs are joined into few, so that the
//! cost of a snapshot does not grow with their number.
//!
//! The sizes of the remaining packs form a series: each is more than twice as large as all smaller ones together. So
//! their number grows with the logarithm of the stored data, and so does the number of times that an object is copied.
//!
//! A join copies without the store's lock. It takes that lock to give the new pack its name and to delete the joined
//! packs, in this order: a kill in between leaves objects twice, and the next join skips the duplicates.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::{Result, at};
use crate::objects::Objects;
use crate::objects::place::{JOINING, StoreFolder};
use crate::objects::trust::FlushedPacks;
use crate::pack::Pack;
use crate::pack::repack::Repack;
use crate::pack::write::{MOST, Writer};
use crate::steps::Steps;

/// Minimum number of packs for a join.
const FEW: usize = 8;
/// Maximum number of packs that wait for a slow join; beyond it snapshots wait.
pub(crate) const CROWD: usize = 64;
/// A pack larger than this is never copied by a join.
const LARGE: u64 = MOST / 4;
/// Bytes that weigh as much as one object.
const BLOCK: u64 = 64 << 10;
/// Maximum bytes that are joined when a process ends, since the process waits for it.
const AT_END: u64 = 16 << 20;
/// Snapshots between two attempts after a failure.
const PAUSE: u32 = 50;

/// The result of joining a whole store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JoinReport {
    pub packs_before: usize,
    pub packs_after: usize,
    pub bytes_before: u64,
    pub bytes_after: u64,
}

/// The weight of a pack: the number of its objects, or its bytes where they are large.
fn weight(pack: &Pack) -> u64 {
    u64::from(pack.count()) + pack.len / BLOCK
}

/// How many of the smallest packs to join, by the weights of all packs in ascending order.
fn smallest(weights: &[u64]) -> usize {
    let (mut sum, mut take) = (0_u64, 0);
    for (n, weight) in weights.iter().enumerate() {
        if n > 0 && *weight < 2 * sum {
            take = n + 1;
        }
        sum += weight;
    }
    if take < FEW { 0 } else { take }
}

/// Which packs to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    /// As many as the series requires.
    Due,
    All,
}

/// The packs to join now.
fn choose(packs: &[Arc<Pack>], avoid: &BTreeSet<String>, which: Which) -> Vec<Arc<Pack>> {
    let fit = |p: &&Arc<Pack>| !p.torn() && p.len <= LARGE && !avoid.contains(&p.name);
    let mut packs: Vec<Arc<Pack>> = packs.iter().filter(fit).cloned().collect();
    packs.sort_by_key(|p| weight(p));
    if which == Which::Due {
        let weights: Vec<u64> = packs.iter().map(|p| weight(p)).collect();
        packs.truncate(smallest(&weights));
    }
    let mut bytes = 0;
    packs.retain(|p| {
        bytes += p.len;
        bytes <= MOST
    });
    if packs.len() < 2 { Vec::new() } else { packs }
}

/// One join, with everything it needs of the store.
struct Work {
    place: StoreFolder,
    steps: Steps,
    flushed: Arc<FlushedPacks>,
    wait: Duration,
    /// Set to stop the join.
    stop: Arc<AtomicBool>,
    /// Packs that are not joined: torn or damaged.
    avoid: BTreeSet<String>,
    which: Which,
}

/// The result of a join: the damaged pack that stopped it, if there is one.
type Outcome = Result<Option<String>>;

impl Work {
    fn run(&self) -> Outcome {
        let Ok(_turn) = self.place.join_lock(Duration::ZERO) else { return Ok(None) };
        let dir = self.place.packs();
        let objects = Objects::with(dir.clone(), self.steps.clone(), Arc::clone(&self.flushed));
        objects.refresh(false)?;
        let mut packs = choose(&objects.packs(), &self.avoid, self.which);
        if packs.is_empty() {
            return Ok(None);
        }
        // Oldest first: newer objects are written as deltas.
        packs.sort_by(|a, b| (a.written, &a.name).cmp(&(b.written, &b.name)));
        let writer = Writer::new(&dir, JOINING, &self.steps).map_err(at(&dir))?;
        let mut out = Repack::new(writer, &objects, self.place.deltas());
        for pack in &packs {
            let done = if self.stop.load(Ordering::Acquire) {
                Err(io::ErrorKind::Interrupted.into())
            } else {
                pack.list().and_then(|spots| out.take(pack, &spots))
            };
            match done {
                Ok(()) => {}
                // Stopped, or replaced by another program in the meantime.
                Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::Interrupted) => {
                    out.writer.discard();
                    return Ok(None);
                }
                Err(e) if matches!(e.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) => {
                    out.writer.discard();
                    return Ok(Some(pack.name.clone()));
                }
                Err(e) => {
                    out.writer.discard();
                    return Err(at(&dir)(e));
                }
            }
        }
        // Flushed packs may only be deleted once the new one is flushed.
        let sync = packs.iter().any(|p| self.flushed.has(&p.name));
        let closed = out.writer.close(sync).map_err(at(&dir))?;
        let _lock = match self.place.lock(self.wait) {
            Ok(lock) => lock,
            Err(e) => {
                closed.discard();
                return Err(e);
            }
        };
        // An older program does not know the lock for joining. If it deleted a pack, its objects may have been
        // collected and must not come back.
        if !packs.iter().all(|p| dir.join(format!("{}.pack", p.name)).exists()) {
            closed.discard();
            return Ok(None);
        }
        let name = closed.publish().map_err(at(&dir))?;
        if sync {
            self.flushed.add(std::slice::from_ref(&name), &[]);
        }
        for pack in packs.iter().filter(|p| p.name != name) {
            delete(&dir, &pack.name, &self.steps)?;
        }
        Ok(None)
    }
}

/// Deletes a pack whose objects are in another one.
pub(crate) fn delete(dir: &Path, name: &str, steps: &Steps) -> Result<()> {
    // The pack first: an index without a pack is removed later, a pack without an index gets a new one.
    for ending in ["pack", "idx"] {
        let path = dir.join(format!("{name}.{ending}"));
        steps.at("delete pack").map_err(at(&path))?;
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(at(&path)(e)),
            _ => {}
        }
    }
    Ok(())
}

/// The store whose packs are joined.
#[derive(Clone, Copy)]
pub(crate) struct Store<'a> {
    pub(crate) place: &'a StoreFolder,
    pub(crate) objects: &'a Objects,
    /// How long a join waits for the lock.
    pub(crate) wait: Duration,
}

/// Joins packs in the background, one join at a time.
#[derive(Debug, Default)]
pub(crate) struct Joiner {
    /// Ends by itself; dropping the joiner stops the thread and waits for it.
    thread: Option<JoinHandle<Outcome>>,
    stop: Arc<AtomicBool>,
    /// Damaged packs.
    avoid: BTreeSet<String>,
    /// Snapshots until the next attempt.
    pause: u32,
}

impl Joiner {
    fn running(&self) -> bool {
        self.thread.as_ref().is_some_and(|t| !t.is_finished())
    }

    /// Waits for the running join, and handles its result.
    pub(crate) fn finish(&mut self) {
        if let Some(thread) = self.thread.take() {
            let outcome = thread.join();
            self.note(outcome.unwrap_or(Ok(None)));
        }
    }

    fn note(&mut self, outcome: Outcome) {
        match outcome {
            Ok(None) => {}
            Ok(Some(damaged)) => {
                self.avoid.insert(damaged);
            }
            // For instance a full disk. Nothing is lost, and an attempt at each snapshot would not help.
            Err(_) => self.pause = PAUSE,
        }
    }

    fn work(&self, store: Store<'_>, which: Which) -> Work {
        let torn = store.objects.packs().into_iter().filter(|p| p.torn()).map(|p| p.name.clone());
        Work {
            place: store.place.clone(),
            steps: store.objects.steps.clone(),
            flushed: Arc::clone(&store.objects.flushed),
            wait: store.wait,
            stop: Arc::clone(&self.stop),
            avoid: self.avoid.iter().cloned().chain(torn).collect(),
            which,
        }
    }

    /// Begins a join when there are enough packs. The caller holds no lock.
    pub(crate) fn begin_when_due(&mut self, store: Store<'_>) {
        let packs = store.objects.packs();
        if self.running() && packs.len() < CROWD {
            return;
        }
        self.finish();
        self.pause = self.pause.saturating_sub(1);
        if self.pause > 0 || choose(&packs, &self.avoid, Which::Due).is_empty() {
            return;
        }
        let work = self.work(store, Which::Due);
        if !store.objects.steps.durable() {
            // Tests that stop at each step run it synchronously.
            let outcome = work.run();
            return self.note(outcome);
        }
        let thread = std::thread::Builder::new().name("tiller-join".into());
        match thread.spawn(move || work.run()) {
            Ok(thread) => self.thread = Some(thread),
            Err(_) => self.pause = PAUSE,
        }
    }

    /// Joins all packs. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub(crate) fn join_all(&mut self, store: Store<'_>) -> Result<()> {
        self.finish();
        let damaged = self.work(store, Which::All).run()?;
        self.avoid.extend(damaged);
        store.objects.refresh(false)?;
        Ok(())
    }

    /// Called when the process ends: stops a long join and waits for a short one, so that the next process starts with
    /// few packs.
    pub(crate) fn end(&mut self, objects: &Objects) {
        if self.running() && objects.packs().iter().map(|p| p.len).sum::<u64>() > AT_END {
            self.stop.store(true, Ordering::Release);
        }
        self.finish();
    }
}

/// Joins all packs of a store, of any workspace, into as few as possible. `None`: there is no store.
///
/// # Errors
/// When the store cannot be read or written, or another process joins its packs.
pub fn join_store(store: &Path, wait: Duration) -> Result<Option<JoinReport>> {
    let Some(place) = StoreFolder::existing(store)? else { return Ok(None) };
    let steps = Steps::default();
    let objects = Objects::new(store, place.packs(), steps.clone());
    let count = || -> Result<(usize, u64)> {
        objects.refresh(false)?;
        let packs = objects.packs();
        Ok((packs.len(), packs.iter().map(|p| p.len).sum()))
    };
    {
        let _lock = place.lock(wait)?;
        place.sweep(&steps)?;
        objects.refresh(true)?;
        objects.distrust()?;
    }
    let (packs_before, bytes_before) = count()?;
    let mut avoid: BTreeSet<String> =
        objects.packs().iter().filter(|p| p.torn()).map(|p| p.name.clone()).collect();
    // Another process may be joining.
    drop(place.join_lock(wait)?);
    loop {
        let work = Work {
            place: place.clone(),
            steps: steps.clone(),
            flushed: Arc::clone(&objects.flushed),
            wait,
            stop: Arc::default(),
            avoid: avoid.clone(),
            which: Which::All,
        };
        match work.run()? {
            Some(damaged) if !avoid.contains(&damaged) => drop(avoid.insert(damaged)),
            _ => break,
        }
    }
    let (packs_after, bytes_after) = count()?;
    Ok(Some(JoinReport { packs_before, packs_after, bytes_before, bytes_after }))
}

#[cfg(test)]
#[path = "join_tests.rs"]
mod tests;
