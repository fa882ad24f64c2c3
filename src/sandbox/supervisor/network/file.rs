//! Sockets in the file system: a command reaches those on which a command of the same session listens, and no others.
//!
//! A name is bound by the kernel, which the folders of the sandbox hold for. To listen is done by this process, on a copy of
//! the socket: so the kernel notes this process as the one that listens, and tells it to the socket that has connected. A
//! file that a program of the person's has bound is therefore never taken for one of the session's, whatever its name was
//! before. A connection is made by the descriptor of the very file that was judged, not by its name.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{Shutdown, SocketAddrUnix, getsockname, shutdown};
use tiller_fs::links::FileId;
use tiller_seccomp::{Answer, Call};
use tiller_tool::shell::BlockedKind;

use super::{Outcome, Socket, Sockets};
use crate::supervisor::caller::Caller;
use crate::supervisor::calls::PathArgument;
use crate::supervisor::decide::Note;
use crate::supervisor::scope::Scope;
use crate::supervisor::walk::{Walk, path_of};

const FAMILY: [u8; 2] = 1_u16.to_ne_bytes();
/// The family, and the longest name.
const LONGEST: usize = 110;
/// Sockets of the system that libraries ask for names of users and hosts, and do without.
const ASKED_BY_LIBRARIES: &[&str] =
    &["/run/nscd", "/var/run/nscd", "/run/systemd", "/run/avahi-daemon", "/run/dbus", "/dev/log"];

/// A relative name begins at the working folder.
const NAME: PathArgument = PathArgument { folder: None, path: 1 };

/// The file of a socket.
pub(super) struct SocketFile {
    fd: OwnedFd,
    path: PathBuf,
    id: FileId,
}

impl SocketFile {
    /// The file at the end of the links of a name.
    ///
    /// # Errors
    /// As the kernel answers a connection to such a name; `CONNREFUSED` when it is no socket.
    fn find(name: &[u8], call: &Call, caller: &Caller) -> Result<Self, Errno> {
        let fd = Walk::new(caller).target(caller.start(NAME, &call.args, name)?, name)?;
        let meta = fstat(&fd)?;
        if FileType::from_raw_mode(meta.st_mode) != FileType::Socket {
            return Err(Errno::CONNREFUSED);
        }
        #[allow(clippy::useless_conversion, reason = "the types differ between architectures")]
        let id = FileId { device: meta.st_dev.into(), inode: meta.st_ino.into() };
        Ok(Self { path: path_of(&fd)?, fd, id })
    }

    /// Connects a socket to it, if what listens there was started by this session.
    pub(super) fn connect(&self, socket: &Socket) -> Result<(), Errno> {
        let name = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        socket.connect_to(&SocketAddrUnix::new(name)?)?;
        let own = socket_peercred(&socket.fd).is_ok_and(|peer| peer.pid == rustix::process::getpid());
        if own {
            return Ok(());
        }
        // It cannot be taken back, but nothing goes over it.
        let _ = shutdown(&socket.fd, Shutdown::Both);
        Err(Errno::CONNREFUSED)
    }
}

/// The name in the arguments of bind(2) or connect(2).
///
/// # Errors
/// As the kernel answers; `PERM` for an abstract name, which the whole machine would see.
fn name(call: &Call, caller: &Caller) -> Result<Vec<u8>, Errno> {
    let length = usize::try_from(call.args[2] & 0xffff_ffff).unwrap_or(usize::MAX);
    if !(FAMILY.len()..=LONGEST).contains(&length) {
        return Err(Errno::INVAL);
    }
    let bytes = caller.some_bytes(call.args[1], length)?;
    let Some(name) = bytes.strip_prefix(&FAMILY) else { return Err(Errno::INVAL) };
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    if name.is_empty() { Err(Errno::PERM) } else { Ok(name.to_vec()) }
}

/// The kernel binds, within the folders of the sandbox. A name outside of them is refused here, with a note.
pub(super) fn bind(call: &Call, caller: &Caller, scope: &Scope) -> Outcome {
    let found = name(call, caller).and_then(|name| {
        let base = caller.start(NAME, &call.args, &name)?;
        Walk::new(caller).entry(base, &name)?.path()
    });
    match found {
        Ok(path) if scope.contains(&path) => Outcome { answer: Some(Answer::Continue), note: None },
        Ok(path) => {
            Outcome { note: Some(Note::path(BlockedKind::Create, &path)), ..Err(Errno::ACCESS).into() }
        }
        Err(errno) => Err(errno).into(),
    }
}

impl Sockets {
    /// Listens in the caller's place, and remembers the file.
    pub(super) fn listen_file(
        &self,
        socket: &Socket,
        backlog: i32,
        call: &Call,
        caller: &Caller,
        scope: &Scope,
    ) -> Result<(), Errno> {
        let own = SocketAddrUnix::try_from(getsockname(socket.fd.as_fd())?)?;
        // Without a name, or with one that the whole machine sees.
        let name = own.path_bytes().filter(|name| !name.is_empty()).ok_or(Errno::INVAL)?;
        // It may have been removed: then nothing can connect.
        let file = SocketFile::find(name, call, caller).ok().filter(|file| scope.contains(&file.path));
        let mut servers = self.servers.lock();
        rustix::net::listen(&socket.fd, backlog)?;
        if let Some(file) = file {
            servers.add_file(file.id);
        }
        Ok(())
    }

    /// The file that a connection leads to, if it is one of the session's.
    pub(super) fn file(&self, call: &Call, caller: &Caller, scope: &Scope) -> Result<SocketFile, Outcome> {
        let file = name(call, caller).and_then(|name| SocketFile::find(&name, call, caller));
        let file = file.map_err(|errno| Outcome::from(Err(errno)))?;
        let refused = |errno| Outcome { note: Some(note(&file.path)), ..Err(errno).into() };
        if !scope.contains(&file.path) {
            return Err(refused(Errno::ACCESS));
        }
        if !self.servers.lock().has_file(file.id) {
            return Err(refused(Errno::CONNREFUSED));
        }
        Ok(file)
    }
}

fn note(path: &Path) -> Note {
    let minor = ASKED_BY_LIBRARIES.iter().any(|folder| path.starts_with(folder));
    Note { minor, ..Note::path(BlockedKind::Connect, path) }
}
