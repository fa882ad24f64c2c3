//! Reports changes of files in one small folder: settings, keys, themes. Workspaces use [`crate::workspace`].

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

/// Editors write in several steps; a change is reported after this time without another one.
const QUIET: Duration = Duration::from_millis(120);

/// Watches a folder until it is dropped.
#[derive(Debug)]
pub struct Folder {
    // Dropped first: it holds the only sender, so the thread ends.
    watcher: Option<RecommendedWatcher>,
    thread: Option<JoinHandle<()>>,
}

impl Folder {
    /// Watches `folder` and everything below it. `matters` selects paths (absolute); `tell` runs on a separate thread,
    /// once for a group of changes.
    ///
    /// # Errors
    /// When the folder cannot be watched, as text.
    pub fn watch(
        folder: &Path,
        matters: impl Fn(&Path) -> bool + Send + 'static,
        tell: impl Fn() + Send + 'static,
    ) -> Result<Self, String> {
        Self::watch_as(folder, RecursiveMode::Recursive, matters, tell)
    }

    /// As [`Self::watch`], without the folders below `folder`.
    ///
    /// # Errors
    /// As [`Self::watch`].
    pub fn watch_flat(
        folder: &Path,
        matters: impl Fn(&Path) -> bool + Send + 'static,
        tell: impl Fn() + Send + 'static,
    ) -> Result<Self, String> {
        Self::watch_as(folder, RecursiveMode::NonRecursive, matters, tell)
    }

    fn watch_as(
        folder: &Path,
        mode: RecursiveMode,
        matters: impl Fn(&Path) -> bool + Send + 'static,
        tell: impl Fn() + Send + 'static,
    ) -> Result<Self, String> {
        // Symbolic links are resolved, as in the paths of events.
        let folder: PathBuf =
            folder.canonicalize().map_err(|e| format!("{} cannot be watched: {e}", folder.display()))?;
        // A capacity of one is enough, since only the fact of a change is reported. `watcher` holds the sender, the
        // thread the receiver; the thread ends when the sender is dropped.
        let (tx, rx) = sync_channel::<()>(1);
        let hear = move |event: notify::Result<notify::Event>| {
            let changed = match &event {
                // Read accesses, also Tiller's own, are not reported.
                Ok(e) => !matches!(e.kind, EventKind::Access(_)) && e.paths.iter().any(|p| matters(p)),
                Err(_) => true,
            };
            if changed {
                // Full: a report is pending anyway.
                let _ = tx.try_send(());
            }
        };
        let words = |e: notify::Error| format!("{} cannot be watched: {e}", folder.display());
        let mut watcher = notify::recommended_watcher(hear).map_err(words)?;
        watcher.watch(&folder, mode).map_err(words)?;
        let thread = std::thread::Builder::new()
            .name("tiller-folder".into())
            .spawn(move || run(&rx, tell))
            .map_err(|e| format!("no thread could be started: {e}"))?;
        Ok(Self { watcher: Some(watcher), thread: Some(thread) })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.watcher = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(rx: &Receiver<()>, tell: impl Fn()) {
    while rx.recv().is_ok() {
        loop {
            match rx.recv_timeout(QUIET) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        tell();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "polls with a deadline")]
    fn changes_that_matter_are_told_and_reading_is_not() {
        let tmp = tempfile::tempdir().unwrap();
        let told = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&told);
        let watch = Folder::watch(
            tmp.path(),
            |p| p.extension().is_some_and(|e| e == "toml"),
            move || {
                count.fetch_add(1, Ordering::SeqCst);
            },
        )
        .unwrap();
        let until = |n: usize| {
            let end = Instant::now() + Duration::from_secs(90);
            while told.load(Ordering::SeqCst) < n {
                assert!(Instant::now() < end, "change {n} was not told");
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        std::fs::write(tmp.path().join("keys.toml"), "a = 1").unwrap();
        until(1);
        // Replaced in one step, as editors do.
        std::fs::write(tmp.path().join("next"), "a = 2").unwrap();
        std::fs::rename(tmp.path().join("next"), tmp.path().join("keys.toml")).unwrap();
        until(2);
        // In a folder that was made later.
        std::fs::create_dir(tmp.path().join("themes")).unwrap();
        let before = told.load(Ordering::SeqCst);
        let end = Instant::now() + Duration::from_secs(90);
        while told.load(Ordering::SeqCst) == before {
            assert!(Instant::now() < end, "themes are watched");
            std::fs::write(tmp.path().join("themes/x.toml"), "b = 1").unwrap();
            std::thread::sleep(Duration::from_millis(200));
        }
        drop(watch);
        let last = told.load(Ordering::SeqCst);
        std::fs::write(tmp.path().join("keys.toml"), "a = 3").unwrap();
        assert_eq!(told.load(Ordering::SeqCst), last);
    }
}
