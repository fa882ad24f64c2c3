//! A confined command while it runs: what its supervisor and the call that runs it tell each other.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use tiller_protocol::lock;

use crate::shell::confined::blocked::BlockedLog;
use crate::shell::confined::witness::{FileMark, Left, Witness};
use crate::shell::processes::forks::ForkLimit;

/// Files that would be lost. Those below `folder` are relative to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// The workspace.
    pub folder: PathBuf,
    /// Are removed already.
    pub removed: Vec<PathBuf>,
    /// Wait for the answer: one, or those of a folder that is moved away.
    pub next: Vec<PathBuf>,
}

/// Answers whether more files may be removed. Called on a thread that may wait.
pub type DeletionAnswer = Arc<dyn Fn(Deletion) -> bool + Send + Sync>;

/// Limits the deletions of a command.
#[derive(Clone)]
pub struct DeletionGuard {
    /// Files that may be lost without a question.
    pub limit: usize,
    pub answer: DeletionAnswer,
}

impl std::fmt::Debug for DeletionGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeletionGuard").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// Files that a command may remove where nothing else is set.
pub const DELETIONS: usize = 50;

/// Names the command of a shell that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandMark {
    pub number: u64,
    pub began: SystemTime,
}

/// Holds what is known of a confined command while it runs. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct CommandWatch {
    /// Holds what it was refused.
    pub blocked: BlockedLog,
    /// How many processes it may have.
    pub forks: ForkLimit,
    state: Arc<WatchState>,
}

#[derive(Debug)]
struct WatchState {
    supervised: AtomicBool,
    mark: Mutex<CommandMark>,
    guard: Mutex<Option<DeletionGuard>>,
    pauses: Mutex<Pauses>,
    attended: Mutex<Attended>,
}

/// Holds what its supervisor sees of the files that it changes.
#[derive(Debug, Default)]
struct Attended {
    /// It sees everything that is opened for writing, made, moved or removed.
    sees: bool,
    /// Of the call that the command belongs to.
    witness: Option<Witness>,
}

impl Default for WatchState {
    fn default() -> Self {
        Self {
            supervised: AtomicBool::new(false),
            mark: Mutex::new(CommandMark { number: 0, began: SystemTime::now() }),
            guard: Mutex::default(),
            pauses: Mutex::default(),
            attended: Mutex::default(),
        }
    }
}

/// Time for which the command has waited for answers.
#[derive(Clone, Copy, Debug, Default)]
struct Pauses {
    over: Duration,
    since: Option<Instant>,
}

impl CommandWatch {
    /// With this guard for its only command.
    #[must_use]
    pub fn guarded(self, guard: DeletionGuard) -> Self {
        *lock(&self.state.guard) = Some(guard);
        self
    }

    /// With this limit on its processes.
    #[must_use]
    pub fn limited(self, forks: ForkLimit) -> Self {
        Self { forks, ..self }
    }

    /// Notes that its system calls are supervised: what it is refused is known, not guessed.
    pub fn supervised(&self) {
        self.state.supervised.store(true, Ordering::Release);
    }

    /// Returns true if they are.
    pub fn is_supervised(&self) -> bool {
        self.state.supervised.load(Ordering::Acquire)
    }

    /// Notes from now on what the command changes, for a call with this witness.
    pub fn attend(&self, witness: &Witness) {
        let mut attended = lock(&self.state.attended);
        witness.program(attended.sees);
        attended.witness = Some(witness.clone());
    }

    /// Notes that its supervisor sees every change of a file.
    pub fn sees_changes(&self) {
        let mut attended = lock(&self.state.attended);
        if !std::mem::replace(&mut attended.sees, true)
            && let Some(witness) = &attended.witness
        {
            witness.supervisor();
        }
    }

    /// Notes what the command has just made of a path. `was`: what stood there before.
    pub fn changed(&self, path: &Path, left: Left, was: Option<FileMark>) {
        let witness = lock(&self.state.attended).witness.clone();
        if let Some(witness) = witness {
            witness.changed(path, left, was);
        }
    }

    /// Notes that the command has just moved something, as [`Witness::moved`] has it.
    pub fn moved(&self, names: (&Path, &Path), left: Left, file: Option<FileMark>, over: Option<FileMark>) {
        let witness = lock(&self.state.attended).witness.clone();
        if let Some(witness) = witness {
            witness.moved(names, left, file, over);
        }
    }

    /// Notes that the command has just exchanged two names, as [`Witness::exchanged`] has it.
    pub fn exchanged(&self, names: [&Path; 2], left: [Left; 2], files: [Option<FileMark>; 2]) {
        let witness = lock(&self.state.attended).witness.clone();
        if let Some(witness) = witness {
            witness.exchanged(names, left, files);
        }
    }

    /// Notes that the command has closed a file that it could write.
    pub fn closed(&self, path: &Path) {
        let witness = lock(&self.state.attended).witness.clone();
        if let Some(witness) = witness {
            witness.closed(path);
        }
    }

    /// Notes a file that the command has just opened, and in which writes of other programs are not recorded.
    pub fn not_looked_at(&self, path: &Path) {
        let witness = lock(&self.state.attended).witness.clone();
        if let Some(witness) = witness {
            witness.not_looked_at(path);
        }
    }

    /// Returns true if what the command changes is noted for a call.
    pub fn is_attended(&self) -> bool {
        lock(&self.state.attended).witness.is_some()
    }

    /// Notes that another program has written a file that the command has opened.
    pub fn written_by_others(&self, path: &Path) {
        let witness = lock(&self.state.attended).witness.clone();
        if let Some(witness) = witness {
            witness.written_by_others(path);
        }
    }

    /// A command of the shell begins. What ran beside the conversation meanwhile does not belong to it.
    pub fn begin(&self, guard: DeletionGuard, witness: &Witness) {
        self.blocked.take();
        self.attend(witness);
        let mut mark = lock(&self.state.mark);
        *mark = CommandMark { number: mark.number + 1, began: SystemTime::now() };
        *lock(&self.state.pauses) = Pauses::default();
        *lock(&self.state.guard) = Some(guard);
    }

    /// It is over: what still runs of it may lose no more files than the limit, and nothing is asked.
    pub fn end(&self) {
        *lock(&self.state.guard) = None;
    }

    /// The command that runs now, or ran last.
    pub fn command(&self) -> CommandMark {
        *lock(&self.state.mark)
    }

    /// Files that it may lose without a question.
    pub fn deletions(&self) -> usize {
        lock(&self.state.guard).as_ref().map_or(DELETIONS, |guard| guard.limit)
    }

    /// Returns true if it may lose these, and more. Waits for the answer; without anything that could answer it is a no.
    pub fn ask_deletion(&self, deletion: Deletion) -> bool {
        let Some(guard) = lock(&self.state.guard).clone() else { return false };
        lock(&self.state.pauses).since = Some(Instant::now());
        let yes = (guard.answer)(deletion);
        let mut pauses = lock(&self.state.pauses);
        if let Some(since) = pauses.since.take() {
            pauses.over += since.elapsed();
        }
        yes
    }

    /// How long it has waited for answers.
    pub fn paused(&self) -> Duration {
        let pauses = *lock(&self.state.pauses);
        pauses.over + pauses.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_answer_it_is_a_no_and_the_time_of_an_answer_is_not_the_commands() {
        let deletion = Deletion { folder: "/w".into(), removed: Vec::new(), next: vec!["a".into()] };
        let watch = CommandWatch::default();
        assert!(!watch.ask_deletion(deletion.clone()));
        assert_eq!((watch.deletions(), watch.paused()), (DELETIONS, Duration::ZERO));
        let answer: DeletionAnswer = Arc::new(|deletion| {
            std::thread::park_timeout(Duration::from_millis(40));
            deletion.next.len() == 1
        });
        let before = watch.command();
        watch.begin(DeletionGuard { limit: 3, answer }, &Witness::default());
        assert_eq!(watch.command().number, before.number + 1);
        assert!(watch.ask_deletion(deletion.clone()));
        assert!(watch.paused() >= Duration::from_millis(20));
        assert_eq!(watch.deletions(), 3);
        watch.end();
        assert!(!watch.ask_deletion(deletion), "nothing asks after the command");
    }
}
