//! Entries that vanish from a memory file by another hand than Tiller's: a script, an editor, `git checkout`.
//!
//! The database keeps each file as it was at the last look. A look compares it with the file as it is now, records what is
//! missing, and keeps the new state, in one transaction: after a kill the next look finds the same again. Changes by Tiller
//! are carried out under the file's lock, which a look takes as well. What is to be recorded of one is stored before the file is
//! replaced: after a kill the next look records it where the file has it, and gives it up where it has not.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError};

use tiller_fs::lock::LockFile;
use tiller_protocol::memory::{ChangeDetails, ChangeState, MemoryChange};
use tiller_protocol::{MemoryTarget, Provenance, SessionId, Taint, Time};
use tiller_store::{MemoryLook, MemoryRun, Process, RecordStep, Store, Ticket, UnfinishedChange};

use super::disk::Slot;
use super::document::{Document, Entry, Part};
use super::power::found;
use super::restore::replaced_entries;
use super::{Memory, MemoryError, SETTINGS, name};

/// Size, inode and times of a file, by which a change is noticed; `None`: there is no file. A program cannot set the last time.
pub(crate) type Stamp = Option<(u64, u64, i64, i64, i64, i64)>;

/// The present stamp of a file.
pub(crate) fn stamp(path: &Path) -> Stamp {
    stamp_from(&std::fs::metadata(path).ok()?)
}

/// The present stamp of a link itself, which may lead to nothing; of any other file, its stamp.
pub(crate) fn stamp_of_link(path: &Path) -> Stamp {
    stamp_from(&std::fs::symlink_metadata(path).ok()?)
}

fn stamp_from(meta: &std::fs::Metadata) -> Stamp {
    Some((meta.len(), meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()))
}

/// What is known of the files beside the database.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The files as they were at the last look of this process.
    stamps: HashMap<PathBuf, Stamp>,
    /// Whose marks in the database are those of this memory; empty: it has made none.
    runner: String,
    /// Turns and calls that run, the latest last, by session and id of the call.
    running: Vec<((SessionId, String), Provenance)>,
    /// The origin of a call after which the files were not compared.
    dropped: Option<Provenance>,
    /// Entries that vanished while a turn or call of a session ran, and that no notice has named.
    unreported: HashMap<SessionId, usize>,
}

/// A file that is looked at.
struct Watched {
    slot: Slot,
    /// Its name in the database.
    key: String,
    /// The file that an entry of it is brought back to.
    target: MemoryTarget,
}

/// A call that may change memory files by itself. One that is dropped before [`Self::compared`] stays in the database as one
/// that was killed: the next start compares the files.
#[derive(Debug)]
pub struct UnconfinedCall {
    memory: Arc<Memory>,
    key: (SessionId, String),
    compared: bool,
}

impl UnconfinedCall {
    /// It has ended, and the files were looked at after that.
    pub fn compared(mut self) {
        self.compared = true;
    }
}

impl Drop for UnconfinedCall {
    fn drop(&mut self) {
        let from = self.memory.ended(&self.key);
        if !self.compared {
            self.memory.watch().dropped = from;
            return;
        }
        // Not awaited: a call that seems to run only changes the words about what vanishes.
        drop(self.memory.persist(self.memory.running(true)));
    }
}

impl Memory {
    /// Records what vanished from the files since the last look. Blocks.
    pub fn look(&self) {
        let time = self.clock.now();
        // Without the database nothing is compared.
        let mut killed = self.marks_of_others().unwrap_or_default();
        killed.retain(|run| !run.process.alive());
        for watched in self.watched() {
            let now = stamp(&watched.slot.path);
            let known = self.watch().stamps.get(&watched.slot.path) == Some(&now);
            if known && !killed.iter().any(|run| run.path == watched.key) {
                continue;
            }
            let looked = watched.slot.lock().and_then(|lock| self.look_locked(&lock, &watched, time, None));
            if let Err(error) = looked {
                tracing::warn!(%error, "a memory file was not compared with its last state");
            }
        }
    }

    /// A turn of a session begins: what vanishes from now on vanished while it ran. Blocks.
    pub fn turn_began(&self, from: Provenance) {
        self.look();
        if let Some(session) = from.session {
            self.began((session, String::new()), Provenance { entry: None, ..from });
        }
    }

    /// The turn has ended. Returns how many entries vanished while it ran that [`Self::vanished`] did not return. Blocks.
    pub fn turn_ended(&self, session: SessionId) -> usize {
        let vanished = self.vanished(session);
        self.ended(&(session, String::new()));
        vanished
    }

    /// A call begins whose program can write the files by itself. `from`: its session, and the reply that made it. Blocks.
    pub fn call_began(self: &Arc<Self>, call: &str, from: Provenance) -> Option<UnconfinedCall> {
        self.look();
        let key = (from.session?, call.to_owned());
        self.began(key.clone(), from.clone());
        if let Some(Err(error)) = self.persist(Some(from)).map(Ticket::wait) {
            tracing::warn!(%error, "the call that may change memory files is not recorded");
        }
        Some(UnconfinedCall { memory: Arc::clone(self), key, compared: false })
    }

    /// How many entries vanished since the last call of this, while a turn or a call of the session ran. Blocks.
    pub fn vanished(&self, session: SessionId) -> usize {
        self.look();
        self.watch().unreported.remove(&session).unwrap_or_default()
    }

    /// Changes a file, and records it by the steps of `record` before the new state counts as seen. The steps are stored before the
    /// file is replaced: a kill in between leaves both as they were, or the next look records the change. `edit` may run
    /// again, as for [`Slot::change_locked`].
    pub(super) fn change<T>(
        &self,
        target: MemoryTarget,
        mut edit: impl FnMut(&mut Document) -> Result<T, MemoryError>,
        record: impl Fn(&T) -> Result<Vec<RecordStep>, MemoryError>,
    ) -> Result<T, MemoryError> {
        let slot = self.slot(target)?;
        let lock = slot.lock_to_change()?;
        let watched = Watched { key: name(&slot.path), slot, target };
        let slot = &watched.slot;
        if self.settle(&watched)?.is_some() {
            self.look_locked(&lock, &watched, self.clock.now(), None)?;
        }
        let mut own = (Document::default(), Document::default());
        let mut change = UnfinishedChange::default();
        let changed = slot.change_locked(&lock, |document| {
            own.0 = document.clone();
            let value = edit(document)?;
            own.1 = document.clone();
            change = unfinished(&own, record(&value)?);
            if let Some(store) = self.store.get().filter(|_| own.0 != own.1) {
                store.memory_changes().begin(&watched.key, &change)?.wait()?;
            }
            // Before the file has them: another thread may look for what programs wrote.
            self.written_here(&watched.slot.path, new_lines(&own.0, &own.1));
            Ok(value)
        });
        let value = match changed {
            Ok(value) => value,
            Err(error) => {
                // What is not settled now, the next look settles.
                if let Err(error) = self.settle(&watched) {
                    tracing::warn!(%error, "a change of a memory file is not recorded yet");
                }
                return Err(error);
            }
        };
        super::disk::step("unrecorded");
        if let Some(store) = self.store.get() {
            store.memory_changes().record(&watched.key, change)?.wait()?;
        }
        super::disk::step("recorded");
        if let Err(error) = self.look_locked(&lock, &watched, self.clock.now(), Some(&own)) {
            tracing::warn!(%error, "a memory file was not compared with its last state");
        }
        Ok(value)
    }

    /// Records the change of a process that was killed while it wrote the file, if the file has it. The file's lock is held: no
    /// living process writes it. Returns the file before and after the change, if it has it.
    fn settle(&self, watched: &Watched) -> Result<Option<(Document, Document)>, MemoryError> {
        let Some(store) = self.store.get() else { return Ok(None) };
        let Some(change) = store.memory_changes().unfinished(&watched.key)? else { return Ok(None) };
        let after = Document::parse(&watched.slot.read()?.unwrap_or_default());
        let is = counts(&after);
        let number = |line: &String| is.get(line).copied().unwrap_or_default();
        // An editor may have changed one of several lines since.
        let done = change.more.iter().any(|(line, then)| number(line) >= *then)
            || (change.more.is_empty() && change.fewer.iter().any(|(line, then)| number(line) <= *then));
        if !done {
            store.memory_changes().give_up(&watched.key).wait()?;
            return Ok(None);
        }
        let mut before = after.clone();
        for (line, _) in &change.more {
            before.remove(&Entry::of_line(line));
        }
        for (line, _) in &change.fewer {
            before.add(&Entry::of_line(line), None);
        }
        store.memory_changes().record(&watched.key, change)?.wait()?;
        Ok(Some((before, after)))
    }

    fn watch(&self) -> std::sync::MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn began(&self, key: (SessionId, String), from: Provenance) {
        let mut watch = self.watch();
        watch.running.retain(|(other, _)| *other != key);
        watch.running.push((key, from));
    }

    /// Returns the origin of the call or turn that has ended.
    fn ended(&self, key: &(SessionId, String)) -> Option<Provenance> {
        let mut watch = self.watch();
        let at = watch.running.iter().position(|(other, _)| other == key)?;
        Some(watch.running.remove(at).1)
    }

    /// Keeps in the database which call runs, for the case that this process is killed. `None`: none does.
    fn persist(&self, by: Option<Provenance>) -> Option<Ticket<()>> {
        let by = by.or_else(|| self.watch().dropped.clone());
        let paths = self.watched().map(|w| w.key).collect();
        Some(self.store.get()?.memory_changes().runs(paths, self.runner(), by))
    }

    /// Whose marks are its own: those of the process, and of this memory in it.
    fn runner(&self) -> String {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let mut watch = self.watch();
        if watch.runner.is_empty() {
            let Process { pid, start, boot, .. } = Process::current();
            watch.runner = format!("{boot} {pid} {start} {}", MADE.fetch_add(1, Ordering::Relaxed));
        }
        watch.runner.clone()
    }

    /// The marks of others: of calls that run in other windows, and of processes that ended while a call of theirs ran.
    fn marks_of_others(&self) -> Result<Vec<MemoryRun>, MemoryError> {
        let Some(store) = self.store.get() else { return Ok(Vec::new()) };
        Ok(store.memory_changes().runs_of_others(&self.runner())?)
    }

    /// The files that are looked at: those in use, and the USER.md of the user's settings.
    fn watched(&self) -> impl Iterator<Item = Watched> + '_ {
        let own = self.targets().filter_map(|target| {
            let slot = self.slot(target).ok()?;
            Some(Watched { key: name(&slot.path), slot, target })
        });
        let slot = self.settings_slot();
        let settings = Watched { key: name(&slot.path), slot, target: SETTINGS };
        let same = self.path(SETTINGS).is_some_and(|path| path == settings.slot.path);
        own.chain((!same).then_some(settings))
    }

    /// The call that began last of those that run, or else the turn. `call`: no turn.
    pub(super) fn running(&self, call: bool) -> Option<Provenance> {
        let watch = self.watch();
        let last = watch.running.iter().rev().find(|((_, call), _)| !call.is_empty());
        let turn = watch.running.last().filter(|_| !call);
        last.or(turn).map(|(_, from)| from.clone())
    }

    /// Compares a file with its last state. `own`: the file before and after a change by Tiller.
    fn look_locked(
        &self,
        _lock: &LockFile,
        watched: &Watched,
        time: Time,
        own: Option<&(Document, Document)>,
    ) -> Result<(), MemoryError> {
        let Some(store) = self.store.get() else { return Ok(()) };
        let settled = if own.is_none() { self.settle(watched)? } else { None };
        let own = own.or(settled.as_ref());
        let now = stamp(&watched.slot.path);
        // A file that cannot be read is shown as such; its last state stays.
        let text = watched.slot.read()?.unwrap_or_default();
        let seen = store.memory_changes().seen(&watched.key)?;
        let mut others = self.marks_of_others()?;
        others.retain(|run| run.path == watched.key);
        let killed: Vec<MemoryRun> = others.iter().filter(|run| !run.process.alive()).cloned().collect();
        let same = seen.as_ref() == Some(&text);
        if !same || !others.is_empty() || own.is_some() {
            let by = self.running(false).or_else(|| killed.last().map(|run| run.by.clone()));
            let mut look = self.compared(store, watched, time, text, seen.as_deref(), own, by.as_ref())?;
            let vanished = look.changes.len();
            let added = self.added_by_others(store, &look, &others, own)?;
            look.changes.extend(added);
            store.memory_changes().look(look).wait()?;
            if let Some(session) = by.and_then(|by| by.session).filter(|_| vanished > 0) {
                *self.watch().unreported.entry(session).or_default() += vanished;
            }
        }
        for run in killed {
            store.memory_changes().runs(vec![run.path], run.runner, None).wait()?;
        }
        self.watch().stamps.insert(watched.slot.path.clone(), now);
        Ok(())
    }

    /// What vanished since the last state, and what is back.
    #[expect(
        clippy::too_many_arguments,
        reason = "the two states, and what each difference is recorded with"
    )]
    fn compared(
        &self,
        store: &Store,
        watched: &Watched,
        time: Time,
        text: String,
        seen: Option<&str>,
        own: Option<&(Document, Document)>,
        by: Option<&Provenance>,
    ) -> Result<MemoryLook, MemoryError> {
        let now = Document::parse(&text);
        let mut look = MemoryLook { path: watched.key.clone(), text, ..MemoryLook::default() };
        let (Some(seen), Some(path)) = (seen, self.path(watched.target)) else { return Ok(look) };
        let (before, path) = (Document::parse(seen), name(&path));
        let own_lines = own.map(|(before, after)| new_lines(before, after)).unwrap_or_default();
        let own = own.map(|(before, after)| vanished(before, after)).unwrap_or_default();
        let lines: Vec<String> =
            vanished(&before, &now).into_iter().filter(|line| !own.contains(line)).collect();
        let mut edited = replaced_entries(&before, &now, &lines, &own_lines);
        let change = |line: String| MemoryChange {
            id: 0,
            time,
            path: path.clone(),
            details: ChangeDetails {
                became: edited.remove(&line).unwrap_or_default(),
                ..ChangeDetails::default()
            },
            removed: Some(line),
            added: None,
            archived: None,
            state: ChangeState::Outside,
            from: by.cloned().unwrap_or_default(),
        };
        look.changes = lines.into_iter().map(change).collect();
        let outside = store.memory_changes().in_states(&[path], &[ChangeState::Outside])?;
        let back = outside.iter().filter(|c| c.removed.as_deref().is_some_and(|line| is_back(&now, line)));
        look.back = back.map(|c| c.id).collect();
        Ok(look)
    }

    /// Entries and lines that came while a call of another window runs, or ran when its process of Tiller was killed: they are no rules, as
    /// those of any such call.
    fn added_by_others(
        &self,
        store: &Store,
        look: &MemoryLook,
        marks: &[MemoryRun],
        own: Option<&(Document, Document)>,
    ) -> Result<Vec<MemoryChange>, MemoryError> {
        if marks.is_empty() {
            return Ok(Vec::new());
        }
        let path = std::slice::from_ref(&look.path);
        let recorded = store.memory_changes().in_states(path, &[ChangeState::Done])?;
        let mut known: HashSet<String> =
            recorded.iter().filter_map(|c| Some(Entry::of_line(c.added.as_deref()?).line())).collect();
        let now = Document::parse(&look.text);
        let (mut added, time) = (Vec::new(), self.clock.now());
        // What Tiller brought back or moved in this change has its origin, recorded or not.
        let own: HashSet<String> = own.map_or_else(HashSet::new, |(before, after)| new_lines(before, after));
        for run in marks {
            let before = lines(&Document::parse(&run.text));
            // Without the entry of the tree: it is not taken out with a branch.
            let (entry, branch, taint) = (None, String::new(), Taint::ToolOutput);
            let from = Provenance { entry, branch, taint, ..run.by.clone() };
            for part in now.parts() {
                let line = part.line();
                if !before.contains(&line) && !own.contains(&line) && known.insert(line) {
                    added.push(found(part, time, &look.path, from.clone()));
                }
            }
        }
        Ok(added)
    }
}

/// What a change does to the entries of a file, and what is to be recorded of it.
fn unfinished((before, after): &(Document, Document), steps: Vec<RecordStep>) -> UnfinishedChange {
    let (was, is) = (counts(before), counts(after));
    let number = |of: &HashMap<String, usize>, line: &str| of.get(line).copied().unwrap_or_default();
    let mut change = UnfinishedChange { steps, ..UnfinishedChange::default() };
    for line in was.keys().chain(is.keys().filter(|line| !was.contains_key(*line))) {
        let (before, after) = (number(&was, line), number(&is, line));
        match after.cmp(&before) {
            std::cmp::Ordering::Less => change.fewer.push((line.clone(), after)),
            std::cmp::Ordering::Greater => change.more.push((line.clone(), after)),
            std::cmp::Ordering::Equal => {}
        }
    }
    change
}

/// How often a file has each entry, as it is recorded.
fn counts(document: &Document) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    document.entries().for_each(|entry| *counts.entry(entry.recorded()).or_default() += 1);
    counts
}

/// The parts of a file, as their records have them.
fn lines(document: &Document) -> HashSet<String> {
    document.parts().map(Part::line).collect()
}

/// The parts of `after` that are not in `before`, as lines.
fn new_lines(before: &Document, after: &Document) -> HashSet<String> {
    let before = lines(before);
    lines(after).into_iter().filter(|line| !before.contains(line)).collect()
}

/// What of `before` is not in `after` any more, as lines of entries. An entry that is only in the archive now counts, and lines
/// of other text are one entry together.
fn vanished(before: &Document, after: &Document) -> Vec<String> {
    let live: HashSet<String> = after.entries().filter(|e| !e.archived).map(Entry::line).collect();
    let archive: HashSet<String> = after.entries().filter(|e| e.archived).map(Entry::line).collect();
    let there = |e: &&Entry| live.contains(&e.line()) || (e.archived && archive.contains(&e.line()));
    let mut known = HashSet::new();
    let entries = before.entries().filter(|e| !there(e)).map(Entry::line);
    let mut lines: Vec<String> = entries.filter(|line| known.insert(line.clone())).collect();
    let others: HashSet<&str> = after.other_lines().collect();
    let text: Vec<&str> = before.other_lines().filter(|line| !others.contains(line)).collect();
    if !text.is_empty() {
        lines.push(text.join("\n"));
    }
    lines
}

/// Whether what vanished is in the file again, outside of its archive.
pub(super) fn is_back(now: &Document, line: &str) -> bool {
    let others: HashSet<&str> = now.other_lines().collect();
    now.contains(&Entry::of_line(line)) || line.lines().all(|part| others.contains(part))
}

#[cfg(test)]
#[path = "tests/seen.rs"]
mod tests;
