//! Removing and renaming, done by the supervisor in the caller's place.
//!
//! To check a path and let the kernel go on would decide about a name that the caller can change meanwhile. Here the
//! folder is opened first, judged by where that descriptor is, and the entry removed in it: what goes is what was judged.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, RenameFlags, StatxFlags, Timespec, renameat_with, statx, unlinkat};
use rustix::io::Errno;
use tiller_seccomp::{Answer, Call, Listener};
use tiller_tool::shell::{BlockedKind, Left};

use crate::supervisor::caller::Caller;
use crate::supervisor::calls::{FileCall, PathArgument};
use crate::supervisor::changes::mark_at;
use crate::supervisor::decide::{self, Judge, Note};
use crate::supervisor::losses::FileState;
use crate::supervisor::names::Leaves;
use crate::supervisor::walk::{Entry, Walk};

/// What a removal or renaming comes to.
type Done = Result<(), Refused>;

/// Why it was not done.
pub(super) struct Refused {
    pub(super) errno: Errno,
    pub(super) note: Option<Note>,
}

impl From<Errno> for Refused {
    fn from(errno: Errno) -> Self {
        Self { errno, note: None }
    }
}

impl Judge {
    /// Does what the call asks for, if the policy allows it.
    pub(super) fn perform(
        &self,
        call: &Call,
        file: &FileCall,
        caller: &Caller,
        listener: &Listener,
    ) -> (Answer, Option<Note>) {
        let done = match file.to {
            Some(to) => self.rename(call, file.at, to, caller, listener),
            None => self.remove(call, file.at, caller, listener),
        };
        match done {
            Ok(()) => (Answer::Return(0), None),
            Err(Refused { errno, note }) => (Answer::Fail(errno.raw_os_error()), note),
        }
    }

    fn entry(&self, call: &Call, at: PathArgument, caller: &Caller) -> Result<Entry, Errno> {
        let path = caller.text(call.args[at.path])?;
        let base = caller.start(at, &call.args, &path)?;
        Walk::new(caller).entry(base, &path)
    }

    fn remove(&self, call: &Call, at: PathArgument, caller: &Caller, listener: &Listener) -> Done {
        let flags = removal_flags(call)?;
        let entry = self.entry(call, at, caller)?;
        let state = self.existing(&entry, BlockedKind::Remove)?;
        // Folders are empty when they go.
        let mut _held = None;
        if !state.folder && flags.is_empty() {
            let path = entry.path()?;
            self.count(&path, state)?;
            _held = self.hold(&path, Leaves::File, BlockedKind::Remove)?;
        }
        // What was read belongs to the caller if it still waits.
        if !listener.waits(call.id) {
            return Err(Errno::INTR.into());
        }
        let (path, was) = (entry.path()?, mark_at(&entry));
        unlinkat(&entry.folder, entry.spelled(), flags)?;
        self.changed(&path, Left::Nothing, was);
        Ok(())
    }

    fn rename(
        &self,
        call: &Call,
        from: PathArgument,
        to: PathArgument,
        caller: &Caller,
        listener: &Listener,
    ) -> Done {
        let flags = if call.number == libc::SYS_renameat2 {
            RenameFlags::from_bits(u32::try_from(call.args[4] & 0xffff_ffff).unwrap_or(u32::MAX))
                .ok_or(Errno::INVAL)?
        } else {
            RenameFlags::empty()
        };
        if flags.contains(RenameFlags::WHITEOUT) {
            return Err(Errno::PERM.into());
        }
        let old = self.entry(call, from, caller)?;
        let new = self.entry(call, to, caller)?;
        let state = self.existing(&old, BlockedKind::Rename)?;
        let (old_path, new_path) = (old.path()?, new.path()?);
        let refused =
            |path: &Path| Refused { errno: Errno::ACCESS, note: Some(Note::path(BlockedKind::Rename, path)) };
        let replaced = self.state(&new).ok();
        let free = match replaced {
            Some(_) => self.scope.may_go(&new_path),
            // What is moved there must not become the folder above a protected name, or a file `.git` in its place.
            None => self.scope.contains(&new_path) && !self.scope.is_above_protected(&new_path),
        };
        if !free {
            return Err(refused(&new_path));
        }
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        if exchange && replaced.is_some() && self.scope.is_above_protected(&old_path) {
            return Err(refused(&old_path));
        }
        self.count_move(&old_path, &new_path, state)?;
        if let (true, Some(replaced)) = (exchange, replaced) {
            self.count_move(&new_path, &old_path, replaced)?;
        }
        if !listener.waits(call.id) {
            return Err(Errno::INTR.into());
        }
        let exchanged = exchange && replaced.is_some();
        let folders = (state.folder, replaced.is_some_and(|replaced| replaced.folder));
        let _held = self.hold_renaming((&old, &new), folders, exchanged)?;
        self.touch(&new_path, state.folder);
        self.touch(&old_path, exchange && replaced.is_some_and(|replaced| replaced.folder));
        let (file, over) = (mark_at(&old), mark_at(&new));
        renameat_with(&old.folder, old.spelled(), &new.folder, new.spelled(), flags)?;
        if let (true, Some(replaced)) = (exchange, replaced) {
            self.exchanged([&old_path, &new_path], [state.folder, replaced.folder], [file, over]);
        } else {
            self.moved((&old_path, &new_path), &new, state.folder, (file, over));
        }
        Ok(())
    }

    /// Counts what a renaming takes away. Nothing is lost by it unless the new place is one from which files go uncounted.
    fn count_move(&self, old: &Path, new: &Path, state: FileState) -> Done {
        if !self.scope.counts {
            return Ok(());
        }
        let mut losses = self.losses.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if self.scope.is_above_workspace(old) {
            let allowed = losses.allows_workspace(old, &self.watch);
            return if allowed { Ok(()) } else { Err(self.too_many()) };
        }
        if !self.scope.is_workspace(old) {
            return Ok(());
        }
        // A file that lies there could be removed without a question.
        let kept = if state.folder { new.join("x") } else { new.to_owned() };
        if losses.is_lost(&kept, OLD, &self.watch) {
            return Ok(());
        }
        let allowed = match state.folder {
            true => losses.allows_folder(old, state_of, &self.watch),
            false => losses.allows(old, state, &self.watch),
        };
        if allowed { Ok(()) } else { Err(self.too_many()) }
    }

    fn too_many(&self) -> Refused {
        let target = format!("more than {} files", self.watch.deletions());
        let note = Note { kind: BlockedKind::Remove, target, minor: false };
        Refused { errno: Errno::ACCESS, note: Some(note) }
    }

    /// What the entry is, if it may be removed.
    fn existing(&self, entry: &Entry, kind: BlockedKind) -> Result<FileState, Refused> {
        let state = self.state(entry)?;
        let path = entry.path()?;
        if self.scope.may_go(&path) || entry.name == b"." || entry.name == b".." {
            // The kernel refuses the two names that every folder has.
            return Ok(state);
        }
        let note = decide::folder_allows(entry).then(|| Note::path(kind, &path));
        Err(Refused { errno: Errno::ACCESS, note })
    }

    fn state(&self, entry: &Entry) -> Result<FileState, Errno> {
        state_at(&entry.folder, entry.name())
    }

    /// Counts a file that goes. A program that stays has no command after which the count would begin anew.
    fn count(&self, path: &Path, state: FileState) -> Done {
        if !self.scope.counts {
            return Ok(());
        }
        let mut losses = self.losses.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if losses.allows(path, state, &self.watch) { Ok(()) } else { Err(self.too_many()) }
    }
}

/// A file that no command has made and that git does not know.
const OLD: FileState =
    FileState { folder: false, modified: Timespec { tv_sec: 0, tv_nsec: 0 }, born: None, size: u64::MAX };

fn state_of(path: &Path) -> Option<FileState> {
    state_at(CWD, path).ok()
}

fn state_at(folder: impl AsFd, name: impl rustix::path::Arg) -> Result<FileState, Errno> {
    let wanted = StatxFlags::TYPE | StatxFlags::SIZE | StatxFlags::MTIME | StatxFlags::BTIME;
    let found = statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, wanted)?;
    let born = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    let time = |t: rustix::fs::StatxTimestamp| Timespec { tv_sec: t.tv_sec, tv_nsec: t.tv_nsec.into() };
    Ok(FileState {
        folder: FileType::from_raw_mode(found.stx_mode.into()) == FileType::Directory,
        modified: time(found.stx_mtime),
        born: born.then(|| time(found.stx_btime)),
        size: found.stx_size,
    })
}

/// The flags of the removal.
fn removal_flags(call: &Call) -> Result<AtFlags, Errno> {
    if call.number != libc::SYS_unlinkat {
        return Ok(if is_rmdir(call.number) { AtFlags::REMOVEDIR } else { AtFlags::empty() });
    }
    match call.args[2] & 0xffff_ffff {
        0 => Ok(AtFlags::empty()),
        flags if flags == libc::AT_REMOVEDIR as u64 => Ok(AtFlags::REMOVEDIR),
        _ => Err(Errno::INVAL),
    }
}

#[cfg(target_arch = "x86_64")]
fn is_rmdir(number: i64) -> bool {
    number == libc::SYS_rmdir
}

#[cfg(not(target_arch = "x86_64"))]
fn is_rmdir(_number: i64) -> bool {
    false
}
