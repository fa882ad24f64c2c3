//! A folder of a workspace that is swapped with a link to a foreign folder, between the judgement of a path and its opening.

#![allow(clippy::print_stdout, reason = "a helper of tests")]

use std::fs;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// A word in each file of the workspace's own folder.
pub const MINE: &str = "mine-51c2";
/// A word in each file of the foreign folder, and in the name of one of them.
pub const FOREIGN: &str = "canary-7f3a";

type Hook = (PathBuf, Arc<dyn Fn() + Send + Sync>);

/// What runs before something below a path is opened.
static HOOKS: Mutex<Vec<Hook>> = Mutex::new(Vec::new());

/// Runs the hooks of the path that is about to be opened.
pub(crate) fn opening(dir: BorrowedFd<'_>, rel: &Path) {
    let hooks = HOOKS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if hooks.is_empty() {
        return;
    }
    let Ok(at) = fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd())) else { return };
    let path = at.join(rel);
    hooks.iter().filter(|(below, _)| path.starts_with(below)).for_each(|(_, run)| run());
}

/// The scene: `work` is a workspace with a folder, `out` is a foreign one with files of the same names.
#[derive(Clone, Debug)]
pub struct Swaps {
    root: PathBuf,
    place: PathBuf,
    aside: PathBuf,
}

impl Swaps {
    /// Makes it in `scratch`. `place`: the folder, below the workspace; `names`: paths of files below it.
    pub fn new(scratch: &Path, place: &str, names: &[&str]) -> Self {
        let scratch = scratch.canonicalize().unwrap();
        let (root, out) = (scratch.join("work"), scratch.join("out"));
        let all = Self { place: root.join(place), aside: scratch.join("aside"), root };
        for name in names {
            all.put(name, format!("{MINE}\n"), format!("{FOREIGN}\n"));
        }
        all.put(&format!("{FOREIGN}.txt"), "", FOREIGN);
        fs::remove_file(all.place.join(format!("{FOREIGN}.txt"))).unwrap();
        symlink(out, &all.aside).unwrap();
        all
    }

    /// Writes a file of the workspace's folder, and its foreign twin.
    pub fn put(&self, name: &str, mine: impl AsRef<[u8]>, foreign: impl AsRef<[u8]>) {
        let out = self.aside.with_file_name("out");
        for (path, bytes) in [(self.place.join(name), mine.as_ref()), (out.join(name), foreign.as_ref())] {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }

    /// The workspace, without links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Swaps the folder and the link.
    pub fn swap(&self) {
        if renameat_with(CWD, &self.place, CWD, &self.aside, RenameFlags::EXCHANGE).is_err() {
            // A file system that cannot exchange.
            let third = self.aside.with_file_name("third");
            fs::rename(&self.place, &third).unwrap();
            fs::rename(&self.aside, &self.place).unwrap();
            fs::rename(&third, &self.aside).unwrap();
        }
    }

    /// Puts the folder into its place.
    fn put_back(&self) {
        if fs::symlink_metadata(&self.place).unwrap().is_symlink() {
            self.swap();
        }
    }

    /// Runs `read` while the folder is swapped at the first open below it. Returns what it gives, and true when such an open
    /// happened.
    pub fn at_open<T>(&self, read: impl FnOnce() -> T) -> (T, bool) {
        let opened = Arc::new(AtomicBool::new(false));
        let (swaps, first) = (self.clone(), Arc::clone(&opened));
        let hook: Arc<dyn Fn() + Send + Sync> = Arc::new(move || {
            if !first.swap(true, Ordering::SeqCst) {
                swaps.swap();
            }
        });
        let all = || HOOKS.lock().unwrap_or_else(PoisonError::into_inner);
        all().push((self.place.clone(), hook));
        let read = read();
        all().retain(|(below, _)| *below != self.place);
        self.put_back();
        (read, opened.load(Ordering::SeqCst))
    }

    /// Runs `read` again and again while a thread swaps, at least `calls` times and until there were `most` swaps. Returns how
    /// many results hold the workspace's own word.
    ///
    /// # Panics
    /// When a result holds the foreign word.
    pub fn race(&self, name: &str, calls: u32, most: u64, mut read: impl FnMut() -> String) -> u32 {
        let (over, swapped) = (AtomicBool::new(false), AtomicU64::new(0));
        let own = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    self.swap();
                    swapped.fetch_add(1, Ordering::Relaxed);
                    // The reader meets both states, also where one core runs both.
                    std::thread::yield_now();
                }
            });
            // The thread ends also when the reader panics.
            let _end = OnDrop(&over);
            let (mut done, mut own) = (0, 0);
            while done < calls || swapped.load(Ordering::Relaxed) < most {
                let text = read();
                assert!(!text.contains(FOREIGN), "{name} read what was not judged: {text}");
                own += u32::from(text.contains(MINE));
                done += 1;
            }
            own
        });
        self.put_back();
        own
    }

    /// Checks one reader: it gives the workspace's own word when nothing happens; nothing foreign when the folder is swapped at
    /// the moment of opening, or again and again. Each row of a table of readers is one call.
    ///
    /// # Panics
    /// When it gives something foreign, or opens past [`crate::beneath`].
    pub fn check(&self, name: &str, mut read: impl FnMut() -> String) {
        let calm = read();
        assert!(calm.contains(MINE), "{name} reads nothing: {calm}");
        assert!(!calm.contains(FOREIGN), "{name}: {calm}");
        if cfg!(target_os = "linux") {
            let (text, opened) = self.at_open(&mut read);
            assert!(opened, "{name} opens past tiller_fs::beneath");
            assert!(!text.contains(FOREIGN), "{name} read what was not judged: {text}");
        } else {
            println!("skipped: the path of a descriptor is not known here");
        }
        let own = self.race(name, CALLS, SWAPS, read);
        println!("{name}: {own} results of its own");
    }
}

/// The size of one race.
const CALLS: u32 = 200;
const SWAPS: u64 = 1_000;

struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
