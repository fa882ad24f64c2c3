//! When the worker examines git: which files of the git folder matter, and how often to look.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tiller_protocol::lock;
use tiller_protocol::{ChangeKind, FileChange, Who};

use super::Report;
use super::gitstate::{self, Facts};
use super::source::WatchRefusal;
use super::tree::Meta;
use super::who::runs_git;
use super::worker::Worker;
use crate::git::Repository;

/// Delay between the last event and an examination of git; and the pause after a slow one.
const GIT_QUIET: Duration = Duration::from_millis(250);
const GIT_COST: u32 = 10;
/// Files of the git folder that matter.
const GIT_FILES: &[&str] =
    &["HEAD", "index", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "packed-refs"];

/// Examines git, on a separate thread for each examination.
pub(super) struct Git {
    repo: Repository,
    facts: Option<Facts>,
    /// When to examine next.
    due: Option<Instant>,
    /// Not before this time.
    not_before: Instant,
    /// Written by the examining thread, which then wakes the worker.
    result: Arc<Mutex<Option<(Facts, Duration)>>>,
    looking: bool,
    /// Stamps of the index, `HEAD` and its log at the last poll.
    signs: [Option<Meta>; 3],
}

impl Git {
    pub(super) fn new(repo: Repository, now: Instant) -> Self {
        Self {
            repo,
            facts: None,
            due: Some(now),
            not_before: now,
            result: Arc::default(),
            looking: false,
            signs: [None; 3],
        }
    }

    /// Time of the next examination.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.due.filter(|_| !self.looking).map(|due| due.max(self.not_before))
    }

    /// Files of the work tree changed.
    pub(super) fn touched(&mut self, now: Instant) {
        self.due.get_or_insert(now + GIT_QUIET * 2);
    }

    /// Where the system reports no changes: checks a few files for changes, which is cheap.
    pub(super) fn polled(&mut self, now: Instant) {
        let signs = ["index", "HEAD", "logs/HEAD"].map(|name| Meta::of(&self.repo.dir.join(name)));
        if std::mem::replace(&mut self.signs, signs) != signs {
            self.due = Some(now);
        }
    }
}

impl Worker {
    /// Watches the few folders of git that change with checkouts and commits.
    pub(super) fn watch_git(&mut self) {
        let Some(git) = &self.git else { return };
        let (dir, common) = (git.repo.dir.clone(), git.repo.common.clone());
        let mut open = vec![common.join("refs/heads")];
        let _ = self.watch_gits(&dir);
        let _ = self.watch_gits(&common);
        while let Some(folder) = open.pop() {
            if self.watch_gits(&folder).is_err() {
                continue;
            }
            let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            open.extend(entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
        }
    }

    /// Watches a folder of git's. When the watch limit is reached it is polled, as are folders of the work tree.
    fn watch_gits(&mut self, folder: &Path) -> Result<(), WatchRefusal> {
        let none_left = !self.source.has(folder) && self.source.watches() >= self.config.max_watches;
        let watched = if none_left { Err(WatchRefusal::Limit) } else { self.source.watch(folder) };
        self.full |= watched == Err(WatchRefusal::Limit);
        watched
    }

    /// Handles an event in the git folder. True when the path is git's and needs nothing else.
    pub(super) fn git_event(&mut self, path: &Path, made: bool, now: Instant) -> bool {
        let Some(git) = &mut self.git else { return false };
        let inside = path.strip_prefix(&git.repo.dir).or_else(|_| path.strip_prefix(&git.repo.common));
        let Ok(inside) = inside else { return false };
        let name = inside.to_string_lossy();
        if name == "index.lock" {
            // Git holds this lock while it changes the work tree.
            self.evidence.git(made, now);
        }
        let name = name.strip_suffix(".lock").unwrap_or(&name);
        if GIT_FILES.contains(&name) || name.starts_with("refs/") || name.starts_with("rebase-") {
            git.due = Some(now + GIT_QUIET);
        }
        if made && name.starts_with("refs/heads/") && path.is_dir() {
            let _ = self.watch_gits(path);
        }
        true
    }

    pub(super) fn look_at_git(&mut self) {
        let now = Instant::now();
        let Some(git) = &mut self.git else { return };
        let result = lock(&git.result).take();
        if let Some((facts, took)) = result {
            git.looking = false;
            git.not_before = now + took * GIT_COST;
            let news = git.facts.as_ref().map(|before| gitstate::news(before, &facts)).unwrap_or_default();
            if git.facts.as_ref().is_none_or(|before| before.state != facts.state) {
                (self.sink)(Report::Git(facts.state.clone()));
            }
            git.facts = Some(facts);
            if !news.is_empty() {
                // A git command of the person beside an agent's command that does not run git is the person's.
                let shell = self.evidence.trace(now).shell;
                let shell = shell.into_iter().find(|command| runs_git(&command.what));
                let during = shell.as_ref().map(|command| command.what.to_string());
                let who = shell.map_or(Who::Git, |command| Who::Shell { agent: command.agent });
                let time = self.config.clock.now();
                let line = |path| FileChange {
                    time,
                    kind: ChangeKind::Git,
                    path,
                    who: who.clone(),
                    count: 1,
                    lines: None,
                    during: during.clone(),
                };
                self.tell(news.into_iter().map(line).collect());
            }
        }
        let Some(git) = &mut self.git else { return };
        let due = git.due.is_some_and(|due| now >= due.max(git.not_before));
        if !due || git.looking {
            return;
        }
        git.due = None;
        let (repo, before, result) = (git.repo.clone(), git.facts.clone(), git.result.clone());
        let waker = self.waker.clone();
        // The thread ends within git's time limit; it is not joined.
        let thread = std::thread::Builder::new().name("tiller-git".into()).stack_size(256 << 10);
        git.looking = thread
            .spawn(move || {
                let begun = Instant::now();
                let facts = gitstate::look(&repo, before.as_ref());
                *lock(&result) = Some((facts, begun.elapsed()));
                waker();
            })
            .is_ok();
    }
}
