//! Keeps the draft on disk: a thread writes it a moment after the last key, and it is restored at the next start.
//!
//! Each window has a file of its own in the folder of the workspace, so that two never overwrite each other. While a
//! window is open it holds the lock beside its file. Files without a window are taken over by the next window that opens:
//! the newest becomes its draft, older ones are put aside.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};
use tiller_protocol::{Message, QueueId};

use super::pictures;
use crate::app::saver::{Persistent, Saver, own_lock, write};

/// The state of the composer that is kept.
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
    /// Written earlier and neither sent nor cleared, oldest first.
    pub unsent: Vec<Message>,
}

impl Persistent for Draft {
    fn to_file(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        let mut stored = self.clone();
        pictures::store(path, stored.messages())?;
        Ok(serde_json::to_vec(&stored)?)
    }

    fn sweep(&self, path: &Path) {
        pictures::sweep(path, self.clone().messages());
    }

    /// A message that was sent, and an emptied composer: on disk it would still be the text, and could be sent again.
    fn urgent(&self) -> bool {
        !self.sent.is_empty() || self.message == Message::default()
    }
}

impl Draft {
    fn messages(&mut self) -> impl Iterator<Item = &mut Message> {
        let taking = self.taking.as_mut().map(|(_, message)| message);
        [Some(&mut self.message), self.aside.as_mut(), taking]
            .into_iter()
            .flatten()
            .chain(&mut self.sent)
            .chain(&mut self.unsent)
    }

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
        // The other window is older.
        self.unsent.splice(0..0, other.unsent);
    }

    /// Moves messages that may never have arrived into the text, or aside if something was written since. Returns them,
    /// so that they can be removed again when it turns out that they arrived.
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
pub(crate) struct DraftStore {
    folder: PathBuf,
    /// This window's file.
    path: PathBuf,
    /// Held while this window is open.
    lock: Option<File>,
    /// Writes to `path`; begun with the first draft.
    saver: Option<Saver<Draft>>,
}

impl DraftStore {
    /// Keeps drafts in `folder` (0700, made where there is none), in a file (0600) of this window's own.
    pub(crate) fn new(folder: PathBuf) -> Self {
        let path = folder.join(fresh_name());
        Self { folder, path, lock: None, saver: None }
    }

    /// Loads what earlier windows left; empty when there is nothing or it cannot be read. Files of open windows are not
    /// touched.
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
        let others: Vec<OrphanDraft> = left.collect();
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
            Err(e) => tracing::warn!("Drafts could not be merged in {}: {e}", self.path.display()),
        }
        draft
    }

    /// Takes the draft over. Never waits for the disk.
    pub(crate) fn keep(&mut self, draft: Draft) {
        self.saver.get_or_insert_with(|| Saver::new(self.path.clone())).save(draft);
    }
}

impl Drop for DraftStore {
    fn drop(&mut self) {
        // The last draft is written first.
        drop(self.saver.take());
        // Nothing is left to come back: the lock's file goes, too.
        if self.lock.is_some() && !self.path.exists() {
            forget(&self.path);
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

/// The draft of a window that has ended.
struct OrphanDraft {
    path: PathBuf,
    changed: std::time::SystemTime,
    draft: Draft,
    lock: File,
}

/// Drafts in `folder` that no open window holds. Each is locked for this window from now on.
fn orphans(folder: &Path) -> Vec<OrphanDraft> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path());
    files.filter(|p| p.extension().is_some_and(|e| e == "json")).filter_map(orphan).collect()
}

fn orphan(path: PathBuf) -> Option<OrphanDraft> {
    let lock = own_lock(&path)?;
    // Looked at under the lock: another window may have taken it over just now.
    let changed = std::fs::metadata(&path).and_then(|m| m.modified()).ok()?;
    // What cannot be read stays where it is, for a person to look at.
    let mut draft: Draft = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
    pictures::load(&path, draft.messages());
    Some(OrphanDraft { path, changed, draft, lock })
}

/// Removes a draft and its lock, if they exist.
fn forget(path: &Path) {
    let _ = std::fs::remove_file(path);
    pictures::stored(path).iter().for_each(|file| drop(std::fs::remove_file(file)));
    let _ = std::fs::remove_file(path.with_extension("lock"));
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn text(t: &str) -> Draft {
        Draft { message: Message::text(t), ..Draft::default() }
    }

    fn files(folder: &Path) -> usize {
        std::fs::read_dir(folder).map_or(0, |d| d.flatten().count())
    }

    /// A window that typed this and is gone.
    fn left(folder: &Path, draft: Draft) {
        let mut k = DraftStore::new(folder.to_owned());
        // Its own file, not what others left.
        k.lock = own_lock(&k.path);
        k.keep(draft);
    }

    #[test]
    fn what_was_typed_last_comes_back_and_an_empty_draft_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("drafts/s");
        let mut k = DraftStore::new(folder.clone());
        assert_eq!(k.load(), Draft::default());
        for i in 0..500 {
            k.keep(text(&format!("typed {i}")));
        }
        drop(k);
        let mut k = DraftStore::new(folder.clone());
        assert_eq!(k.load(), text("typed 499"));
        k.keep(Draft::default());
        drop(k);
        assert_eq!(files(&folder), 0);
    }

    #[test]
    fn a_draft_that_changes_on_and_on_is_written_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let mut k = DraftStore::new(dir.path().to_owned());
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
        let mut first = DraftStore::new(dir.path().to_owned());
        assert_eq!(first.load(), Draft::default());
        first.keep(text("in the first"));
        let mut second = DraftStore::new(dir.path().to_owned());
        assert_eq!(second.load(), Draft::default(), "the first one lives");
        second.keep(text("in the second"));
        let path = second.path.clone();
        drop(second);
        // Long ago, whatever the clock of the file system can tell.
        File::options().write(true).open(path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        first.keep(text("in the first, longer"));
        drop(first);
        // A third gets both: the newest to go on with, the other put aside.
        let mut third = DraftStore::new(dir.path().to_owned());
        let all = third.load();
        assert_eq!(all.message, Message::text("in the first, longer"));
        assert_eq!(all.aside, Some(Message::text("in the second")));
        drop(third);
        // They are in one file now, and it comes back whole.
        let mut fourth = DraftStore::new(dir.path().to_owned());
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
        let mut k = DraftStore::new(dir.path().to_owned());
        let all = k.load();
        let aside = all.aside.unwrap().text;
        let both = format!("{}\n{aside}", all.message.text);
        for n in 0..5 {
            assert_eq!(both.matches(&format!("typed {n}")).count(), 1, "{both}");
            assert_eq!(both.matches(&format!("aside {n}")).count(), usize::from(n % 2 == 0), "{both}");
        }
    }

    #[test]
    fn a_picture_is_stored_once_and_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let picture = |n: char| {
            let data: String = std::iter::repeat_n(n, 200_000).collect();
            let (label, media_type) = (format!("[image {n}]"), "image/png".into());
            tiller_protocol::Attachment::Image { label, media_type, data: data.into(), width: 1, height: 1 }
        };
        let with = |text: &str, of: &[char]| {
            let attachments = of.iter().map(|n| picture(*n)).collect();
            Draft { message: Message { attachments, ..Message::text(text) }, ..Draft::default() }
        };
        let size = |ending: &str| -> Vec<u64> {
            let files = std::fs::read_dir(dir.path()).unwrap().flatten();
            let these = files.filter(|f| f.path().extension().is_some_and(|e| e == ending));
            these.map(|f| f.metadata().unwrap().len()).collect()
        };
        let mut k = DraftStore::new(dir.path().to_owned());
        k.load();
        let stamp = |k: &DraftStore| pictures::stored(&k.path)[0].metadata().unwrap().modified().unwrap();
        write(&k.path, &with("one", &['A'])).unwrap();
        let first = stamp(&k);
        write(&k.path, &with("one two", &['A'])).unwrap();
        assert_eq!(stamp(&k), first, "it is written once");
        assert!(size("json")[0] < 1000 && size("picture") == [200_000]);
        // Two windows, and what is left of both.
        let mut other = DraftStore::new(dir.path().to_owned());
        assert_eq!(other.load(), Draft::default());
        other.keep(with("other", &['B', 'C']));
        drop(other);
        drop(k);
        let mut k = DraftStore::new(dir.path().to_owned());
        let both = k.load();
        let aside = both.aside.clone().unwrap();
        let all: Vec<_> = both.message.attachments.iter().chain(&aside.attachments).cloned().collect();
        let mut names: Vec<String> = all.iter().map(|a| a.label().to_owned()).collect();
        names.sort();
        assert_eq!(names, ["[image A]", "[image B]", "[image C]"]);
        for one in all {
            let name = one.label().chars().nth(7).unwrap();
            assert_eq!(one, picture(name));
        }
        assert_eq!(size("picture"), [200_000; 3]);
        // What is taken out or sent leaves nothing.
        k.keep(with("one", &['B']));
        drop(k);
        assert_eq!(size("picture"), [200_000]);
        let mut k = DraftStore::new(dir.path().to_owned());
        assert_eq!(k.load(), with("one", &['B']));
        k.keep(Draft::default());
        drop(k);
        assert_eq!(files(dir.path()), 0);
    }

    #[test]
    fn a_picture_is_read_once_for_its_name_however_often_the_draft_is_saved() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        let data: std::sync::Arc<str> = "A".repeat(200_000).into();
        let picture = tiller_protocol::Attachment::Image {
            label: "[image 1]".into(),
            media_type: "image/png".into(),
            data,
            width: 1,
            height: 1,
        };
        let draft = |text: &str| Draft {
            message: Message { attachments: vec![picture.clone()], ..Message::text(text) },
            ..Draft::default()
        };
        let before = pictures::HASHED.get();
        for text in ["one", "one two", "one two three"] {
            let draft = draft(text);
            draft.to_file(&path).unwrap();
            draft.sweep(&path);
        }
        assert_eq!(pictures::HASHED.get() - before, 1);
        assert_eq!(pictures::stored(&path).len(), 1);
    }

    #[test]
    fn a_draft_of_an_older_program_holds_its_pictures() {
        let dir = tempfile::tempdir().unwrap();
        let data = "QUJD".repeat(10_000);
        let old = format!(
            "{{\"message\": {{\"text\": \"[image 1]\", \"attachments\": [{{\"kind\": \"image\", \"label\": \
             \"[image 1]\", \"media_type\": \"image/png\", \"data\": \"{data}\", \"width\": 1, \"height\": 1}}]}}}}"
        );
        std::fs::write(dir.path().join("1-2-3.json"), old).unwrap();
        let draft = DraftStore::new(dir.path().to_owned()).load();
        let tiller_protocol::Attachment::Image { data: read, .. } = &draft.message.attachments[0] else {
            panic!()
        };
        assert_eq!(**read, *data);
    }

    #[test]
    fn a_broken_file_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.json");
        std::fs::write(&path, b"{\"message\": 7").unwrap();
        assert_eq!(DraftStore::new(dir.path().to_owned()).load(), Draft::default());
        assert!(path.exists());
    }
}
