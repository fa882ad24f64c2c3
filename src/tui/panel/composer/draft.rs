//! Typed text is sacred: the draft is on disk a moment after the last key, by a thread of its own, and
//! whatever was there comes back at the next start.
//!
//! Each window has a file of its own in the folder of the workspace, so that two never overwrite each other.
//! While a window lives it holds the lock beside its file. Files without a living window are taken over by
//! the next one that starts: the newest becomes its draft, older ones are put aside.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tiller_protocol::{Message, QueueId};

/// A draft that was not changed for so long is written.
const GATHER: Duration = Duration::from_millis(150);

/// Whoever types on and on loses no more than this, whatever happens: a write costs as much as a key.
const LONGEST: Duration = Duration::from_secs(1);

/// What is kept of the composer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Draft {
    pub message: Message,
    /// Put aside by key.
    pub aside: Option<Message>,
    /// On its way back from the queue.
    pub taking: Option<(QueueId, Message)>,
    /// Sent, but the engine has not said yet that it is on disk.
    pub sent: Vec<Message>,
}

#[derive(Default)]
struct Slot {
    next: Option<Draft>,
    /// How many drafts have come.
    changes: u64,
    done: bool,
}

impl Draft {
    /// Puts the text of another window aside, behind what is there.
    fn take_in(&mut self, other: Self) {
        let blank = |m: &Message| m.text.trim().is_empty() && m.attachments.is_empty();
        let taking = other.taking.map(|(_, message)| message);
        let all = [Some(other.message), other.aside, taking].into_iter().flatten().chain(other.sent);
        for message in all.filter(|m| !blank(m)) {
            match &mut self.aside {
                Some(there) => join(there, message),
                None => self.aside = Some(message),
            }
        }
    }

    /// What was sent and perhaps never arrived: into the text, or aside where something was written since. Gives
    /// it, so that it can go again when it turns out to have arrived.
    pub(crate) fn unsent(&mut self) -> Vec<Message> {
        let sent = std::mem::take(&mut self.sent);
        let free = self.message == Message::default();
        let mut all = if free { None } else { self.aside.take() };
        for message in sent.iter().cloned() {
            match &mut all {
                Some(there) => join(there, message),
                None => all = Some(message),
            }
        }
        if free {
            self.message = all.unwrap_or_default();
        } else {
            self.aside = all;
        }
        sent
    }
}

/// Puts a message behind another.
fn join(there: &mut Message, message: Message) {
    there.text.push_str("\n\n");
    there.text.push_str(&message.text);
    there.attachments.extend(message.attachments);
}

/// Writes the latest draft to one file. Dropping it writes what is left and ends the thread.
pub(crate) struct Keeper {
    folder: PathBuf,
    /// This window's file.
    path: PathBuf,
    /// Held while this window lives.
    lock: Option<File>,
    slot: Arc<(Mutex<Slot>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Keeps drafts in `folder` (0700, made where there is none), in a file (0600) of this window's own.
    pub(crate) fn new(folder: PathBuf) -> Self {
        let path = folder.join(fresh_name());
        Self { folder, path, lock: None, slot: Arc::default(), thread: None }
    }

    /// What earlier windows left; nothing when there is none or it cannot be read. What belongs to a window
    /// that lives is left to it.
    pub(crate) fn load(&mut self) -> Draft {
        let mut left = orphans(&self.folder);
        // The newest first.
        left.sort_by_key(|o| std::cmp::Reverse(o.changed));
        let mut left = left.into_iter();
        let Some(newest) = left.next() else {
            self.lock = own_lock(&self.path);
            return Draft::default();
        };
        let mut draft = newest.draft;
        self.path = newest.path;
        self.lock = Some(newest.lock);
        let others: Vec<Orphan> = left.collect();
        if others.is_empty() {
            return draft;
        }
        let mut old = Vec::new();
        for other in others {
            draft.take_in(other.draft);
            old.push((other.path, other.lock));
        }
        // Only when it is all in one file, the others go.
        match write(&self.path, &draft) {
            Ok(()) => old.iter().for_each(|(path, _)| forget(path)),
            Err(e) => tracing::warn!("drafts could not be joined in {}: {e}", self.path.display()),
        }
        draft
    }

    /// Takes the draft over. Never waits for the disk.
    pub(crate) fn keep(&mut self, draft: Draft) {
        if self.thread.is_none() {
            let (slot, path) = (Arc::clone(&self.slot), self.path.clone());
            self.thread =
                std::thread::Builder::new().name("draft".into()).spawn(move || run(&slot, &path)).ok();
        }
        let mut s = self.slot.0.lock().unwrap_or_else(PoisonError::into_inner);
        s.changes = s.changes.wrapping_add(1);
        let before = s.next.replace(draft);
        drop(s);
        // While something waits, the thread is up already.
        if before.is_none() {
            self.slot.1.notify_one();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.slot.0.lock().unwrap_or_else(PoisonError::into_inner).done = true;
        self.slot.1.notify_one();
        if let Some(t) = self.thread.take() {
            // A writer that failed has logged why.
            let _ = t.join();
        }
        // Nothing is left to come back: the lock's file goes, too.
        if self.lock.is_some() && !self.path.exists() {
            forget(&self.path);
        }
    }
}

fn run(slot: &(Mutex<Slot>, Condvar), path: &Path) {
    let mut s = slot.0.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if s.next.is_none() {
            if s.done {
                return;
            }
            s = slot.1.wait(s).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        // It looks now and then, so that a key need not wake it.
        let first = Instant::now();
        while !s.done && first.elapsed() < LONGEST {
            let seen = s.changes;
            s = slot.1.wait_timeout_while(s, GATHER, |s| !s.done).unwrap_or_else(PoisonError::into_inner).0;
            if s.changes == seen {
                break;
            }
        }
        if let Some(draft) = s.next.take() {
            drop(s);
            if let Err(e) = write(path, &draft) {
                tracing::warn!("the draft could not be saved in {}: {e}", path.display());
            }
            s = slot.0.lock().unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A name that no other window has: process, time, and a number within the process.
fn fresh_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{}-{n}.json", time.as_millis(), std::process::id())
}

/// A draft whose window is gone.
struct Orphan {
    path: PathBuf,
    changed: std::time::SystemTime,
    draft: Draft,
    lock: File,
}

/// Drafts in `folder` that no living window holds; each is locked by us from now on.
fn orphans(folder: &Path) -> Vec<Orphan> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path());
    files.filter(|p| p.extension().is_some_and(|e| e == "json")).filter_map(orphan).collect()
}

fn orphan(path: PathBuf) -> Option<Orphan> {
    let lock = own_lock(&path)?;
    // Looked at under the lock: another window may have taken it over just now.
    let changed = std::fs::metadata(&path).and_then(|m| m.modified()).ok()?;
    // What cannot be read stays where it is, for a person to look at.
    let draft = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
    Some(Orphan { path, changed, draft, lock })
}

/// The lock beside a draft. `None`: another window has it. Where a file system has no locks, every draft is
/// anybody's, as with one window only.
fn own_lock(path: &Path) -> Option<File> {
    private_folder(path).ok()?;
    let mut options = private_options();
    let file = options.truncate(false).open(path.with_extension("lock")).ok()?;
    match file.try_lock() {
        Err(std::fs::TryLockError::WouldBlock) => None,
        Ok(()) | Err(std::fs::TryLockError::Error(_)) => Some(file),
    }
}

/// Takes a draft and its lock away. Gone already is as good.
fn forget(path: &Path) {
    let _ = std::fs::remove_file(path);
    let _ = std::fs::remove_file(path.with_extension("lock"));
}

/// Old or new, never half: a temporary file beside it, then a rename. An empty draft removes the file.
fn write(path: &Path, draft: &Draft) -> std::io::Result<()> {
    if *draft == Draft::default() {
        return match std::fs::remove_file(path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        };
    }
    let new = path.with_extension("new");
    write_private(&new, &serde_json::to_vec(draft)?)?;
    std::fs::rename(&new, path)
}

/// Writes a file that only its owner can read; makes its folder when it is not there.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    private_folder(path)?;
    private_options().truncate(true).open(path)?.write_all(bytes)
}

fn private_folder(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    path.parent().map_or(Ok(()), |dir| std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir))
}

fn private_options() -> std::fs::OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(t: &str) -> Draft {
        Draft { message: Message::text(t), ..Draft::default() }
    }

    fn files(folder: &Path) -> usize {
        std::fs::read_dir(folder).map_or(0, |d| d.flatten().count())
    }

    /// A window that typed this and is gone.
    fn left(folder: &Path, draft: Draft) {
        let mut k = Keeper::new(folder.to_owned());
        // Its own file, not what others left.
        k.lock = own_lock(&k.path);
        k.keep(draft);
    }

    #[test]
    fn what_was_typed_last_comes_back_and_an_empty_draft_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("drafts/s");
        let mut k = Keeper::new(folder.clone());
        assert_eq!(k.load(), Draft::default());
        for i in 0..500 {
            k.keep(text(&format!("typed {i}")));
        }
        drop(k);
        let mut k = Keeper::new(folder.clone());
        assert_eq!(k.load(), text("typed 499"));
        k.keep(Draft::default());
        drop(k);
        assert_eq!(files(&folder), 0);
    }

    #[test]
    fn a_draft_that_changes_on_and_on_is_written_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let mut k = Keeper::new(dir.path().to_owned());
        let end = Instant::now() + Duration::from_secs(60);
        for n in 0.. {
            k.keep(text(&format!("typed {n}")));
            if k.path.exists() {
                break;
            }
            assert!(Instant::now() < end, "nothing is on disk after {n} changes");
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }

    #[test]
    fn two_windows_do_not_touch_each_others_drafts() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = Keeper::new(dir.path().to_owned());
        assert_eq!(first.load(), Draft::default());
        first.keep(text("in the first"));
        let mut second = Keeper::new(dir.path().to_owned());
        assert_eq!(second.load(), Draft::default(), "the first one lives");
        second.keep(text("in the second"));
        let path = second.path.clone();
        drop(second);
        // Long ago, whatever the clock of the file system can tell.
        File::options().write(true).open(path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        first.keep(text("in the first, longer"));
        drop(first);
        // A third gets both: the newest to go on with, the other put aside.
        let mut third = Keeper::new(dir.path().to_owned());
        let all = third.load();
        assert_eq!(all.message, Message::text("in the first, longer"));
        assert_eq!(all.aside, Some(Message::text("in the second")));
        drop(third);
        // They are in one file now, and it comes back whole.
        let mut fourth = Keeper::new(dir.path().to_owned());
        assert_eq!(fourth.load(), all);
        assert_eq!(files(dir.path()), 2, "one draft and its lock");
    }

    #[test]
    fn whatever_windows_left_nothing_of_it_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..5 {
            let aside = (n % 2 == 0).then(|| Message::text(format!("aside {n}")));
            left(dir.path(), Draft { aside, ..text(&format!("typed {n}")) });
        }
        let mut k = Keeper::new(dir.path().to_owned());
        let all = k.load();
        let aside = all.aside.unwrap().text;
        let both = format!("{}\n{aside}", all.message.text);
        for n in 0..5 {
            assert_eq!(both.matches(&format!("typed {n}")).count(), 1, "{both}");
            assert_eq!(both.matches(&format!("aside {n}")).count(), usize::from(n % 2 == 0), "{both}");
        }
    }

    #[test]
    fn a_broken_file_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.json");
        std::fs::write(&path, b"{\"message\": 7").unwrap();
        assert_eq!(Keeper::new(dir.path().to_owned()).load(), Draft::default());
        assert!(path.exists());
    }
}
