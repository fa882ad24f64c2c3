//! Opening for writing and making names, done by the supervisor in the caller's place.
//!
//! To check a path and let the kernel go on would decide about a name that the caller can change meanwhile, and a path does
//! not say whether its file has another name outside. So the file is opened here, beneath the folder that was judged, and the
//! caller gets its descriptor. Of a program that stays while the person works protected names are kept this way, whether they
//! existed at its start or not: there is no moment to compare them after it.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, chmodat, fcntl_setfl, fstat, ftruncate, linkat, mkdirat,
    mknodat, open, openat, symlinkat,
};
use rustix::io::Errno;
use tiller_seccomp::{Answer, Call, Listener};
use tiller_tool::shell::{BlockedKind, Left};

use crate::linux::landlock::DEVICES;
use crate::supervisor::caller::{Caller, descriptor_number};
use crate::supervisor::calls::{FileCall, OpenFlags, PathArgument};
use crate::supervisor::changes::mark;
use crate::supervisor::decide::{Judge, Note, folder_allows, may_write};
use crate::supervisor::names::Leaves;
use crate::supervisor::network::Outcome;
use crate::supervisor::removal::Refused;
use crate::supervisor::walk::{Entry, Walk, is_proc, path_of};
use crate::writes::folder_above;

/// Trials of an open whose name comes and goes.
const TRIALS: u32 = 8;
/// `/dev/tty`, as `st_rdev` has it.
const CONTROLLING_TERMINAL: u64 = 5 << 8;

/// Pipes of all programs that wait for a reader at the same time. Each takes a thread.
const PIPES: usize = 64;
/// Between two looks for the reader of a pipe.
const PAUSE: Duration = Duration::from_millis(10);

/// The result of a call.
enum Made {
    File(OwnedFd),
    /// A thread opens it.
    Later,
}

impl Judge {
    /// Does what the call asks for, if the policy allows it.
    pub(super) fn create(
        &self,
        call: &Call,
        file: &FileCall,
        caller: &Caller,
        listener: &Arc<Listener>,
    ) -> Outcome {
        let flags = match file.open {
            OpenFlags::Argument(index) => open_flags(call.args[index]),
            OpenFlags::Fixed(flags) => open_flags(flags),
            OpenFlags::None => OFlags::empty(),
            // Its flags lie in memory. Programs use openat(2) where this one does not exist.
            OpenFlags::Structure(_) => return Outcome::of(Answer::Fail(libc::ENOSYS), None),
        };
        if flags.contains(OFlags::PATH) {
            // Such a descriptor changes nothing.
            return Outcome::of(Answer::Continue, None);
        }
        let done = match file.open {
            OpenFlags::None => self.make(call, file.at, caller, listener).map(|()| None),
            _ => self.open(call, file.at, flags, caller, listener).map(Some),
        };
        match done {
            Ok(Some(Made::File(fd))) => {
                let answer = hand_over(&fd, flags, call.id, listener).err();
                Outcome { answer: answer.map(|e| Answer::Fail(e.raw_os_error())), note: None }
            }
            Ok(Some(Made::Later)) => Outcome { answer: None, note: None },
            Ok(None) => Outcome::of(Answer::Return(0), None),
            Err(Refused { errno, note }) => Outcome::of(Answer::Fail(errno.raw_os_error()), note),
        }
    }

    fn open(
        &self,
        call: &Call,
        at: PathArgument,
        flags: OFlags,
        caller: &Caller,
        listener: &Arc<Listener>,
    ) -> Result<Made, Refused> {
        let path = caller.text(call.args[at.path])?;
        let exclusive = flags.contains(OFlags::CREATE | OFlags::EXCL);
        let follows = !exclusive && !flags.contains(OFlags::NOFOLLOW);
        let asked = call.args[at.path + if is_creat(call.number) { 1 } else { 2 }];
        for _ in 0..TRIALS {
            let base = caller.start(at, &call.args, &path)?;
            let mut walk = Walk::new(caller);
            let entry = if follows { walk.last(base, &path)? } else { walk.entry(base, &path)? };
            match entry.open() {
                Ok(_) if exclusive => return Err(Errno::EXIST.into()),
                Ok(fd) => {
                    let fd = if follows { walk.through(&entry, fd)? } else { fd };
                    return self.existing_file(fd, flags, asked, caller, (call, listener));
                }
                Err(Errno::NOENT) if flags.contains(OFlags::CREATE) && !entry.slash => {}
                Err(Errno::NOENT) if flags.contains(OFlags::CREATE) => return Err(Errno::ISDIR.into()),
                Err(e) => return Err(e.into()),
            }
            let full = self.may_make(&entry, false)?;
            let _held = self.hold(&full, Leaves::File, BlockedKind::Create)?;
            still_waits(call, listener)?;
            let new =
                flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
            let mode = mode(asked, caller);
            match openat(&entry.folder, entry.name(), new, mode.mode) {
                Err(Errno::EXIST) if !exclusive => {}
                Err(e) => return Err(e.into()),
                Ok(fd) => {
                    self.changed(&full, Left::File(mark(&fstat(&fd)?)), None);
                    if writes(flags) {
                        self.look_at(&full, &fd, true);
                    }
                    mode.complete(&fd)?;
                    return Ok(Made::File(fd));
                }
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// Opens a file that exists. `asked`: the mode of a temporary one.
    fn existing_file(
        &self,
        fd: OwnedFd,
        flags: OFlags,
        asked: u64,
        caller: &Caller,
        (call, listener): (&Call, &Arc<Listener>),
    ) -> Result<Made, Refused> {
        let file = fstat(&fd)?;
        let kind = FileType::from_raw_mode(file.st_mode);
        let temporary = flags.contains(OFlags::TMPFILE);
        match kind {
            FileType::Symlink => return Err(Errno::LOOP.into()),
            FileType::Directory if !temporary => return Err(Errno::ISDIR.into()),
            FileType::Socket => return Err(Errno::NXIO.into()),
            _ if flags.contains(OFlags::DIRECTORY) && kind != FileType::Directory => {
                return Err(Errno::NOTDIR.into());
            }
            _ => {}
        }
        let fd = self.judged(fd, &file, flags, caller)?;
        still_waits(call, listener)?;
        let here = format!("/proc/self/fd/{}", fd.as_raw_fd());
        if temporary {
            let mode = mode(asked, caller);
            let made = open(here, (flags - OFlags::NOFOLLOW) | OFlags::CLOEXEC, mode.mode)?;
            mode.complete(&made)?;
            return Ok(Made::File(made));
        }
        let of_call = flags;
        let mut flags = flags - OFlags::CREATE - OFlags::EXCL - OFlags::NOFOLLOW;
        flags |= OFlags::NOCTTY | OFlags::CLOEXEC;
        if kind != FileType::Fifo {
            let opened = open(here, flags, Mode::empty())?;
            if kind == FileType::RegularFile && !only_reads(flags) {
                let path = path_of(&opened)?;
                self.changed(&path, Left::File(mark(&file)), Some(mark(&file)));
                if writes(flags) {
                    self.look_at(&path, &opened, true);
                }
            }
            return Ok(Made::File(opened));
        }
        match open(&*here, flags | OFlags::NONBLOCK, Mode::empty()) {
            // There is no reader yet. Waiting for it here would keep all other calls waiting.
            Err(Errno::NXIO) if !flags.contains(OFlags::NONBLOCK) => {
                wait_for_reader(fd, (flags, of_call), call.id, listener)?;
                Ok(Made::Later)
            }
            Err(e) => Err(e.into()),
            Ok(pipe) => {
                fcntl_setfl(&pipe, flags & (OFlags::APPEND | OFlags::NONBLOCK))?;
                Ok(Made::File(pipe))
            }
        }
    }

    /// The file, if it may be written.
    fn judged(&self, fd: OwnedFd, file: &Stat, flags: OFlags, caller: &Caller) -> Result<OwnedFd, Refused> {
        let path = path_of(&fd)?;
        let kind = FileType::from_raw_mode(file.st_mode);
        if kind == FileType::CharacterDevice {
            #[allow(clippy::useless_conversion, reason = "the type differs between architectures")]
            let device = u64::from(file.st_rdev);
            if device == CONTROLLING_TERMINAL {
                return caller.terminal().ok_or_else(|| Errno::NXIO.into());
            }
            let terminals =
                || self.scope.namespaces && (path.starts_with("/dev/pts") || path == Path::new("/dev/ptmx"));
            let known = DEVICES.iter().any(|device| path == Path::new(device)) || terminals();
            // A terminal that it was given.
            let own = || caller.streams().any(|fd| fstat(fd).is_ok_and(|own| own.st_rdev == file.st_rdev));
            return if known || own() { Ok(fd) } else { Err(Errno::ACCESS.into()) };
        }
        if is_unnamed(&path, file) || is_own(&fd, &path, caller)? {
            return Ok(fd);
        }
        let only_reads = only_reads(flags);
        if self.scope.contains(&path) {
            if kind == FileType::RegularFile && self.links.lead_out(&path, file) {
                return Err(Refused {
                    errno: Errno::ACCESS,
                    note: Some(Note::linked(BlockedKind::Write, &path)),
                });
            }
            if !only_reads {
                self.hold(&path, Leaves::File, BlockedKind::Write)?;
            }
            self.touch(&path, false);
            return Ok(fd);
        }
        // This process may have an administrator's rights, the caller has none of them.
        let own = file.st_uid == rustix::process::geteuid().as_raw() || file.st_mode & 0o004 != 0;
        if only_reads && own && kind == FileType::RegularFile && !self.scope.protects(&path) {
            return Ok(fd);
        }
        let note = (!only_reads && may_write(&path)).then(|| Note::path(BlockedKind::Write, &path));
        Err(Refused { errno: Errno::ACCESS, note })
    }

    /// A call that makes a name, or cuts a file.
    fn make(
        &self,
        call: &Call,
        at: PathArgument,
        caller: &Caller,
        listener: &Arc<Listener>,
    ) -> Result<(), Refused> {
        let path = caller.text(call.args[at.path])?;
        let base = caller.start(at, &call.args, &path)?;
        let mut walk = Walk::new(caller);
        if call.number == libc::SYS_truncate {
            let length = i64::from_ne_bytes(call.args[1].to_ne_bytes());
            let length = u64::try_from(length).map_err(|_| Errno::INVAL)?;
            let fd = walk.target(base, &path)?;
            let file =
                self.existing_file(fd, OFlags::WRONLY | OFlags::NONBLOCK, 0, caller, (call, listener))?;
            return match file {
                Made::File(file) => Ok(ftruncate(file, length)?),
                Made::Later => Err(Errno::INVAL.into()),
            };
        }
        let entry = walk.entry(base, &path)?;
        if entry.name == b"." || entry.name == b".." || entry.open().is_ok() {
            return Err(Errno::EXIST.into());
        }
        let how = NewName::of(call, at, caller)?;
        if let NewName::Link(file) = &how {
            let now = fstat(file)?;
            if FileType::from_raw_mode(now.st_mode) == FileType::CharacterDevice {
                return Err(Errno::PERM.into());
            }
            let path = path_of(file)?;
            self.touch(&path, false);
            // A file that is elsewhere too is judged when it is opened for writing.
            // Another name of a protected one could be written later.
            let named = folder_above(self.scope.workspace(), &path, false).is_some();
            if !is_unnamed(&path, &now) && (named || !self.scope.contains(&path)) {
                return Err(Refused {
                    errno: Errno::ACCESS,
                    note: Some(Note::path(BlockedKind::Create, &path)),
                });
            }
        }
        let full = self.may_make(&entry, matches!(how, NewName::Folder(_)))?;
        let _held = match &how {
            NewName::Folder(_) => None,
            NewName::Node(..) => self.hold(&full, Leaves::File, BlockedKind::Create)?,
            NewName::Symlink(_) | NewName::Link(_) => self.hold(&full, Leaves::Link, BlockedKind::Create)?,
        };
        still_waits(call, listener)?;
        let folder = &entry.folder;
        let mut left = Left::Other;
        match how {
            NewName::Folder(mode) => {
                mkdirat(folder, entry.spelled(), mode.mode)?;
                let made = openat(
                    folder,
                    entry.name(),
                    OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                    Mode::empty(),
                );
                made.and_then(|made| mode.complete(&made))?;
            }
            NewName::Node(kind, mode) => mknodat(folder, entry.spelled(), kind, mode.mode, 0)?,
            NewName::Symlink(target) => {
                // It can turn a pointer that leads through it.
                self.touch(&full, true);
                symlinkat(target, folder, entry.spelled())?;
            }
            NewName::Link(file) => {
                let from = format!("/proc/self/fd/{}", file.as_raw_fd());
                let (source, was) = (path_of(&file)?, mark(&fstat(&file)?));
                linkat(CWD, from, folder, entry.name(), AtFlags::SYMLINK_FOLLOW)?;
                self.changed(&source, Left::Same, Some(was));
                left = Left::File(was);
            }
        }
        self.changed(&full, left, None);
        Ok(())
    }

    /// The path of a name that the policy lets be made. `folder`: it becomes one. Nothing else may stand above a protected
    /// name: a link, or a file `.git`, would lead into a folder of the program's.
    fn may_make(&self, entry: &Entry, folder: bool) -> Result<PathBuf, Refused> {
        let full = entry.path()?;
        if self.scope.contains(&full) && (folder || !self.scope.is_above_protected(&full)) {
            self.touch(&full, folder);
            return Ok(full);
        }
        let note = folder_allows(entry).then(|| Note::path(BlockedKind::Create, &full));
        Err(Refused { errno: Errno::ACCESS, note })
    }
}

impl Outcome {
    fn of(answer: Answer, note: Option<Note>) -> Self {
        Self { answer: Some(answer), note }
    }
}

/// Returns true if an open with these flags changes nothing.
fn only_reads(flags: OFlags) -> bool {
    flags & (OFlags::RWMODE | OFlags::TRUNC) == OFlags::RDONLY
}

/// Returns true if a descriptor with these flags can write.
fn writes(flags: OFlags) -> bool {
    matches!(flags & OFlags::RWMODE, OFlags::WRONLY | OFlags::RDWR)
}

/// Fails if the caller no longer waits: the arguments that were read need not be its own then.
fn still_waits(call: &Call, listener: &Listener) -> Result<(), Errno> {
    if listener.waits(call.id) { Ok(()) } else { Err(Errno::INTR) }
}

fn hand_over(fd: &OwnedFd, flags: OFlags, call: u64, listener: &Listener) -> Result<(), Errno> {
    let handed = listener.hand_over(call, fd, flags.contains(OFlags::CLOEXEC));
    handed.map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::BADF))
}

/// Opens a pipe for writing once it has a reader, as long as the caller waits for that. `asked`: the flags of the call.
fn wait_for_reader(
    pipe: OwnedFd,
    (flags, asked): (OFlags, OFlags),
    call: u64,
    listener: &Arc<Listener>,
) -> Result<(), Errno> {
    static WAITING: AtomicUsize = AtomicUsize::new(0);
    if WAITING.fetch_add(1, Ordering::Relaxed) >= PIPES {
        WAITING.fetch_sub(1, Ordering::Relaxed);
        return Err(Errno::AGAIN);
    }
    let listener = Arc::clone(listener);
    let wait = move || {
        let _one = Waiting(&WAITING);
        while listener.waits(call) {
            let here = format!("/proc/self/fd/{}", pipe.as_raw_fd());
            let opened = match open(here, flags | OFlags::NONBLOCK, Mode::empty()) {
                Err(Errno::NXIO) => {
                    std::thread::park_timeout(PAUSE);
                    continue;
                }
                opened => opened,
            };
            let given = opened.and_then(|file| {
                fcntl_setfl(&file, flags & OFlags::APPEND)?;
                hand_over(&file, asked, call, &listener)
            });
            if let Err(e) = given {
                let _ = listener.answer(call, Answer::Fail(e.raw_os_error()));
            }
            return;
        }
    };
    let thread = std::thread::Builder::new().name("tiller-pipe".into()).stack_size(128 << 10);
    thread.spawn(wait).map(drop).map_err(|_| {
        WAITING.fetch_sub(1, Ordering::Relaxed);
        Errno::AGAIN
    })
}

/// Counts a thread that waits.
struct Waiting(&'static AtomicUsize);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Files in /proc by which a process sets its own names and what is done with it when memory is short.
const OWN: [&str; 4] = ["comm", "coredump_filter", "oom_score_adj", "timerslack_ns"];

/// True for files in /proc that the caller may write about itself.
fn is_own(fd: &OwnedFd, path: &Path, caller: &Caller) -> Result<bool, Errno> {
    if !OWN.iter().any(|name| path.ends_with(name)) || !is_proc(fd)? {
        return Ok(false);
    }
    let process = caller.process().ok_or(Errno::SRCH)?;
    Ok(path.starts_with(format!("/proc/{process}")))
}

/// True for a file without a name in a folder, which is the caller's alone: a pipe, a removed file.
fn is_unnamed(path: &Path, file: &Stat) -> bool {
    // Some file systems count no links.
    !path.is_absolute() || file.st_nlink == 0 && path.as_os_str().as_encoded_bytes().ends_with(b" (deleted)")
}

/// The kernel reads the lower half of an argument of flags.
fn open_flags(argument: u64) -> OFlags {
    OFlags::from_bits_retain(u32::try_from(argument & 0xffff_ffff).unwrap_or_default())
}

/// The name that a call makes.
enum NewName {
    Folder(NewMode),
    Node(FileType, NewMode),
    /// Its target.
    Symlink(Vec<u8>),
    /// Another name of this file.
    Link(OwnedFd),
}

impl NewName {
    fn of(call: &Call, at: PathArgument, caller: &Caller) -> Result<Self, Errno> {
        let next = || call.args[at.path + 1];
        let number = call.number;
        if number == libc::SYS_mkdirat || is_old(number, Old::Mkdir) {
            return Ok(Self::Folder(mode(next(), caller)));
        }
        if number == libc::SYS_mknodat || is_old(number, Old::Mknod) {
            let bits = u32::try_from(next() & 0xffff_ffff).unwrap_or_default();
            let kind = match bits & libc::S_IFMT {
                0 | libc::S_IFREG => FileType::RegularFile,
                libc::S_IFIFO => FileType::Fifo,
                libc::S_IFSOCK => FileType::Socket,
                _ => return Err(Errno::PERM),
            };
            return Ok(Self::Node(kind, mode(next(), caller)));
        }
        if number == libc::SYS_symlinkat || is_old(number, Old::Symlink) {
            return Ok(Self::Symlink(caller.text(call.args[0])?));
        }
        // A link: of the older call, the first argument is the path.
        let (from, flags) = match number == libc::SYS_linkat {
            true => (PathArgument { folder: Some(0), path: 1 }, call.args[4] & 0xffff_ffff),
            false => (PathArgument { folder: None, path: 0 }, 0),
        };
        let (follow, empty) = (libc::AT_SYMLINK_FOLLOW as u64, libc::AT_EMPTY_PATH as u64);
        if flags & !(follow | empty) != 0 {
            return Err(Errno::INVAL);
        }
        let path = caller.text(call.args[from.path])?;
        if path.is_empty() && flags & empty != 0 {
            return caller.descriptor(descriptor_number(call.args[0])).map(Self::Link);
        }
        let base = caller.start(from, &call.args, &path)?;
        let mut walk = Walk::new(caller);
        match flags & follow {
            0 => walk.entry(base, &path)?.open().map(Self::Link),
            _ => walk.target(base, &path).map(Self::Link),
        }
    }
}

/// Calls that only older architectures have.
#[derive(Clone, Copy)]
enum Old {
    Creat,
    Mkdir,
    Mknod,
    Symlink,
}

#[cfg(target_arch = "x86_64")]
fn is_old(number: i64, call: Old) -> bool {
    number
        == match call {
            Old::Creat => libc::SYS_creat,
            Old::Mkdir => libc::SYS_mkdir,
            Old::Mknod => libc::SYS_mknod,
            Old::Symlink => libc::SYS_symlink,
        }
}

#[cfg(not(target_arch = "x86_64"))]
fn is_old(_number: i64, call: Old) -> bool {
    match call {
        Old::Creat | Old::Mkdir | Old::Mknod | Old::Symlink => false,
    }
}

fn is_creat(number: i64) -> bool {
    is_old(number, Old::Creat)
}

/// The mode of a new file: that of the call without the caller's mask.
#[derive(Clone, Copy, Debug)]
struct NewMode {
    mode: Mode,
    /// This process has a stricter mask.
    masked: bool,
}

impl NewMode {
    /// Gives a new file what the mask of this process has kept from it.
    fn complete(self, file: &OwnedFd) -> Result<(), Errno> {
        if self.masked {
            // A folder can have inherited the bit of its group.
            let inherited = Mode::from_raw_mode(fstat(file)?.st_mode & 0o7000);
            let here = format!("/proc/self/fd/{}", file.as_raw_fd());
            chmodat(CWD, here, self.mode | inherited, AtFlags::empty())?;
        }
        Ok(())
    }
}

fn mode(argument: u64, caller: &Caller) -> NewMode {
    let (theirs, own) = (caller.mask(), Caller::new(std::process::id()).mask());
    let asked = u32::try_from(argument & 0o7777).unwrap_or_default() & !theirs;
    NewMode { mode: Mode::from_raw_mode(asked), masked: asked & own != 0 }
}
