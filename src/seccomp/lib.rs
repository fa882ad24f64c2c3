//! Seccomp user notification: a filter whose matches are decided by another process.
//!
//! A thread installs a filter with [`install`] and hands the listener to its supervisor. Each matching system call of
//! the thread and its descendants then waits until the supervisor has taken it ([`Listener::receive`]) and answered
//! ([`Listener::answer`]). When every descriptor of the listener is closed, waiting and later calls fail with ENOSYS.
//!
//! This crate exists for the calls that no safe crate offers: one `seccomp(2)`, five `ioctl(2)`, and one `mallopt(3)`
//! ([`heap`]). Each `unsafe` block has its reason beside it.
//!
//! It uses no other room. Not here: which calls are waited for, what they mean, and the answers (`sandbox/supervisor`).

#![cfg(target_os = "linux")]

#[cfg(target_env = "gnu")]
pub mod heap;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// One instruction of a filter, as the kernel reads it (`struct sock_filter`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    pub code: u16,
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

/// What a filter returns so that its supervisor decides.
pub const NOTIFY: u32 = 0x7fc0_0000;

const _: () = assert!(size_of::<Instruction>() == size_of::<libc::sock_filter>());
const _: () = assert!(align_of::<Instruction>() >= align_of::<libc::sock_filter>());

/// Installs a filter for this thread and what it starts. It cannot be removed.
///
/// Once a supervisor has received a call, only a fatal signal interrupts it (Linux 5.19): otherwise a call that the
/// supervisor has performed could be repeated.
///
/// # Errors
/// Of the kernel: `EBUSY` when a filter above has a listener, `EINVAL` for a malformed filter or an older kernel, `EACCES`
/// without `no_new_privs`.
pub fn install(filter: &[Instruction]) -> io::Result<Listener> {
    let len = u16::try_from(filter.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // The kernel only reads the instructions.
    let program = libc::sock_fprog { len, filter: filter.as_ptr().cast_mut().cast() };
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    // SAFETY: `program` and the instructions that it points to live until the call returns; their number is `len`, and
    // `Instruction` has the size of `sock_filter` (checked above). The kernel checks the filter itself.
    #[allow(unsafe_code, reason = "seccomp(2) with a listener is in no safe crate")]
    let fd = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::c_ulong::from(libc::SECCOMP_SET_MODE_FILTER),
            flags,
            std::ptr::from_ref(&program),
        )
    };
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for this call, so nothing else owns it.
    #[allow(unsafe_code, reason = "the descriptor comes from a bare system call")]
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    Ok(Listener { fd })
}

/// The supervisor's end of a filter.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
}

/// `struct seccomp_data`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Data {
    nr: i32,
    arch: u32,
    instruction_pointer: u64,
    args: [u64; 6],
}

/// `struct seccomp_notif`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Received {
    id: u64,
    pid: u32,
    flags: u32,
    data: Data,
}

/// `struct seccomp_notif_resp`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Response {
    id: u64,
    val: i64,
    error: i32,
    flags: u32,
}

const _: () = assert!(size_of::<Received>() == size_of::<libc::seccomp_notif>());
const _: () = assert!(size_of::<Response>() == size_of::<libc::seccomp_notif_resp>());

/// A system call that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Names it in an answer.
    pub id: u64,
    /// The calling thread, in the number space of this process; 0: it is not visible from here.
    pub thread: u32,
    pub number: i64,
    pub args: [u64; 6],
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The kernel performs it as if there were no filter. The caller may have changed what its arguments point to, so
    /// this decides nothing: something else must hold.
    Continue,
    /// It returns this without being performed.
    Return(i64),
    /// It fails with this number of an error, without being performed.
    Fail(i32),
}

impl Listener {
    /// The next call. Blocks until there is one: wait for the descriptor to be readable first. `None`: the caller was
    /// ended meanwhile.
    ///
    /// # Errors
    /// When the listener cannot be read.
    pub fn receive(&self) -> io::Result<Option<Call>> {
        // The kernel refuses a structure that is not zero.
        let mut got = Received::default();
        // SAFETY: the request writes one `seccomp_notif` at the pointer; `Received` has its layout and size (checked
        // above), is exclusively borrowed, and any bytes are valid in it.
        #[allow(unsafe_code, reason = "a request of the listener")]
        let done = unsafe {
            libc::ioctl(self.fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, std::ptr::from_mut(&mut got))
        };
        if done == 0 {
            let Data { nr, args, .. } = got.data;
            return Ok(Some(Call { id: got.id, thread: got.pid, number: nr.into(), args }));
        }
        match io::Error::last_os_error() {
            e if matches!(e.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => Ok(None),
            e => Err(e),
        }
    }

    /// Answers a call. True when the caller was still waiting.
    ///
    /// # Errors
    /// When the listener cannot be written.
    pub fn answer(&self, id: u64, answer: Answer) -> io::Result<bool> {
        let mut response = Response { id, ..Response::default() };
        match answer {
            Answer::Continue => response.flags = 1,
            Answer::Return(value) => response.val = value,
            // An error of 0 would be a success.
            Answer::Fail(number) => response.error = -number.abs().max(1),
        }
        // SAFETY: the request reads one `seccomp_notif_resp` at the pointer; `Response` has its layout and size (checked
        // above).
        #[allow(unsafe_code, reason = "a request of the listener")]
        let done = unsafe {
            libc::ioctl(
                self.fd.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                std::ptr::from_mut(&mut response),
            )
        };
        if done == 0 {
            return Ok(true);
        }
        match io::Error::last_os_error() {
            // The caller was ended, or a descriptor that was handed over has answered already.
            e if matches!(e.raw_os_error(), Some(libc::ENOENT | libc::EINPROGRESS)) => Ok(false),
            e => Err(e),
        }
    }

    /// Lets a call return a new descriptor of this file in the caller's process.
    ///
    /// # Errors
    /// When the caller can have no further descriptor, or does not wait any more.
    pub fn hand_over(&self, id: u64, file: impl AsFd, closes_on_exec: bool) -> io::Result<()> {
        let request = libc::seccomp_notif_addfd {
            id,
            flags: u32::try_from(libc::SECCOMP_ADDFD_FLAG_SEND).map_err(io::Error::other)?,
            srcfd: u32::try_from(file.as_fd().as_raw_fd()).map_err(io::Error::other)?,
            newfd: 0,
            newfd_flags: if closes_on_exec { libc::O_CLOEXEC.unsigned_abs() } else { 0 },
        };
        // SAFETY: the request reads one `seccomp_notif_addfd` at the pointer; both descriptors are open while it runs.
        #[allow(unsafe_code, reason = "a request of the listener")]
        let done = unsafe {
            libc::ioctl(self.fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, std::ptr::from_ref(&request))
        };
        if done >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Whether the caller still waits: what was read through the number of its thread before was its own.
    pub fn waits(&self, id: u64) -> bool {
        // SAFETY: the request reads one `u64` at the pointer.
        #[allow(unsafe_code, reason = "a request of the listener")]
        let done = unsafe {
            libc::ioctl(self.fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, std::ptr::from_ref(&id))
        };
        done == 0
    }

    /// Lets caller and supervisor wake each other on one processor, which is faster. Without effect before Linux 6.6.
    pub fn prefer_synchronous(&self) {
        // SAFETY: the argument of this request is a number, not a pointer.
        #[allow(unsafe_code, reason = "a request of the listener")]
        let _ = unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, 1_u64) };
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<Listener> for OwnedFd {
    fn from(listener: Listener) -> Self {
        listener.fd
    }
}

impl From<OwnedFd> for Listener {
    /// A descriptor that is no listener fails at each use.
    fn from(fd: OwnedFd) -> Self {
        Self { fd }
    }
}

#[cfg(test)]
mod tests;
