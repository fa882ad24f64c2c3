//! Changing files, all or nothing, and never over bytes that we did not read.
//!
//! Every change is staged first: the new content lies synchronised in a temporary file beside its target.
//! Then each is put in place by *exchanging* the two names, so that what was there is in our hands and can
//! be compared with what the agent knew. If it differs, or anything else fails, everything is exchanged
//! back. Only when all changes stand and the old files are still as read are the old ones removed.
//!
//! What cannot be seen: a program that keeps a file open and writes into it after all of that. It writes
//! into the removed file, as with any editor that saves by renaming.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use tiller_fs::Attributes;
use tiller_protocol::names;

use crate::files::change::publish;
use crate::files::path::beneath::{Slot, open_at};

/// A file as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Old {
    pub stat: Stat,
    pub hash: [u8; 32],
    pub attributes: Attributes,
}

/// What happens to one name.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// It must not exist yet. `like`: take mode, owner and attributes from this file.
    Create {
        bytes: Vec<u8>,
        like: Option<Old>,
    },
    Replace {
        old: Old,
        bytes: Vec<u8>,
    },
    Remove {
        old: Old,
    },
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// Another program wrote, made or removed the file meanwhile; its version stays. Holds the index of the change.
    #[error("changed by someone else in the meantime")]
    Conflict(usize),
    #[error("{1}")]
    Io(usize, std::io::Error),
    /// It could not be written down for the next start.
    #[error("{0}")]
    Unwritten(std::io::Error),
    /// Taking back failed as well; says where the content is.
    #[error("{0}")]
    Torn(String),
}

/// A staged change.
struct StagedChange<'a> {
    slot: &'a Slot,
    change: &'a Change,
    /// Name of the temporary file, beside the target. After publishing it holds the old file.
    temp: OsString,
    /// Where names cannot be exchanged: a second name of the old file, so that it can come back.
    second: OsString,
    /// The new file, held open so that its inode is not given to another; `None` for removals.
    new: Option<File>,
    published: bool,
    /// The old file, open, after publishing.
    out: Option<File>,
    plain: bool,
}

/// How to go about it.
#[derive(Clone, Copy)]
pub(crate) struct CommitOptions<'a> {
    /// Makes the names of temporary files unique.
    pub token: &'a str,
    /// Called once all is published and before it is settled; `false` takes it all back. For cancellation.
    pub hold: &'a dyn Fn() -> bool,
    /// Do as on a file system that can neither exchange names nor rename without replacing.
    pub plain: bool,
    /// Called before each step, with its name. For tests, which stop the program there.
    pub at: &'a dyn Fn(&'static str),
}

/// Does all of `changes`, or none. `written` is where the next start reads what a kill cut off.
pub(crate) fn commit(
    changes: &[(Slot, Change)],
    how: CommitOptions<'_>,
    mut written: Option<publish::Open>,
) -> Result<(), Fault> {
    let done = carry_out(changes, how, &mut written);
    match (&done, written) {
        // What could not be put back is tried again at the next start.
        (Err(Fault::Torn(_)), _) | (_, None) => {}
        (_, Some(written)) => {
            (how.at)("end");
            written.end();
        }
    }
    done
}

fn carry_out(
    changes: &[(Slot, Change)],
    how: CommitOptions<'_>,
    written: &mut Option<publish::Open>,
) -> Result<(), Fault> {
    let mut staged: Vec<StagedChange<'_>> = Vec::with_capacity(changes.len());
    for (n, (slot, change)) in changes.iter().enumerate() {
        (how.at)("stage");
        match stage(slot, change, n, how) {
            Ok(one) => staged.push(one),
            Err(e) => {
                drop_temps(&staged);
                return Err(Fault::Io(n, e.into()));
            }
        }
    }
    (how.at)("going");
    if let Some(Err(e)) = written.as_mut().map(publish::Open::going) {
        drop_temps(&staged);
        return Err(Fault::Io(0, e));
    }
    for n in 0..staged.len() {
        (how.at)("publish");
        if let Err(fault) = staged[n].publish(n, how.at) {
            return Err(take_back(&mut staged, fault));
        }
    }
    for one in &staged {
        // A directory that cannot be synchronised (some network disks) is no reason to fail.
        let _ = rustix::fs::fsync(&one.slot.dir);
    }
    if !(how.hold)() {
        return Err(take_back(&mut staged, Fault::Io(0, std::io::ErrorKind::Interrupted.into())));
    }
    // Another process can write into the old file after the exchange.
    for n in 0..staged.len() {
        if !staged[n].still_as_read() {
            return Err(take_back(&mut staged, Fault::Conflict(n)));
        }
    }
    (how.at)("done");
    if let Some(Err(e)) = written.as_mut().map(publish::Open::done) {
        return Err(take_back(&mut staged, Fault::Io(0, e)));
    }
    for one in &staged {
        (how.at)("clear");
        drop_temps(std::slice::from_ref(one));
    }
    Ok(())
}

fn stage<'a>(
    slot: &'a Slot,
    change: &'a Change,
    n: usize,
    how: CommitOptions<'_>,
) -> Result<StagedChange<'a>, Errno> {
    let (temp, second) = (names::temporary(how.token, n), names::second(how.token, n));
    let (temp, second) = (OsString::from(temp), OsString::from(second));
    let (bytes, like) = match change {
        Change::Create { bytes, like } => (Some(bytes), like.as_ref()),
        Change::Replace { old, bytes } => (Some(bytes), Some(old)),
        Change::Remove { .. } => (None, None),
    };
    let write = |bytes: &Vec<u8>| {
        write_temp(slot, &temp, bytes, like).inspect_err(|_| {
            let _ = rustix::fs::unlinkat(&slot.dir, &temp, AtFlags::empty());
        })
    };
    let new = bytes.map(write).transpose()?;
    Ok(StagedChange { slot, change, temp, second, new, published: false, out: None, plain: how.plain })
}

/// Writes and synchronises a temporary file.
fn write_temp(slot: &Slot, temp: &OsStr, bytes: &[u8], like: Option<&Old>) -> Result<File, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Without a model the process's umask decides, as for any new file.
    let mode = Mode::from_raw_mode(if like.is_some() { 0o600 } else { 0o666 });
    let mut file = File::from(rustix::fs::openat(&slot.dir, temp, flags, mode)?);
    file.write_all(bytes).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
    let made = rustix::fs::fstat(&file)?;
    if let Some(Old { stat: like, attributes, .. }) = like {
        if (like.st_uid, like.st_gid) != (made.st_uid, made.st_gid) {
            // Only where we may; a group that we are in often works when the owner does not.
            let uid = rustix::process::Uid::from_raw(like.st_uid);
            let gid = rustix::process::Gid::from_raw(like.st_gid);
            if rustix::fs::fchown(&file, Some(uid), Some(gid)).is_err() {
                let _ = rustix::fs::fchown(&file, None, Some(gid));
            }
        }
        attributes.give(&file, like.st_mode)?;
    }
    rustix::fs::fsync(&file)?;
    Ok(file)
}

impl StagedChange<'_> {
    fn publish(&mut self, n: usize, at: &dyn Fn(&'static str)) -> Result<(), Fault> {
        let dir = &self.slot.dir;
        let leaf = &self.slot.leaf;
        let io = |e: Errno| Fault::Io(n, e.into());
        match self.change {
            Change::Create { .. } => match self.rename_new(&self.temp, leaf) {
                Ok(()) => self.published = true,
                Err(Errno::EXIST) => return Err(Fault::Conflict(n)),
                Err(e) => return Err(io(e)),
            },
            Change::Replace { old, .. } => {
                if self.plain {
                    return self.replace_plainly(old, n, at);
                }
                match rustix::fs::renameat_with(dir, &self.temp, dir, leaf, RenameFlags::EXCHANGE) {
                    Ok(()) => self.published = true,
                    Err(Errno::NOENT) => return Err(Fault::Conflict(n)),
                    Err(e) if cannot(e) => return self.replace_plainly(old, n, at),
                    Err(e) => return Err(io(e)),
                }
                self.take_out(old, n)?;
            }
            Change::Remove { old } => {
                match self.rename_new(leaf, &self.temp) {
                    Ok(()) => self.published = true,
                    Err(Errno::NOENT) => return Err(Fault::Conflict(n)),
                    Err(e) => return Err(io(e)),
                }
                self.take_out(old, n)?;
            }
        }
        Ok(())
    }

    /// Looks at what came out.
    fn take_out(&mut self, old: &Old, n: usize) -> Result<(), Fault> {
        self.out = open_same(self.slot, &self.temp, old);
        if self.out.is_some() { Ok(()) } else { Err(Fault::Conflict(n)) }
    }

    /// For file systems that cannot exchange: the last look, then the rename.
    fn replace_plainly(&mut self, old: &Old, n: usize, at: &dyn Fn(&'static str)) -> Result<(), Fault> {
        let dir = &self.slot.dir;
        self.out = open_same(self.slot, &self.slot.leaf, old);
        if self.out.is_none() {
            return Err(Fault::Conflict(n));
        }
        // Where there are no hard links either, a kill leaves this file new.
        let _ = rustix::fs::linkat(dir, &self.slot.leaf, dir, &self.second, AtFlags::empty());
        at("rename over");
        rustix::fs::renameat(dir, &self.temp, dir, &self.slot.leaf).map_err(|e| Fault::Io(n, e.into()))?;
        self.published = true;
        Ok(())
    }

    fn still_as_read(&mut self) -> bool {
        let old = match self.change {
            Change::Create { .. } => return true,
            Change::Replace { old, .. } | Change::Remove { old } => old,
        };
        self.out.as_mut().is_some_and(|f| same(f, old))
    }

    /// Renames, but never over anything.
    fn rename_new(&self, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        let dir = &self.slot.dir;
        if !self.plain {
            match rustix::fs::renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE) {
                Err(e) if cannot(e) => {}
                done => return done,
            }
        }
        // A hard link fails when the name is taken.
        rustix::fs::linkat(dir, from, dir, to, AtFlags::empty())?;
        rustix::fs::unlinkat(dir, from, AtFlags::empty())
    }

    /// Whether `name` is our new file, still with our content.
    fn is_ours(&mut self, name: &OsStr) -> bool {
        let (Change::Create { bytes, .. } | Change::Replace { bytes, .. }) = self.change else {
            return false;
        };
        let Some(file) = self.new.as_mut() else { return false };
        let ours = rustix::fs::fstat(&*file).ok().as_ref().map(numbers);
        ours.is_some()
            && ours == identity(self.slot, name)
            && holds(file, bytes.len(), blake3::hash(bytes).as_bytes())
    }

    /// Puts the old file back. A file that another process has put there meanwhile stays.
    fn undo(&mut self) -> Result<(), Errno> {
        if !std::mem::take(&mut self.published) {
            return Ok(());
        }
        let (slot, change) = (self.slot, self.change);
        match change {
            Change::Remove { .. } => match self.rename_new(&self.temp, &slot.leaf) {
                // A new file of that name: the old one was to go anyway.
                Err(Errno::EXIST) => Ok(()),
                done => done,
            },
            _ if !self.is_ours(&slot.leaf) => Ok(()),
            Change::Create { .. } => rustix::fs::unlinkat(&slot.dir, &slot.leaf, AtFlags::empty()),
            Change::Replace { .. } if identity(slot, &self.temp).is_none() => self.write_back(),
            Change::Replace { .. } => self.exchange_back(),
        }
    }

    fn exchange_back(&mut self) -> Result<(), Errno> {
        let slot = self.slot;
        let temp = self.temp.clone();
        let swap =
            || rustix::fs::renameat_with(&slot.dir, &temp, &slot.dir, &slot.leaf, RenameFlags::EXCHANGE);
        match swap() {
            // Another program removed the file at this moment; its former content must not be lost.
            Err(Errno::NOENT) => return self.rename_new(&temp, &slot.leaf),
            done => done?,
        }
        // What came out is not ours: it was put there between the look and the exchange, and is newer.
        if self.is_ours(&temp) { Ok(()) } else { swap() }
    }

    /// After a plain replacement the old content is only in the descriptor.
    fn write_back(&mut self) -> Result<(), Errno> {
        use std::io::Seek;
        let (Some(file), Change::Replace { old, .. }) = (self.out.as_mut(), self.change) else {
            return Err(Errno::IO);
        };
        let mut bytes = Vec::new();
        file.rewind()
            .and_then(|()| file.read_to_end(&mut bytes))
            .map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
        write_temp(self.slot, &self.temp, &bytes, Some(old))?;
        rustix::fs::renameat(&self.slot.dir, &self.temp, &self.slot.dir, &self.slot.leaf)
    }
}

fn take_back(staged: &mut [StagedChange<'_>], fault: Fault) -> Fault {
    let mut torn = Vec::new();
    for one in staged.iter_mut().rev() {
        if let Err(e) = one.undo() {
            let (leaf, temp) = (one.slot.leaf.display(), one.temp.display());
            torn.push(format!(
                "{leaf} could not be put back ({}); its previous content is in {temp}",
                std::io::Error::from(e)
            ));
            // Keep it: it is the only copy.
            (one.temp, one.second) = (OsString::new(), OsString::new());
        }
    }
    drop_temps(staged);
    for one in staged.iter() {
        let _ = rustix::fs::fsync(&one.slot.dir);
    }
    if torn.is_empty() { fault } else { Fault::Torn(format!("{fault}; {}", torn.join("; "))) }
}

fn drop_temps(staged: &[StagedChange<'_>]) {
    for one in staged.iter().filter(|s| !s.temp.is_empty()) {
        // Absent after a creation, or before a removal; the second name is rare.
        for name in [&one.temp, &one.second] {
            let _ = rustix::fs::unlinkat(&one.slot.dir, name, AtFlags::empty());
        }
    }
}

/// The file system (or the kernel) does not know how.
fn cannot(e: Errno) -> bool {
    matches!(e, Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
}

/// Device and inode.
fn identity(slot: &Slot, name: &OsStr) -> Option<(u64, u64)> {
    rustix::fs::statat(&slot.dir, name, AtFlags::SYMLINK_NOFOLLOW).ok().as_ref().map(numbers)
}

#[allow(clippy::unnecessary_cast, reason = "the types of these fields differ between systems")]
fn numbers(stat: &Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// Opens `name` if it is a regular file with the content of `old`.
fn open_same(slot: &Slot, name: &OsStr, old: &Old) -> Option<File> {
    let fd = open_at(slot.dir.as_fd(), Path::new(name), OFlags::RDONLY).ok()?;
    let stat = rustix::fs::fstat(&fd).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_size != old.stat.st_size {
        return None;
    }
    let mut file = File::from(fd);
    same(&mut file, old).then_some(file)
}

/// Whether the content is still what was read.
fn same(file: &mut File, old: &Old) -> bool {
    holds(file, usize::try_from(old.stat.st_size).unwrap_or(0), &old.hash)
}

fn holds(file: &mut File, len: usize, hash: &[u8; 32]) -> bool {
    use std::io::Seek;
    let mut hasher = blake3::Hasher::new();
    file.rewind().is_ok()
        && hasher.update_reader((&mut *file).take(len as u64 + 1)).is_ok()
        && hasher.finalize().as_bytes() == hash
}

#[cfg(test)]
#[path = "commit_tests.rs"]
mod tests;
