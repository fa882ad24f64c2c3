//! Who closes a file that a command has opened for writing: the supervisor sees each opening, and the kernel tells of each closing.
//! Where there are more closings than openings, another program has written the file in its place, however shortly after the
//! command.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

/// Files of one command that are looked at. Others are judged by their times alone.
const FILES: usize = 10_000;
/// Bytes of events that are read at once.
const EVENTS: usize = 4096;

/// The files that one command has opened for writing.
#[derive(Debug, Default)]
pub(in crate::supervisor) struct Closings {
    /// Made for the first file; `None`: there is none yet, or the system has no more of them.
    queue: Option<Arc<OwnedFd>>,
    /// Number of the command.
    command: u64,
    files: HashMap<i32, OpenedFile>,
    numbers: HashMap<PathBuf, i32>,
}

#[derive(Debug)]
struct OpenedFile {
    path: PathBuf,
    /// Openings of the command without a closing.
    open: usize,
}

impl Closings {
    /// What becomes readable when a file was closed.
    pub(super) fn queue(&self) -> Option<Arc<OwnedFd>> {
        self.queue.clone()
    }

    /// The command of this number opens a file for writing, or (not `opening`) changes it otherwise. Those of an earlier command are
    /// forgotten. `here`: where this process finds the file.
    pub(super) fn look_at(&mut self, path: &Path, here: &Path, opening: bool, command: u64) {
        if self.command != command {
            *self = Self { command, ..Self::default() };
        }
        if self.files.len() >= FILES {
            return;
        }
        if self.queue.is_none() {
            self.queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok().map(Arc::new);
        }
        let Some(queue) = &self.queue else { return };
        // Without a watch its times tell.
        let Ok(number) = inotify::add_watch(queue, here, WatchFlags::CLOSE_WRITE) else { return };
        let known = self.files.entry(number);
        let file = known.or_insert_with(|| OpenedFile { path: path.to_owned(), open: 0 });
        file.open += usize::from(opening);
        self.numbers.insert(path.to_owned(), number);
    }

    /// The command has removed a file.
    pub(super) fn removed(&mut self, path: &Path) {
        if let Some(number) = self.numbers.remove(path) {
            self.files.remove(&number);
        }
    }

    /// The command has moved a file.
    pub(super) fn moved(&mut self, old: &Path, new: &Path) {
        self.removed(new);
        if let Some(number) = self.numbers.remove(old) {
            if let Some(file) = self.files.get_mut(&number) {
                new.clone_into(&mut file.path);
            }
            self.numbers.insert(new.to_owned(), number);
        }
    }

    /// Files that another program has closed after it wrote them, or removed, since the last call.
    pub(super) fn of_others(&mut self) -> Vec<PathBuf> {
        let Some(queue) = &self.queue else { return Vec::new() };
        let mut space = [MaybeUninit::uninit(); EVENTS];
        let mut events = Reader::new(queue, &mut space);
        let mut others = Vec::new();
        while let Ok(event) = events.next() {
            let number = event.wd();
            if event.events().contains(ReadFlags::IGNORED) {
                // The file is gone, and the command has not removed it. Another one can have its number by now.
                if let Some(file) = self.files.remove(&number) {
                    self.numbers.remove(&file.path);
                    others.push(file.path);
                }
            } else if let Some(file) = self.files.get_mut(&number) {
                match file.open.checked_sub(1) {
                    Some(left) => file.open = left,
                    None => others.push(file.path.clone()),
                }
            }
        }
        others
    }
}
