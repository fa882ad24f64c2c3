//! Sources of change events. On Linux inotify is used directly, because `notify` 8 also listens to opens: Tiller's own
//! reading would then fill the kernel's queue (16,384 events), and the rescan after the overflow would fill it again.
//! Elsewhere `notify` is used.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A raw event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Raw {
    /// Created, or moved here.
    Made { path: PathBuf, dir: bool },
    /// Written and closed, or changed in some other way.
    Changed { path: PathBuf },
    /// Deleted, or moved away.
    Gone { path: PathBuf, dir: bool },
    /// Events were lost.
    Overflow,
}

/// Why a watch was not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchRefusal {
    /// The system allows no more watches.
    Limit,
    /// The folder does not exist any more, or may not be read.
    Other,
}

/// Wakes the thread that waits in [`Source::wait`].
pub(crate) type Waker = Arc<dyn Fn() + Send + Sync>;

/// A source of events. Owned by the watcher's thread; only the waker leaves it.
pub(crate) trait Source: Send {
    /// Watches one folder, not what is below it. Repeating it is harmless.
    fn watch(&mut self, folder: &Path) -> Result<(), WatchRefusal>;
    /// Whether a folder is watched.
    fn has(&self, folder: &Path) -> bool;
    /// Ends the watches at and below a folder.
    fn unwatch(&mut self, folder: &Path);
    /// Number of watches.
    fn watches(&self) -> usize;
    /// Waits for events, for the waker or for `limit`, and appends the events.
    fn wait(&mut self, limit: Option<Duration>, out: &mut Vec<Raw>);
}

#[cfg(target_os = "linux")]
pub(crate) use linux::open;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::open;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::ffi::OsStr;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;

    use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
    use rustix::io::Errno;

    use super::{Arc, Duration, Path, PathBuf, Raw, Source, Waker, WatchRefusal};

    /// Maximum number of events taken at once, so that a storm does not delay timers.
    const BATCH: usize = 8192;

    struct Inotify {
        fd: OwnedFd,
        wake: Arc<OwnedFd>,
        by_id: HashMap<i32, PathBuf>,
        by_path: HashMap<PathBuf, i32>,
    }

    /// Opens the source.
    pub(crate) fn open() -> std::io::Result<(Box<dyn Source>, Waker)> {
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let waker = wake.clone();
        let source = Inotify { fd, wake, by_id: HashMap::new(), by_path: HashMap::new() };
        Ok((Box::new(source), Arc::new(move || _ = rustix::io::write(&waker, &1u64.to_ne_bytes()))))
    }

    impl Source for Inotify {
        fn watch(&mut self, folder: &Path) -> Result<(), WatchRefusal> {
            let what = WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR
                | WatchFlags::DONT_FOLLOW
                | WatchFlags::EXCL_UNLINK;
            match inotify::add_watch(&self.fd, folder, what) {
                Ok(id) => {
                    if let Some(old) = self.by_id.insert(id, folder.to_owned())
                        && old != folder
                    {
                        self.by_path.remove(&old);
                    }
                    self.by_path.insert(folder.to_owned(), id);
                    Ok(())
                }
                Err(Errno::NOSPC | Errno::NOMEM) => Err(WatchRefusal::Limit),
                Err(_) => Err(WatchRefusal::Other),
            }
        }

        fn has(&self, folder: &Path) -> bool {
            self.by_path.contains_key(folder)
        }

        fn unwatch(&mut self, folder: &Path) {
            let gone: Vec<PathBuf> = self.by_path.keys().filter(|p| p.starts_with(folder)).cloned().collect();
            for path in gone {
                if let Some(id) = self.by_path.remove(&path) {
                    self.by_id.remove(&id);
                    let _ = inotify::remove_watch(&self.fd, id);
                }
            }
        }

        fn watches(&self) -> usize {
            self.by_id.len()
        }

        fn wait(&mut self, limit: Option<Duration>, out: &mut Vec<Raw>) {
            let limit = limit.map(|l| Timespec {
                tv_sec: i64::try_from(l.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: l.subsec_nanos().into(),
            });
            let mut fds = [PollFd::new(&self.fd, PollFlags::IN), PollFd::new(&self.wake, PollFlags::IN)];
            let _ = poll(&mut fds, limit.as_ref());
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.wake, &mut count);
            let mut space = [MaybeUninit::<u8>::uninit(); 64 << 10];
            let mut reader = inotify::Reader::new(&self.fd, &mut space);
            while out.len() < BATCH {
                let Ok(event) = reader.next() else { break };
                let what = event.events();
                if what.contains(ReadFlags::QUEUE_OVERFLOW) {
                    out.push(Raw::Overflow);
                    continue;
                }
                if what.contains(ReadFlags::IGNORED) {
                    if let Some(path) = self.by_id.remove(&event.wd()) {
                        // Unless the path was watched again in the meantime.
                        if self.by_path.get(&path) == Some(&event.wd()) {
                            self.by_path.remove(&path);
                        }
                    }
                    continue;
                }
                let Some(folder) = self.by_id.get(&event.wd()) else { continue };
                let dir = what.contains(ReadFlags::ISDIR);
                let Some(name) = event.file_name() else {
                    // The folder itself was removed. Its parent reports that too, unless it is the root.
                    out.push(Raw::Gone { path: folder.clone(), dir: true });
                    continue;
                };
                let path = folder.join(OsStr::from_bytes(name.to_bytes()));
                out.push(if what.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
                    Raw::Gone { path, dir }
                } else if what.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
                    Raw::Made { path, dir }
                } else {
                    Raw::Changed { path }
                });
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};

    use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

    use super::{Arc, Duration, Path, PathBuf, Raw, Source, Waker, WatchRefusal};

    /// Capacity of the channel from `notify`'s thread to the watcher's; when it is full, events count as lost.
    const QUEUE: usize = 16_384;

    struct Notify {
        watcher: RecommendedWatcher,
        from: Receiver<Option<Raw>>,
        watched: std::collections::HashSet<PathBuf>,
        lost: Arc<std::sync::atomic::AtomicBool>,
    }

    /// Opens the source.
    pub(crate) fn open() -> std::io::Result<(Box<dyn Source>, Waker)> {
        let (to, from) = sync_channel(QUEUE);
        let lost = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (events, flag) = (to.clone(), lost.clone());
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let Ok(event) = event else { return };
            if event.need_rescan() {
                flag.store(true, std::sync::atomic::Ordering::Release);
            }
            for path in event.paths {
                let dir = path.is_dir();
                let raw = match event.kind {
                    EventKind::Access(_) => continue,
                    EventKind::Create(_) => Raw::Made { path, dir },
                    EventKind::Remove(_) => Raw::Gone { path, dir },
                    _ if path.symlink_metadata().is_err() => Raw::Gone { path, dir },
                    _ if dir => Raw::Made { path, dir },
                    _ => Raw::Changed { path },
                };
                if events.try_send(Some(raw)).is_err() {
                    flag.store(true, std::sync::atomic::Ordering::Release);
                }
            }
        })
        .map_err(std::io::Error::other)?;
        let source = Notify { watcher, from, watched: std::collections::HashSet::new(), lost };
        Ok((Box::new(source), Arc::new(move || _ = to.try_send(None))))
    }

    impl Source for Notify {
        fn watch(&mut self, folder: &Path) -> Result<(), WatchRefusal> {
            // The first folder is the root; the system watches everything below it. Folders outside follow.
            if self.watched.iter().any(|w| folder.starts_with(w)) {
                return Ok(());
            }
            self.watcher.watch(folder, RecursiveMode::Recursive).map_err(|e| match e.kind {
                notify::ErrorKind::MaxFilesWatch => WatchRefusal::Limit,
                _ => WatchRefusal::Other,
            })?;
            self.watched.insert(folder.to_owned());
            Ok(())
        }

        fn has(&self, folder: &Path) -> bool {
            self.watched.iter().any(|w| folder.starts_with(w))
        }

        fn unwatch(&mut self, folder: &Path) {
            if self.watched.remove(folder) {
                let _ = self.watcher.unwatch(folder);
            }
        }

        fn watches(&self) -> usize {
            self.watched.len()
        }

        fn wait(&mut self, limit: Option<Duration>, out: &mut Vec<Raw>) {
            let first = match limit {
                Some(limit) => self.from.recv_timeout(limit),
                None => self.from.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            out.extend(first.ok().flatten());
            out.extend(std::iter::from_fn(|| self.from.try_recv().ok()).take(QUEUE).flatten());
            if self.lost.swap(false, std::sync::atomic::Ordering::AcqRel) {
                out.push(Raw::Overflow);
            }
        }
    }
}
