//! Closings of files that a command has opened for writing: the supervisor answers each opening, and inotify reports closings.
//! Where there are more closings than openings, another program has written the file in its place, however shortly after the
//! command.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

/// Files of one command that are looked at. Of others it is not recorded if another program writes in them.
const FILES: usize = 1_000;
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
    /// Openings of the command whose event was not read yet.
    unread: usize,
    /// A closing was read while it was open more than once. The kernel joins such events, so it can be open fewer times.
    joined: bool,
    /// Openings since then that are none of the command's for writing.
    of_others: usize,
}

impl OpenedFile {
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), open: 0, unread: 0, joined: false, of_others: 0 }
    }

    fn opened(&mut self) {
        match self.unread.checked_sub(1) {
            Some(left) => self.unread = left,
            None if self.joined => self.of_others += 1,
            None => {}
        }
    }

    /// Returns true if another program has closed it.
    fn closed(&mut self) -> bool {
        let others = self.open == 0 || self.joined && self.of_others > 0;
        self.joined = self.open > 1;
        self.open = self.open.saturating_sub(1);
        if !self.joined || others {
            self.of_others = 0;
        }
        others
    }
}

/// The files that were closed after they were open for writing.
#[derive(Debug, Default)]
pub(super) struct ClosedFiles {
    /// By the command.
    pub(super) own: Vec<PathBuf>,
    /// By another program, or removed by it.
    pub(super) others: Vec<PathBuf>,
}

impl Closings {
    /// Returns what becomes readable when a file was closed.
    pub(super) fn queue(&self) -> Option<Arc<OwnedFd>> {
        self.queue.clone()
    }

    /// The command of this number opens a file for writing, or (not `opening`) changes it otherwise. Those of an earlier command are
    /// forgotten. `here`: where this process finds the file. Returns false if its closings cannot be looked at.
    pub(super) fn look_at(&mut self, path: &Path, here: &Path, opening: bool, command: u64) -> bool {
        if self.command != command {
            *self = Self { command, ..Self::default() };
        }
        if self.files.len() >= FILES && !self.numbers.contains_key(path) {
            return false;
        }
        if self.queue.is_none() {
            self.queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok().map(Arc::new);
        }
        let Some(queue) = &self.queue else { return false };
        // Openings stand between closings, which the kernel would join otherwise.
        let events = WatchFlags::OPEN | WatchFlags::CLOSE;
        let Ok(number) = inotify::add_watch(queue, here, events) else { return false };
        let watched = self.files.contains_key(&number);
        let file = self.files.entry(number).or_insert_with(|| OpenedFile::new(path));
        file.open += usize::from(opening);
        file.unread += usize::from(opening && watched);
        self.numbers.insert(path.to_owned(), number);
        true
    }

    /// The command has removed a file.
    pub(super) fn removed(&mut self, path: &Path) {
        if let Some(number) = self.numbers.remove(path) {
            self.files.remove(&number);
        }
    }

    /// The command has moved a file, or a folder with its files.
    pub(super) fn moved(&mut self, old: &Path, new: &Path) {
        self.removed(new);
        let moved = self.take_below(old);
        self.put_below(new, moved);
    }

    /// The command has exchanged two files or folders.
    pub(super) fn exchanged(&mut self, [one, other]: [&Path; 2]) {
        let taken = [self.take_below(one), self.take_below(other)];
        for (name, files) in [other, one].into_iter().zip(taken) {
            self.put_below(name, files);
        }
    }

    /// Takes out the file of this name, or those below the folder, with paths in it.
    fn take_below(&mut self, top: &Path) -> Vec<(PathBuf, i32)> {
        let taken = self.numbers.extract_if(|path, _| path.starts_with(top));
        taken.filter_map(|(path, number)| Some((path.strip_prefix(top).ok()?.to_owned(), number))).collect()
    }

    fn put_below(&mut self, top: &Path, files: Vec<(PathBuf, i32)>) {
        for (inner, number) in files {
            // A path with nothing joined to it would end in a separator.
            let path = if inner.as_os_str().is_empty() { top.to_owned() } else { top.join(inner) };
            if let Some(file) = self.files.get_mut(&number) {
                path.clone_into(&mut file.path);
            }
            self.numbers.insert(path, number);
        }
    }

    /// Returns the files that were closed, or removed by others, since the last time.
    pub(super) fn closed(&mut self) -> ClosedFiles {
        let mut closed = ClosedFiles::default();
        let Some(queue) = &self.queue else { return closed };
        let mut space = [MaybeUninit::uninit(); EVENTS];
        let mut events = Reader::new(queue, &mut space);
        while let Ok(event) = events.next() {
            let number = event.wd();
            if event.events().contains(ReadFlags::IGNORED) {
                // The file is gone, and the command has not removed it. Another one can have its number by now.
                if let Some(file) = self.files.remove(&number) {
                    self.numbers.remove(&file.path);
                    closed.others.push(file.path);
                }
            } else if let Some(file) = self.files.get_mut(&number) {
                let kind = event.events();
                if kind.contains(ReadFlags::OPEN) {
                    file.opened();
                } else if kind.contains(ReadFlags::CLOSE_NOWRITE) {
                    file.of_others = file.of_others.saturating_sub(1);
                } else {
                    let whose = if file.closed() { &mut closed.others } else { &mut closed.own };
                    whose.push(file.path.clone());
                }
            }
        }
        closed
    }
}
