//! Files of downloads that no agent has: they ended before a page reported them, or the agent's tabs were closed. Mostly the page
//! reports one a moment later; else the file is removed.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tiller_protocol::lock;
use tokio::sync::Notify;
use tokio::time::{Duration, Instant, timeout_at};

/// Time after which a download that no page has reported is no agent's.
pub(super) const UNKNOWN: Duration = Duration::from_secs(5);
/// Ended downloads without a page that wait for one.
const WAITING: usize = 64;

/// Downloads that no agent has.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    known: Mutex<Known>,
    /// Notified when there is a further one.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Known {
    /// Where the browser writes downloads.
    folders: BTreeSet<PathBuf>,
    /// Their names there and when they ended, the first to end first.
    waiting: VecDeque<(String, Instant)>,
    /// The browser has ended: no page will report one.
    over: bool,
}

impl Orphans {
    /// Takes in where the browser writes downloads.
    pub(super) fn folder(&self, folder: &Path) {
        lock(&self.known).folders.insert(folder.to_owned());
    }

    /// Takes in a download. `id`: its name as well.
    pub(super) fn add(&self, id: &str, now: Instant) {
        // Of no other form are the browser's names.
        if id.is_empty() || !id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            return;
        }
        let over = {
            let mut known = lock(&self.known);
            known.waiting.retain(|(other, _)| other != id);
            known.waiting.push_back((id.to_owned(), now));
            known.over
        };
        if over {
            self.remove(now);
        }
        self.changed.notify_waiters();
    }

    /// Notes that a page has reported a download.
    pub(crate) fn claim(&self, id: &str) {
        lock(&self.known).waiting.retain(|(other, _)| other != id);
    }

    /// When the next one is to be removed; `None`: there is none.
    pub(super) fn next(&self) -> Option<Instant> {
        let known = lock(&self.known);
        let (_, since) = known.waiting.front()?;
        Some(if known.waiting.len() > WAITING { *since } else { *since + UNKNOWN })
    }

    /// Waits until one is to be removed.
    pub(super) async fn due(&self) {
        loop {
            let changed = self.changed.notified();
            let Some(next) = self.next() else {
                changed.await;
                continue;
            };
            if timeout_at(next, changed).await.is_err() {
                return;
            }
        }
    }

    /// Removes the files that have waited for too long. Blocks.
    pub(super) fn remove(&self, now: Instant) {
        let files: Vec<PathBuf> = {
            let mut known = lock(&self.known);
            let mut names = Vec::new();
            while let Some((_, since)) = known.waiting.front()
                && (known.over || known.waiting.len() > WAITING || now.duration_since(*since) >= UNKNOWN)
            {
                names.extend(known.waiting.pop_front().map(|(name, _)| name));
            }
            names.iter().flat_map(|name| known.folders.iter().map(move |folder| folder.join(name))).collect()
        };
        for file in files {
            // It is in one of the folders, and the browser may have removed it.
            let _ = std::fs::remove_file(file);
        }
    }

    /// Notes that the browser has ended, and removes what is left. Blocks.
    pub(super) fn end(&self) {
        lock(&self.known).over = true;
        self.remove(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_is_given_to_its_page_or_removed() {
        let folder = tempfile::tempdir().unwrap();
        let there = |id: &str| folder.path().join(id).exists();
        let orphans = Orphans::default();
        orphans.folder(folder.path());
        let begin = Instant::now();
        let end = |id: &str, at: Instant| {
            std::fs::write(folder.path().join(id), "x").unwrap();
            orphans.add(id, at);
        };
        end("a-1", begin);
        end("b-2", begin + UNKNOWN / 2);
        orphans.claim("a-1");
        assert_eq!(orphans.next(), Some(begin + UNKNOWN * 3 / 2));
        orphans.remove(begin + UNKNOWN);
        assert!(there("a-1") && there("b-2"), "its page has it, and the other may get one");
        orphans.remove(begin + UNKNOWN * 2);
        assert!(there("a-1") && !there("b-2"));
        assert_eq!(orphans.next(), None);
        // Their number is bounded.
        for n in 0..200 {
            end(&n.to_string(), begin);
        }
        assert_eq!(orphans.next(), Some(begin), "at once");
        orphans.remove(begin);
        assert!(!there("135") && there("136") && there("199"));
        // The browser's names lead to no other folder.
        let out = tempfile::NamedTempFile::new_in(folder.path().parent().unwrap()).unwrap();
        orphans.add(&format!("../{}", out.path().file_name().unwrap().to_string_lossy()), begin);
        // With the browser all go, and those that come behind it.
        orphans.end();
        assert!(out.path().exists() && !there("199"));
        end("c-3", Instant::now());
        assert!(!there("c-3"));
    }
}
