//! The watcher's thread.

use crate::workspace::lines::PollingReason;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use tiller_protocol::lock;
use tiller_protocol::{ChangeKind, FileChange};

use super::gitwatch::Git;
use super::lines::{self, Change};
use super::pending::Pending;
use super::place::{inode, remote};
use super::rules::Rules;
use super::source::{Raw, Source, Waker, WatchRefusal};
use super::tree::{Diff, Meta, Tree};
use super::who::{Evidence, Trace};
use super::{Ask, Config, Report, Shared, Sink, outside};
use crate::git::Repository;

/// Minimum time between two walks because of lost events.
const RESCAN: Duration = Duration::from_secs(10);
/// Interval of polling: this, or a multiple of the time that a poll takes.
const POLL: Duration = Duration::from_secs(2);
const POLL_COST: u32 = 20;
/// Pause after the first event, so that many are taken at once.
const GATHER: Duration = Duration::from_millis(15);

/// The state of the watcher's thread.
pub(crate) struct Worker {
    root: Root,
    pub(super) config: Config,
    pub(super) sink: Sink,
    shared: Arc<Shared>,
    pub(super) source: Box<dyn Source>,
    pub(super) waker: Waker,
    rules: Rules,
    tree: Tree,
    pending: Pending,
    pub(super) evidence: Evidence,
    pub(super) git: Option<Git>,
    schedule: Schedule,
    /// A walk reached the watch limit and could not watch all folders.
    pub(super) full: bool,
    /// Dropped once what changed before is reported.
    waiting: Vec<SyncSender<()>>,
    /// The watcher was asked to end.
    stop: bool,
}

/// The watched folder.
struct Root {
    path: PathBuf,
    inode: Option<u64>,
    /// It was removed or replaced, and has not come back.
    gone: bool,
}

/// When the whole folder is walked next.
#[derive(Default)]
struct Schedule {
    /// The next walk because events were lost or rules changed.
    rescan: Option<Instant>,
    /// The last such walk.
    last_rescan: Option<Instant>,
    /// The next poll; `None`: the system reports changes.
    poll: Option<Instant>,
}

impl Worker {
    pub(crate) fn new(
        root: &Path,
        config: Config,
        sink: Sink,
        shared: Arc<Shared>,
        source: Box<dyn Source>,
        waker: Waker,
    ) -> Self {
        let repo = Repository::find(root);
        let work = repo.as_ref().map(|r| (r.work.as_path(), r.common.as_path()));
        let now = Instant::now();
        Self {
            root: Root { path: root.to_owned(), inode: None, gone: false },
            rules: Rules::new(root, &config.ignore, &config.own, work),
            tree: Tree::default(),
            pending: Pending::new(config.debounce),
            evidence: Evidence::default(),
            git: repo.map(|repo| Git::new(repo, now)),
            schedule: Schedule::default(),
            full: false,
            waiting: Vec::new(),
            stop: false,
            config,
            sink,
            shared,
            source,
            waker,
        }
    }

    pub(crate) fn run(mut self) {
        self.root.inode = inode(&self.root.path);
        let begun = Instant::now();
        let remote = remote(&self.root.path);
        if self.config.poll || remote {
            let why = if remote { PollingReason::Remote } else { PollingReason::Setting };
            self.walk(&self.root.path.clone(), false);
            self.start_polling(why, begun.elapsed());
        } else {
            self.walk(&self.root.path.clone(), true);
            if !self.full {
                self.watch_git();
            }
            self.answer_full(begun.elapsed());
        }
        self.note_stats(0, 0);
        (self.sink)(Report::Ready { folders: self.tree.folders(), polling: self.schedule.poll.is_some() });
        let mut raws = Vec::new();
        while !self.stop {
            let limit = self.next_due().map(|due| due.saturating_duration_since(Instant::now()));
            let limit = if raws.is_empty() { limit } else { Some(Duration::ZERO) };
            self.source.wait(limit, &mut raws);
            if !raws.is_empty() && !self.pending.in_storm() {
                // A short pause groups related events, and lets the kernel merge them.
                std::thread::park_timeout(GATHER);
                self.source.wait(Some(Duration::ZERO), &mut raws);
            }
            self.take_asks();
            let count = raws.len() as u64;
            for raw in raws.drain(..) {
                self.event(raw);
            }
            self.note_stats(count, 0);
            self.settle();
            self.look_at_git();
            self.poll();
            self.answer_full(Duration::ZERO);
            if !self.waiting.is_empty() && self.pending.is_empty() && self.schedule.rescan.is_none() {
                // Those that came meanwhile count too.
                self.source.wait(Some(Duration::ZERO), &mut raws);
                if raws.is_empty() {
                    self.waiting.clear();
                }
            }
        }
    }

    fn note_stats(&self, events: u64, rescans: u64) {
        let mut stats = lock(&self.shared.stats);
        stats.events += events;
        stats.rescans += rescans;
        stats.watches = self.source.watches();
        stats.polling = self.schedule.poll.is_some();
    }

    fn next_due(&self) -> Option<Instant> {
        let git = self.git.as_ref().and_then(Git::next_look);
        [self.pending.due(), self.schedule.rescan, self.schedule.poll, git].into_iter().flatten().min()
    }

    fn take_asks(&mut self) {
        let asks = std::mem::take(&mut *lock(&self.shared.asks));
        for (at, ask) in asks {
            match ask {
                Ask::Expect(paths, who) => self.evidence.expect(&paths, &who, at),
                Ask::Wrote(metas, who) => self.evidence.wrote(metas, &who, at),
                Ask::Shell(command, running) => self.evidence.shell(command, running, at),
                Ask::Settle(answer) => {
                    self.waiting.push(answer);
                    self.schedule.poll = self.schedule.poll.map(|_| Instant::now());
                }
                #[cfg(test)]
                Ask::Overflow => self.event(Raw::Overflow),
                Ask::Stop => self.stop = true,
            }
        }
    }

    /// Walks a folder and returns the differences. `watch`: sets watches up to the limit ([`Self::answer_full`]).
    fn walk(&mut self, folder: &Path, watch: bool) -> Vec<Diff> {
        let mut limit = false;
        let max = self.config.max_watches;
        let (source, shared) = (&mut self.source, &self.shared);
        let diffs = self.tree.walk(folder, &mut self.rules, |folder| {
            if lock(&shared.asks).iter().any(|(_, ask)| matches!(ask, Ask::Stop)) {
                return false;
            }
            if watch && !limit {
                // A folder that is already watched needs no further watch.
                let none_left = !source.has(folder) && source.watches() >= max;
                limit = none_left || source.watch(folder) == Err(WatchRefusal::Limit);
            }
            true
        });
        self.full |= limit;
        diffs
    }

    /// After a walk reached the watch limit: polls the folders that it could not watch, and reports a notice.
    fn answer_full(&mut self, cost: Duration) {
        if std::mem::take(&mut self.full) && self.schedule.poll.is_none() {
            self.start_polling(PollingReason::WatchLimit, cost);
        }
    }

    fn start_polling(&mut self, why: PollingReason, cost: Duration) {
        self.source.unwatch(Path::new("/"));
        let every = POLL.max(cost * POLL_COST);
        self.schedule.poll = Some(Instant::now() + every);
        (self.sink)(Report::Notice(lines::polling(why, every)));
    }

    fn event(&mut self, raw: Raw) {
        let now = Instant::now();
        let (path, dir, made) = match raw {
            Raw::Overflow => {
                let soonest = self.schedule.last_rescan.map_or(now, |at| at + RESCAN);
                self.schedule.rescan.get_or_insert(soonest.max(now + self.config.debounce));
                return;
            }
            Raw::Made { path, dir } => (path, dir, true),
            Raw::Changed { path } => (path, false, false),
            Raw::Gone { path, dir } => (path, dir, false),
        };
        if path == self.root.path {
            self.check_root();
            return;
        }
        if self.git_event(&path, made, now) || !path.starts_with(&self.root.path) {
            return;
        }
        if self.rules.ignored(&path, dir) {
            return;
        }
        let trace = self.evidence.trace(now);
        if dir && made {
            self.new_folder(&path, &trace, now);
        } else if dir {
            self.source.unwatch(&path);
            self.pending.mark(&path, &trace, now);
            self.pending.storm_folder(&path);
        } else {
            if path.file_name().is_some_and(Rules::is_rules)
                && let Some(folder) = path.parent()
            {
                // Newly ignored files cause no more events; files that are no longer ignored do after a walk.
                self.rules.load(folder);
                self.schedule.rescan.get_or_insert(now + self.config.debounce);
            }
            self.pending.mark(&path, &trace, now);
        }
    }

    /// A folder was created: watches it, and reports its present content as new.
    fn new_folder(&mut self, folder: &Path, trace: &Trace, now: Instant) {
        if self.schedule.poll.is_some() {
            return;
        }
        let known = self.tree.has_folder(folder);
        let diffs = self.walk(folder, true);
        for diff in &diffs {
            // Restores the last known state, so that settling finds the difference again.
            self.tree.set(&diff.path, diff.before);
            self.pending.mark(&diff.path, trace, now);
        }
        if self.pending.in_storm() {
            for below in self.tree.below(folder) {
                self.pending.storm_folder(&below);
            }
        }
        tracing::trace!(folder = %folder.display(), known, files = diffs.len(), "a folder came");
    }

    fn check_root(&mut self) {
        let there = inode(&self.root.path);
        if there.is_some() && there == self.root.inode {
            return;
        }
        if !self.root.gone {
            self.root.gone = true;
            (self.sink)(Report::Notice(lines::root_gone(&self.root.path)));
            self.source.unwatch(&self.root.path.clone());
        }
        // Polls for its return until then.
        self.schedule.poll = Some(Instant::now() + POLL);
    }

    /// Reports the settled changes.
    fn settle(&mut self) {
        let now = Instant::now();
        let mut changes = Vec::new();
        let rested = self.pending.take(now);
        for (path, trace) in rested.paths {
            if self.tree.has_folder(&path) && !path.is_dir() {
                let gone = self.tree.remove(&path);
                changes.extend(gone.into_iter().map(|diff| (diff, trace.clone())));
                continue;
            }
            let meta = Meta::of(&path);
            let before = self.tree.set(&path, meta);
            if before != meta {
                changes.push((Diff { path, before, now: meta }, trace));
            }
        }
        if let Some(storm) = rested.storm {
            changes.extend(self.after_storm(storm.folders).into_iter().map(|d| (d, storm.trace.clone())));
        }
        if self.schedule.rescan.is_some_and(|at| now >= at) && self.pending.is_empty() {
            self.schedule.rescan = None;
            self.schedule.last_rescan = Some(now);
            self.note_stats(0, 1);
            let trace = self.evidence.trace(now);
            let watch = self.schedule.poll.is_none();
            let diffs = self.walk(&self.root.path.clone(), watch);
            changes.extend(diffs.into_iter().map(|d| (d, trace.clone())));
        } else if self.schedule.rescan.is_some_and(|at| now >= at) {
            // Not while changes are arriving.
            self.schedule.rescan = Some(now + self.config.debounce);
        }
        self.report(changes);
    }

    fn after_storm(&mut self, folders: Option<Vec<PathBuf>>) -> Vec<Diff> {
        let watch = self.schedule.poll.is_none();
        let Some(folders) = folders else { return self.walk(&self.root.path.clone(), watch) };
        let mut diffs = Vec::new();
        for folder in folders {
            if !folder.is_dir() {
                diffs.extend(self.tree.remove(&folder));
                continue;
            }
            if self.rules.ignored_deep(&folder, true) {
                continue;
            }
            for inner in self.tree.look(&folder, &mut self.rules, &mut diffs).unwrap_or_default() {
                if !self.tree.has_folder(&inner) {
                    diffs.extend(self.walk(&inner, watch));
                }
            }
        }
        diffs
    }

    fn report(&mut self, changes: Vec<(Diff, Trace)>) {
        if changes.is_empty() {
            return;
        }
        // A tool announces a file before it writes it: its announcement is processed first.
        self.take_asks();
        let changes = self.keep_rested(changes);
        // Texts are read for a small number of changes only.
        let few = changes.len() <= lines::SINGLE;
        let mut done = Vec::with_capacity(changes.len());
        for (diff, trace) in changes {
            let (who, during) = self.evidence.judge(&diff.path, diff.now, &trace);
            lock(&self.shared.log).note(&diff.path, &who, during.clone());
            let lines = if few { self.count_lines(&diff) } else { None };
            done.push(Change { diff, who, lines, during });
        }
        if let Some(git) = &mut self.git {
            git.touched(Instant::now());
        }
        let told = lines::word(&self.root.path, self.config.clock.now(), done);
        self.tell(told);
    }

    /// Leaves out announced files that were written again after they were examined: the stored state describes the
    /// newer content. They are attributed once they settle.
    fn keep_rested(&mut self, mut changes: Vec<(Diff, Trace)>) -> Vec<(Diff, Trace)> {
        let now = Instant::now();
        changes.retain(|(diff, trace)| {
            let rested = !self.evidence.announced(&diff.path) || Meta::of(&diff.path) == diff.now;
            if !rested {
                self.tree.set(&diff.path, diff.before);
                self.pending.mark(&diff.path, trace, now);
            }
            rested
        });
        changes
    }

    fn count_lines(&self, diff: &Diff) -> Option<(u32, u32)> {
        let new = lines::text(&diff.path);
        let old = lock(&self.shared.texts).newest(&diff.path);
        if let Some(new) = &new {
            let mut texts = lock(&self.shared.texts);
            texts.put(&diff.path, new.clone());
            if diff.before.is_none() {
                texts.born(&diff.path);
            }
        }
        match (old, new, diff.before) {
            (Some(old), Some(new), _) => Some(outside::count(&old, &new)),
            (None, Some(new), None) => Some(outside::count("", &new)),
            (Some(old), None, _) if diff.now.is_none() => Some(outside::count(&old, "")),
            _ => None,
        }
    }

    pub(super) fn tell(&self, mut told: Vec<FileChange>) {
        if self.shared.paused.load(Ordering::Acquire) {
            return;
        }
        let muted = lock(&self.shared.muted);
        told.retain(|c| {
            c.kind == ChangeKind::Git || !muted.iter().any(|m| Path::new(&c.path).starts_with(m))
        });
        drop(muted);
        if !told.is_empty() {
            (self.sink)(Report::Changes(told));
        }
    }

    fn poll(&mut self) {
        let begun = Instant::now();
        if self.schedule.poll.is_none_or(|at| begun < at) {
            return;
        }
        if self.root.gone {
            match inode(&self.root.path) {
                None => {
                    self.schedule.poll = Some(begun + POLL);
                    return;
                }
                back => {
                    self.root.gone = false;
                    self.root.inode = back;
                    self.schedule.poll = None;
                    (self.sink)(Report::Notice(lines::root_back(&self.root.path)));
                    if self.config.poll {
                        self.schedule.poll = Some(begun + POLL);
                        return;
                    }
                    self.walk(&self.root.path.clone(), true);
                    if !self.full {
                        self.watch_git();
                    }
                    return;
                }
            }
        }
        let trace = self.evidence.trace(begun);
        let diffs = self.walk(&self.root.path.clone(), false);
        if inode(&self.root.path).is_none() {
            self.check_root();
            return;
        }
        self.report(diffs.into_iter().map(|d| (d, trace.clone())).collect());
        if let Some(git) = &mut self.git {
            git.polled(begun);
        }
        self.schedule.poll = Some(Instant::now() + POLL.max(begun.elapsed() * POLL_COST));
    }
}
