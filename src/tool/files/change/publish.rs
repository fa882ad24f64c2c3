//! Change sets that have begun, on disk, so that the next start takes back (or finishes) what a kill cut off.
//!
//! Before the first temporary file is made, a file in our own state folder says which names change, from which
//! content to which. Until every change stands, the next start takes all of them back; once they all stand it only
//! removes the temporary files. A lock on that file says whether a process is still at work, which the kernel
//! frees with its process.

mod take_back;

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub use take_back::TakeBackReport;

use crate::files::change::commit::Change;
use crate::files::path::beneath::Slot;

/// The first line of a file.
const FORMAT: &str = "tiller-publish 1";
/// A larger file was not written by this program.
const MOST: u64 = 16 << 20;
/// Tries to lock a new file before another process sweeps it.
const TRIES: usize = 16;

/// Where change sets are written down.
#[derive(Clone, Debug)]
pub struct Publishes {
    dir: PathBuf,
}

/// A content: its BLAKE3 and its length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Content {
    hash: [u8; 32],
    len: u64,
}

/// One change of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PlannedChange {
    path: PathBuf,
    /// `None`: the file did not exist.
    old: Option<Content>,
    /// `None`: the file goes.
    new: Option<Content>,
}

/// How far a set came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Temporary files are written; no target was touched.
    Staging,
    /// Targets change.
    Going,
    /// All targets have changed.
    Done,
}

/// A set as it was read back.
#[derive(Debug)]
struct StoredSet {
    token: String,
    changes: Vec<PlannedChange>,
    /// Folders that did not exist before, outermost first.
    folders: Vec<PathBuf>,
    phase: Phase,
}

/// A set that this process works on. Dropping it leaves the file to the next start.
#[derive(Debug)]
pub(crate) struct Open {
    path: PathBuf,
    file: File,
    /// Whether each phase waits for the disk: of a single change the file system itself sees to it that it is whole.
    durable: bool,
}

impl Publishes {
    /// `dir` (made when it is needed) belongs to this program alone.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Writes down what is about to change. `paths` (absolute) stand in the order of `changes`; `folders` are made for
    /// them.
    pub(crate) fn begin(
        &self,
        token: &str,
        changes: &[(Slot, Change)],
        paths: &[&Path],
        folders: &[PathBuf],
    ) -> io::Result<Open> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        let durable = changes.len() > 1;
        let mut text = format!("{FORMAT}\ntoken {token}\n");
        for ((_, change), path) in changes.iter().zip(paths) {
            let (old, new) = match change {
                Change::Create { bytes, .. } => (None, Some(bytes)),
                Change::Replace { old, bytes } => (Some(old), Some(bytes)),
                Change::Remove { old } => (Some(old), None),
            };
            let old = old.map(|o| Content { hash: o.hash, len: u64::try_from(o.stat.st_size).unwrap_or(0) });
            let new = new.map(|b| Content { hash: *blake3::hash(b).as_bytes(), len: b.len() as u64 });
            text.push_str(&format!("change {} {} {}\n", word(old), word(new), hex(path)));
        }
        for folder in folders {
            text.push_str(&format!("folder {}\n", hex(folder)));
        }
        text.push_str("end\n");
        let path = self.dir.join(format!("{token}.publish"));
        let mut file = create_locked(&path)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| {
            if durable {
                file.sync_all()?;
                File::open(&self.dir)?.sync_all()?;
            }
            Ok(())
        });
        if let Err(e) = written {
            let _ = std::fs::remove_file(&path);
            return Err(e);
        }
        Ok(Open { path, file, durable })
    }

    /// Takes back or finishes every set whose process is gone. What came of it, one for each set that had touched
    /// a file.
    pub fn recover(&self) -> Vec<TakeBackReport> {
        let Ok(items) = std::fs::read_dir(&self.dir) else { return Vec::new() };
        let mut done = Vec::new();
        for path in items.flatten().map(|i| i.path()) {
            if path.extension().is_none_or(|e| e != "publish") {
                continue;
            }
            let Ok(mut file) = OpenOptions::new().read(true).write(true).open(&path) else { continue };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock | TryLockError::Error(_)) => continue,
            }
            let mut text = String::new();
            // A record without "end" began nothing.
            let found = (&mut file).take(MOST).read_to_string(&mut text).ok().and_then(|_| parse(&text));
            let taken = found.map(|f| take_back::run(&f));
            if taken.as_ref().is_none_or(TakeBackReport::is_over) {
                let _ = std::fs::remove_file(&path);
            }
            done.extend(taken.filter(TakeBackReport::says_something));
        }
        done
    }
}

/// Makes a locked file. Retries when another process removes it as left over between its creation and its lock.
fn create_locked(path: &Path) -> io::Result<File> {
    for _ in 0..TRIES {
        let file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
            made => made?,
        };
        if file.try_lock().is_ok() && path.exists() {
            return Ok(file);
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

impl Open {
    /// All temporary files are whole; targets change from now on.
    pub(crate) fn going(&mut self) -> io::Result<()> {
        self.phase("going\n")
    }

    /// All targets have changed; only temporary files are still to go.
    pub(crate) fn done(&mut self) -> io::Result<()> {
        self.phase("done\n")
    }

    fn phase(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all(line.as_bytes())?;
        if self.durable { self.file.sync_data() } else { Ok(()) }
    }

    /// Nothing is left over.
    pub(crate) fn end(self) {
        // A record that stays has nothing to do at the next start.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn word(content: Option<Content>) -> String {
    content.map_or_else(|| "-".into(), |c| format!("{}:{}", blake3::Hash::from(c.hash).to_hex(), c.len))
}

fn content(word: &str) -> Option<Option<Content>> {
    if word == "-" {
        return Some(None);
    }
    let (hash, len) = word.split_once(':')?;
    let hash = *blake3::Hash::from_hex(hash).ok()?.as_bytes();
    Some(Some(Content { hash, len: len.parse().ok()? }))
}

fn hex(path: &Path) -> String {
    path.as_os_str().as_bytes().iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &str) -> Option<PathBuf> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect();
    let bytes = digits?.chunks(2).map(|d| d[0] << 4 | d.get(1).copied().unwrap_or(0)).collect();
    let path = PathBuf::from(std::ffi::OsString::from_vec(bytes));
    path.is_absolute().then_some(path)
}

fn parse(text: &str) -> Option<StoredSet> {
    let mut lines = text.lines();
    (lines.next()? == FORMAT).then_some(())?;
    let token = lines.next()?.strip_prefix("token ")?.to_owned();
    // It becomes part of a name.
    token.bytes().all(|b| b.is_ascii_alphanumeric()).then_some(())?;
    let mut found = StoredSet { token, changes: Vec::new(), folders: Vec::new(), phase: Phase::Staging };
    let mut whole = false;
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["change", old, new, path] if !whole => {
                found.changes.push(PlannedChange {
                    path: unhex(path)?,
                    old: content(old)?,
                    new: content(new)?,
                });
            }
            ["folder", path] if !whole => found.folders.push(unhex(path)?),
            ["end"] => whole = true,
            ["going"] if whole => found.phase = Phase::Going,
            ["done"] if whole => found.phase = Phase::Done,
            _ => {}
        }
    }
    whole.then_some(found)
}

#[cfg(test)]
#[path = "publish_tests.rs"]
mod tests;
