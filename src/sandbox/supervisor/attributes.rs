//! Modes, owners and times of files, changed by the supervisor in the caller's place: Landlock does not see these calls.
//!
//! The file is opened first, judged by where that descriptor is, and changed by the descriptor.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid, chmodat,
    chownat, fstat, utimensat,
};
use rustix::io::Errno;
use tiller_seccomp::{Answer, Call, Listener};
use tiller_tool::shell::{BlockedKind, Left};

use crate::supervisor::caller::{Caller, descriptor_number};
use crate::supervisor::calls::PathArgument;
use crate::supervisor::changes::mark;
use crate::supervisor::decide::{Judge, Note};
use crate::supervisor::names::Leaves;
use crate::supervisor::removal::Refused;
use crate::supervisor::walk::{Walk, path_of};
use crate::writes::Holding;

/// Which file a call means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// The descriptor in the first argument.
    Descriptor,
    Path {
        at: PathArgument,
        /// Index of the flags.
        flags: Option<usize>,
        /// A link at the end is meant itself.
        link: bool,
    },
}

/// What a call changes, with the index of its first argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Mode(usize),
    Owner(usize),
    Times(usize, Unit),
}

/// Of the two times that a pointer leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "the older calls are not on this architecture")
    )]
    Seconds,
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "the older calls are not on this architecture")
    )]
    Microseconds,
    Nanoseconds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AttributeCall {
    number: i64,
    target: Target,
    change: Change,
}

const fn on(number: i64, target: Target, change: Change) -> AttributeCall {
    AttributeCall { number, target, change }
}

#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "the older calls are not on this architecture")
)]
const fn here(link: bool) -> Target {
    Target::Path { at: PathArgument { folder: None, path: 0 }, flags: None, link }
}

const fn at(flags: Option<usize>) -> Target {
    Target::Path { at: PathArgument { folder: Some(0), path: 1 }, flags, link: false }
}

const EVERYWHERE: &[AttributeCall] = &[
    on(libc::SYS_fchmod, Target::Descriptor, Change::Mode(1)),
    on(libc::SYS_fchmodat, at(None), Change::Mode(2)),
    on(libc::SYS_fchown, Target::Descriptor, Change::Owner(1)),
    on(libc::SYS_fchownat, at(Some(4)), Change::Owner(2)),
    on(libc::SYS_utimensat, at(Some(3)), Change::Times(2, Unit::Nanoseconds)),
];

#[cfg(target_arch = "x86_64")]
const HERE: &[AttributeCall] = &[
    on(libc::SYS_chmod, here(false), Change::Mode(1)),
    on(libc::SYS_chown, here(false), Change::Owner(1)),
    on(libc::SYS_lchown, here(true), Change::Owner(1)),
    on(libc::SYS_utime, here(false), Change::Times(1, Unit::Seconds)),
    on(libc::SYS_utimes, here(false), Change::Times(1, Unit::Microseconds)),
    on(libc::SYS_futimesat, at(None), Change::Times(2, Unit::Microseconds)),
];
#[cfg(not(target_arch = "x86_64"))]
const HERE: &[AttributeCall] = &[];

fn find(number: i64) -> Option<&'static AttributeCall> {
    EVERYWHERE.iter().chain(HERE).find(|call| call.number == number)
}

/// Numbers of the calls that are done here.
pub(crate) fn numbers() -> impl Iterator<Item = i64> {
    EVERYWHERE.iter().chain(HERE).map(|call| call.number)
}

impl Judge {
    /// Does what the call asks for, if the file may be changed. `None`: it is another call.
    pub(super) fn attributes(
        &self,
        call: &Call,
        caller: &Caller,
        listener: &Listener,
    ) -> Option<(Answer, Option<Note>)> {
        let known = find(call.number)?;
        let file = match target(call, known, caller) {
            Ok(file) => file,
            Err(e) => return Some((Answer::Fail(e.raw_os_error()), None)),
        };
        match self.may_change(&file) {
            Ok(None) => {}
            Ok(Some(note)) => return Some((Answer::Fail(libc::EPERM), Some(note))),
            Err(e) => return Some((Answer::Fail(e.raw_os_error()), None)),
        }
        let change = match read(call, known.change, caller) {
            // What was read belongs to the caller if it still waits.
            Ok(change) if listener.waits(call.id) => change,
            Ok(_) => return Some((Answer::Fail(libc::EINTR), None)),
            Err(e) => return Some((Answer::Fail(e.raw_os_error()), None)),
        };
        if let Some(note) = self.links_out(&file, &change) {
            return Some((Answer::Fail(libc::EPERM), Some(note)));
        }
        let path = path_of(&file).ok();
        if let (Values::Mode(_), Some(path)) = (&change, &path) {
            // A hook that can run now.
            self.touch(path, false);
        }
        let _held = match self.hold_mode(&file, path.as_deref(), &change) {
            Ok(held) => held,
            Err(Refused { errno, note }) => return Some((Answer::Fail(errno.raw_os_error()), note)),
        };
        let (times, before) = (matches!(change, Values::Times(_)), fstat(&file).ok());
        let answer = match apply(&file, change) {
            Ok(()) => {
                if let (Some(path), Some(before)) = (path, before) {
                    self.attributes_changed(&path, (&file, &before), times);
                }
                Answer::Return(0)
            }
            Err(e) => Answer::Fail(e.raw_os_error()),
        };
        Some((answer, None))
    }

    /// Notes a file with a protected name that another mode may make a program.
    fn hold_mode(
        &self,
        file: &OwnedFd,
        path: Option<&Path>,
        change: &Values,
    ) -> Result<Option<Holding<'_>>, Refused> {
        let is_file = FileType::from_raw_mode(fstat(file)?.st_mode) == FileType::RegularFile;
        match (change, path) {
            (Values::Mode(_), Some(path)) if is_file => {
                self.hold(path, Leaves::File, BlockedKind::Attributes)
            }
            _ => Ok(None),
        }
    }

    /// Notes it for the call. `times`: nothing else of the file has changed.
    fn attributes_changed(&self, path: &Path, (fd, before): (&OwnedFd, &Stat), times: bool) {
        let file = FileType::from_raw_mode(before.st_mode) == FileType::RegularFile;
        let left = if times { Left::Same } else { Left::File(mark(before)) };
        self.changed(path, if file { left } else { Left::Other }, file.then(|| mark(before)));
        if file {
            self.look_at(path, fd, false);
        }
    }

    /// Why its mode or owner may not be changed: the file is also elsewhere.
    fn links_out(&self, file: &OwnedFd, change: &Values) -> Option<Note> {
        let (now, path) = (fstat(file).ok()?, path_of(file).ok()?);
        let changes = match change {
            Values::Mode(mode) => Mode::from_raw_mode(now.st_mode) != *mode,
            Values::Owner(..) => true,
            Values::Times(_) => false,
        };
        let out = changes && self.links.lead_out(&path, &now);
        out.then(|| Note::linked(BlockedKind::Attributes, &path))
    }

    /// Why a file may not be changed.
    fn may_change(&self, file: &OwnedFd) -> Result<Option<Note>, Errno> {
        let path = path_of(file)?;
        // What has no name in a folder is the caller's alone: pipes, sockets, removed files.
        let now = fstat(file)?;
        let unnamed = !path.is_absolute() || now.st_nlink == 0;
        if unnamed || self.scope.contains(&path) {
            return Ok(None);
        }
        if now.st_uid != rustix::process::geteuid().as_raw() {
            // It would fail without a sandbox, too.
            return Err(Errno::PERM);
        }
        Ok(Some(Note::path(BlockedKind::Attributes, &path)))
    }
}

/// The file that a call means.
fn target(call: &Call, known: &AttributeCall, caller: &Caller) -> Result<OwnedFd, Errno> {
    let Target::Path { at, flags, link } = known.target else {
        return caller.descriptor(descriptor_number(call.args[0]));
    };
    let flags = flags.map_or(0, |index| call.args[index] & 0xffff_ffff);
    let known_flags = (libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH) as u64;
    if flags & !known_flags != 0 {
        return Err(Errno::INVAL);
    }
    // Calls for times mean the descriptor when there is no path.
    if call.args[at.path] == 0 && matches!(known.change, Change::Times(..)) && at.folder.is_some() {
        return caller.descriptor(descriptor_number(call.args[0]));
    }
    let path = caller.text(call.args[at.path])?;
    if path.is_empty() && flags & (libc::AT_EMPTY_PATH as u64) != 0 {
        return caller.base(at, &call.args);
    }
    let base = caller.start(at, &call.args, &path)?;
    let mut walk = Walk::new(caller);
    if link || flags & (libc::AT_SYMLINK_NOFOLLOW as u64) != 0 {
        return walk.entry(base, &path)?.open();
    }
    walk.target(base, &path)
}

/// A change with its values.
#[derive(Clone, Debug)]
enum Values {
    Mode(Mode),
    Owner(u32, u32),
    Times(Timestamps),
}

fn read(call: &Call, change: Change, caller: &Caller) -> Result<Values, Errno> {
    let low = |index: usize| u32::try_from(call.args[index] & 0xffff_ffff).unwrap_or(u32::MAX);
    Ok(match change {
        Change::Mode(index) => Values::Mode(Mode::from_raw_mode(low(index) & 0o7777)),
        Change::Owner(index) => Values::Owner(low(index), low(index + 1)),
        Change::Times(index, unit) => Values::Times(times(call.args[index], unit, caller)?),
    })
}

fn times(pointer: u64, unit: Unit, caller: &Caller) -> Result<Timestamps, Errno> {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    if pointer == 0 {
        return Ok(Timestamps { last_access: now, last_modification: now });
    }
    let number = |bytes: &[u8], at: usize| {
        bytes.get(8 * at..8 * at + 8).and_then(|b| b.try_into().ok()).map_or(0, i64::from_ne_bytes)
    };
    let all = |bytes: &[u8], factor: i64| -> Result<Timestamps, Errno> {
        let time = |at: usize| {
            let (tv_sec, part) = (number(bytes, at), number(bytes, at + 1));
            // Microseconds have no special values.
            if factor > 1 && !(0..1_000_000).contains(&part) {
                return Err(Errno::INVAL);
            }
            Ok(Timespec { tv_sec, tv_nsec: part * factor })
        };
        Ok(Timestamps { last_access: time(0)?, last_modification: time(2)? })
    };
    match unit {
        Unit::Seconds => {
            let bytes: [u8; 16] = caller.bytes(pointer)?;
            let time = |at| Timespec { tv_sec: number(&bytes, at), tv_nsec: 0 };
            Ok(Timestamps { last_access: time(0), last_modification: time(1) })
        }
        Unit::Microseconds => all(&caller.bytes::<32>(pointer)?, 1000),
        Unit::Nanoseconds => all(&caller.bytes::<32>(pointer)?, 1),
    }
}

/// Changes the file. The caller has fewer rights than this process: what it could not do is refused.
fn apply(file: &OwnedFd, values: Values) -> Result<(), Errno> {
    let now = fstat(file)?;
    let own = now.st_uid == rustix::process::geteuid().as_raw();
    match values {
        Values::Mode(mode) if own => {
            chmodat(CWD, format!("/proc/self/fd/{}", file.as_raw_fd()), mode, AtFlags::empty())
        }
        Values::Owner(user, group) => {
            let same = |new: u32, old: u32| new == u32::MAX || new == old;
            let root = rustix::process::geteuid().is_root();
            if !(same(user, now.st_uid) && same(group, now.st_gid)) && (root || !own) {
                return Err(Errno::PERM);
            }
            let some = |id: u32| (id != u32::MAX).then_some(id);
            let (user, group) = (some(user).map(Uid::from_raw), some(group).map(Gid::from_raw));
            chownat(file, "", user, group, AtFlags::EMPTY_PATH)
        }
        Values::Times(times) if own || only_now(&times) => utimensat(file, "", &times, AtFlags::EMPTY_PATH),
        Values::Mode(_) | Values::Times(_) => Err(Errno::PERM),
    }
}

/// What write access to a file is enough for: its times become the present.
fn only_now(times: &Timestamps) -> bool {
    let harmless = |time: Timespec| time.tv_nsec == UTIME_NOW || time.tv_nsec == UTIME_OMIT;
    harmless(times.last_access) && harmless(times.last_modification)
}
