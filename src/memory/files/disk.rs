//! Reading and replacing memory files. Several processes, and the person's editors, write them.
//!
//! Processes of Tiller take a lock. An editor takes none: a new file is exchanged with the old one in one step, and when
//! the old one is not what was read, both are merged.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use tiller_fs::beneath;
use tiller_fs::lock::{LockError, LockFile};

use super::document::Document;
use super::leftovers::{self, Leftover};
use super::merge::merge;
use crate::files::MemoryError;

/// Size of a memory file, in bytes, at most.
pub const LARGEST: u64 = 1 << 20;
/// How long another process may hold the lock.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How often a change begins again because an editor writes the file at the same time.
const ROUNDS: u32 = 100;
/// An editor that writes a file in place empties it first: a file that changes is read when it has not changed for `STILL`,
/// or after `LONGEST`.
const STILL: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// One memory file.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub path: PathBuf,
    /// Folder for lock files.
    pub locks: PathBuf,
    /// The path of a file of the person's may be a link. One in a project may not: it could lead out of it.
    pub links: bool,
    /// Folder that the file must be in, its links resolved; `None`: any.
    pub inside: Option<PathBuf>,
}

impl Slot {
    /// The text of the file; `None`: there is none.
    ///
    /// # Errors
    /// When it cannot be read, or is no memory file.
    pub(crate) fn read(&self) -> Result<Option<String>, MemoryError> {
        Ok(self.load()?.map(|(text, _)| text))
    }

    /// The text and the file's mode.
    fn load(&self) -> Result<Option<(String, u32)>, MemoryError> {
        let path = self.judged()?;
        if !self.links && fs::symlink_metadata(&path).is_ok_and(|m| m.is_symlink()) {
            return Err(self.fault("is a link; a memory file of a project must be a plain file"));
        }
        self.read_at(&path)
    }

    /// Text and mode of a file at the place of this one. That of a project is opened as it was judged.
    fn read_at(&self, path: &Path) -> Result<Option<(String, u32)>, MemoryError> {
        let read = if self.inside.is_some() { read_by(path, beneath::file) } else { read_file(path) };
        read.map_err(|why| self.fault(&why))
    }

    /// Changes the file. `change` is given the file as it is now and returns its result; it may run again, when an editor
    /// wrote the file meanwhile. A document that it leaves as it was is not written.
    ///
    /// # Errors
    /// That of `change`, or when the file cannot be read or written; the file is then as it was.
    #[cfg(test)]
    pub(crate) fn change<T>(
        &self,
        change: impl FnMut(&mut Document) -> Result<T, MemoryError>,
    ) -> Result<T, MemoryError> {
        let lock = self.lock_to_change()?;
        self.change_locked(&lock, change)
    }

    /// As [`Self::change`], while the lock of the file is held.
    ///
    /// # Errors
    /// As [`Self::change`].
    pub(crate) fn change_locked<T>(
        &self,
        _lock: &LockFile,
        mut change: impl FnMut(&mut Document) -> Result<T, MemoryError>,
    ) -> Result<T, MemoryError> {
        // A link of the person's is followed, so that a file kept in another folder stays there.
        let path = if self.links {
            fs::canonicalize(&self.path).unwrap_or(self.path.clone())
        } else {
            self.judged()?
        };
        for leftover in leftovers::of(&path) {
            self.take_up(&path, leftover)?;
        }
        for _ in 0..ROUNDS {
            let (text, mode) = self.load()?.map_or((None, 0o600), |(text, mode)| (Some(text), mode));
            let base = Document::parse(text.as_deref().unwrap_or_default());
            let mut mine = base.clone();
            let value = change(&mut mine)?;
            let new = mine.render();
            if text.as_deref().unwrap_or_default() == new {
                return Ok(value);
            }
            if self.put(&path, text.as_deref(), mode, base, mine)? {
                return Ok(value);
            }
        }
        Err(self.fault("is changed all the time by another program"))
    }

    /// Adds what a killed process took out of the file: an editor's version, saved in the moment before the exchange.
    fn take_up(&self, path: &Path, leftover: Leftover) -> Result<(), MemoryError> {
        let theirs = match read_file(&leftover.path) {
            Ok(Some((text, _))) if leftover.is_own(&text) => return leftover.remove(),
            Ok(Some((text, _))) => Document::parse(&text),
            Ok(None) => return Ok(()),
            // No memory file: it stays, under a name that is seen.
            Err(_) => return leftover.keep(path),
        };
        let Some((now, mode)) = self.load()? else { return leftover.keep(path) };
        if leftover.is_merged_in(&now) {
            return leftover.remove();
        }
        if !leftover.is_new(&now) {
            return leftover.keep(path);
        }
        let now_parsed = Document::parse(&now);
        let merged = merge(&Document::default(), &now_parsed, &theirs);
        if merged.render().len() as u64 > LARGEST {
            return leftover.keep(path);
        }
        if self.put(path, Some(&now), mode, now_parsed, merged)? {
            leftover.remove()?;
        }
        Ok(())
    }

    /// Puts `mine` in the place of the file with the text `old`. False: another program made or removed it meanwhile.
    fn put(
        &self,
        path: &Path,
        old: Option<&str>,
        mode: u32,
        base: Document,
        mine: Document,
    ) -> Result<bool, MemoryError> {
        // What an editor saved in the moment before the exchange. No other file has it until the merge is in place.
        let mut caught = None;
        let done = self.put_or_catch(path, old, mode, (base, mine), &mut caught);
        let Some(caught) = caught else { return done };
        let saved = caught.keep(path).map_err(|e| self.fault(&e.to_string()))?;
        done.map_err(|error| {
            MemoryError::File(format!("{error}; what was saved meanwhile is in {}", saved.display()))
        })
    }

    /// The work of [`Self::put`]. Whatever it returns, a version of an editor that is not in the file is in `caught`.
    fn put_or_catch(
        &self,
        path: &Path,
        old: Option<&str>,
        mode: u32,
        (mut base, mut mine): (Document, Document),
        caught: &mut Option<Displaced>,
    ) -> Result<bool, MemoryError> {
        let io = |e: std::io::Error| self.fault(&e.to_string());
        let mut expected = old.map(str::to_owned);
        for _ in 0..ROUNDS {
            let new = mine.render();
            if new.len() as u64 > LARGEST {
                return Err(
                    self.fault("would be larger than 1 MiB: move entries of the archive to another file")
                );
            }
            let temp = Temp::write(path, expected.as_deref(), &new, mode).map_err(io)?;
            step("written");
            let Some(old) = &expected else {
                return match temp.rename_new(path) {
                    Err(Errno::EXIST) => Ok(false),
                    done => done.map(|()| true).map_err(|e| io(e.into())),
                };
            };
            match caught {
                Some(caught) => caught.is_merged_in(&new).map_err(io)?,
                // Writing takes long: what was saved meanwhile is read anew. The exchange is for what comes after this look.
                None => {
                    let now = self.read_at(path)?;
                    if now.is_none_or(|(now, _)| now != *old) {
                        return Ok(false);
                    }
                }
            }
            step("compared");
            let displaced = match temp.exchange(path) {
                Ok(displaced) => displaced,
                Err((_, Errno::NOENT)) => return Ok(false),
                // A file system that cannot exchange: the last look, then the rename.
                Err((temp, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)) => {
                    let same = self.read_at(path)?.is_some_and(|(now, _)| now == *old);
                    return if same { temp.rename_over(path).map(|()| true).map_err(io) } else { Ok(false) };
                }
                Err((_, e)) => return Err(io(e.into())),
            };
            step("exchanged");
            // The version that was caught before is in the file now.
            let there = displaced.path.clone();
            drop(caught.replace(displaced).map(|before| before.remove(path)));
            // The temporary name has what was in the file at that moment.
            let there = match read_file(&there).map_err(|why| self.fault(&why))? {
                Some((text, _)) if text == *old => {
                    // The change is in the file: what cannot be removed now, the next change removes.
                    drop(caught.take().map(|own| own.remove(path)));
                    return Ok(true);
                }
                _ => settled(&there).map_err(|why| self.fault(&why))?,
            };
            let theirs = Document::parse(&there);
            let merged = merge(&base, &mine, &theirs);
            (base, expected) = (mine, Some(new));
            mine = merged;
        }
        Err(self.fault("is changed all the time by another program"))
    }

    /// As [`Self::lock`], and makes the folder of the file.
    ///
    /// # Errors
    /// When the folder cannot be made, leads out of the project, or another process holds the lock for too long.
    pub(crate) fn lock_to_change(&self) -> Result<LockFile, MemoryError> {
        if let Some(parent) = self.path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(parent)
                .map_err(|e| self.fault(&e.to_string()))?;
        }
        self.judged()?;
        self.lock()
    }

    /// Holds the lock of the file until it is dropped, or the process ends.
    ///
    /// # Errors
    /// When another process holds it for too long, or the file of the lock cannot be made.
    pub(crate) fn lock(&self) -> Result<LockFile, MemoryError> {
        let io = |e: std::io::Error| self.fault(&format!("cannot be locked: {e}"));
        DirBuilder::new().recursive(true).mode(0o700).create(&self.locks).map_err(io)?;
        let name = blake3::hash(self.path.as_os_str().as_encoded_bytes()).to_hex();
        let path = self.locks.join(format!("memory-{}.lock", &name[..16]));
        LockFile::acquire(&path, TIMEOUT).map_err(|error| match error {
            LockError::Held => self.fault("is being written by another process; try again"),
            LockError::Io(e) => io(e),
        })
    }

    /// The path of the file; of a project's file with the links of its folder resolved: that may not lead out of the project.
    fn judged(&self) -> Result<PathBuf, MemoryError> {
        let (Some(inside), Some(parent)) = (&self.inside, self.path.parent()) else {
            return Ok(self.path.clone());
        };
        match fs::canonicalize(parent) {
            Ok(real) if real == *parent || real.starts_with(inside) => {
                Ok(real.join(self.path.file_name().unwrap_or_default()))
            }
            Ok(_) => Err(self.fault("is in a folder that leads out of the project")),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(self.path.clone()),
            Err(e) => Err(self.fault(&e.to_string())),
        }
    }

    fn fault(&self, why: &str) -> MemoryError {
        MemoryError::File(format!("{} {}", self.path.display(), why.trim_end_matches('.')))
    }
}

/// Text and mode of a file. The error is the end of a sentence about it.
fn read_file(path: &Path) -> Result<Option<(String, u32)>, String> {
    // A FIFO must not block.
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    read_by(path, |path| OpenOptions::new().read(true).custom_flags(flags).open(path))
}

/// As [`read_file`], with the way to open the file.
fn read_by(
    path: &Path,
    open: impl FnOnce(&Path) -> std::io::Result<File>,
) -> Result<Option<(String, u32)>, String> {
    let file = match open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return tiller_fs::restricting::nothing_at(path).map(|()| None);
        }
        Err(e) => return Err(format!("cannot be read: {e}")),
    };
    let meta = file.metadata().map_err(|e| format!("cannot be read: {e}"))?;
    if !meta.is_file() {
        return Err("is not a plain file".into());
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|e| format!("cannot be read: {e}"))?;
    if bytes.len() as u64 > LARGEST {
        return Err("is larger than 1 MiB; memory files are read up to this size".into());
    }
    if bytes.contains(&0) {
        return Err("is not text: it contains NUL bytes".into());
    }
    let text = String::from_utf8(bytes)
        .map_err(|e| format!("is not UTF-8: see byte {}", e.utf8_error().valid_up_to()))?;
    Ok(Some((text, meta.mode() & 0o777)))
}

/// The text of a file that another program may be writing, once it is still. The error is as that of [`read_file`].
#[expect(clippy::disallowed_methods, reason = "polls with a deadline")]
fn settled(path: &Path) -> Result<String, String> {
    let read = || Ok::<_, String>(read_file(path)?.map_or_else(String::new, |(text, _)| text));
    let (began, mut text) = (Instant::now(), read()?);
    while began.elapsed() < LONGEST {
        step("waits");
        std::thread::sleep(STILL);
        let later = read()?;
        if later == text && !text.is_empty() {
            break;
        }
        text = later;
    }
    Ok(text)
}

/// A file beside the one that it replaces.
struct Temp {
    path: PathBuf,
    gone: bool,
}

impl Temp {
    /// Writes `new`, which is to replace the text `old`.
    fn write(path: &Path, old: Option<&str>, new: &str, mode: u32) -> std::io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let [part, whole] = leftovers::names(path, number, old, new);
        let mut temp = Self { path: part, gone: false };
        step("begin");
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temp.path)?;
        step("created");
        file.write_all(new.as_bytes())?;
        step("filled");
        file.sync_all()?;
        fs::rename(&temp.path, &whole)?;
        temp.path = whole;
        Ok(temp)
    }

    fn rename_new(mut self, path: &Path) -> Result<(), Errno> {
        match renameat_with(CWD, &self.path, CWD, path, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) if !path.exists() => {
                rustix::fs::rename(&self.path, path)?;
            }
            done => done?,
        }
        self.gone = true;
        step("renamed");
        let _ = sync_folder(path);
        Ok(())
    }

    fn exchange(mut self, path: &Path) -> Result<Displaced, (Self, Errno)> {
        match renameat_with(CWD, &self.path, CWD, path, RenameFlags::EXCHANGE) {
            Ok(()) => {
                self.gone = true;
                Ok(Displaced { path: self.path.clone() })
            }
            Err(error) => Err((self, error)),
        }
    }

    fn rename_over(mut self, path: &Path) -> std::io::Result<()> {
        fs::rename(&self.path, path)?;
        self.gone = true;
        sync_folder(path)
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if !self.gone {
            drop(fs::remove_file(&self.path));
        }
    }
}

/// What was in a memory file when its new text came, under a temporary name. It may be the only copy of what an editor saved, so
/// it stays on every path that does not remove it.
struct Displaced {
    path: PathBuf,
}

impl Displaced {
    /// Records in the file's name that `merged`, which is to be written, contains this version: once it is written, this file is
    /// not needed any more, also when the process is killed before it removes the file.
    fn is_merged_in(&mut self, merged: &str) -> std::io::Result<()> {
        let noted = leftovers::name_merged(&self.path, merged);
        fs::rename(&self.path, &noted)?;
        self.path = noted;
        step("noted");
        Ok(())
    }

    fn remove(self, path: &Path) -> std::io::Result<()> {
        sync_folder(path)?;
        fs::remove_file(&self.path)?;
        step("removed");
        sync_folder(path)
    }

    /// Gives it a name that the user finds. Returns it.
    fn keep(self, path: &Path) -> std::io::Result<PathBuf> {
        leftovers::keep(&self.path, path)
    }
}

fn sync_folder(path: &Path) -> std::io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// A point at which tests end the process.
#[cfg(not(test))]
pub(super) fn step(_name: &str) {}

#[cfg(test)]
pub(crate) use tests::{die, die_at, step};

#[cfg(test)]
#[path = "tests/disk.rs"]
mod tests;
