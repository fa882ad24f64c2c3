//! The way of a listener from the launcher, which installs the filter, to the process that started it.

use std::io;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use tiller_seccomp::Listener;
use tiller_tool::shell::own_folder;

/// Until the launcher connects.
const START: Duration = Duration::from_secs(60);

/// Longest path of a folder in which that of the socket is named after this process, so that it is removed after a kill: the path
/// of a socket has at most 107 bytes.
const SHORT: usize = 45;

/// A socket that one launcher connects to, in a private folder of its own.
#[derive(Debug)]
pub(super) struct Meeting {
    folder: tempfile::TempDir,
    socket: UnixListener,
}

impl Meeting {
    /// In a folder for temporary files that lies in none of `writable`: a confined command could put another socket
    /// there.
    ///
    /// # Errors
    /// When there is no such folder, or no socket can be made.
    pub(super) fn new(writable: &[PathBuf]) -> io::Result<Self> {
        let safe = |path: &PathBuf| {
            path.canonicalize().is_ok_and(|path| {
                path.is_dir() && !path.starts_with("/dev") && !writable.iter().any(|w| path.starts_with(w))
            })
        };
        let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        // First where the mount of it leaves nothing in the session's `/tmp`.
        let mut all =
            [Some("/var/tmp".into()), Some(tempfile::env::temp_dir()), own, Some("/run".into())].into_iter();
        let folder = loop {
            let Some(place) = all.next() else {
                return Err(io::Error::other("there is no folder for the supervisor's socket"));
            };
            let Some(place) = place.filter(safe) else { continue };
            let place = place.canonicalize()?;
            let made = match place.as_os_str().len() <= SHORT {
                true => own_folder::make_in("meet", &place),
                false => tempfile::Builder::new().prefix("tiller-").tempdir_in(&place),
            };
            if let Ok(folder) = made {
                break folder;
            }
        };
        let socket = UnixListener::bind(folder.path().join("s"))?;
        Ok(Self { folder, socket })
    }

    pub(super) fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Waits for the launcher and its listener. The folder is removed. `None`: it has none, or did not come.
    pub(super) fn listener(self) -> Option<Listener> {
        let limit = Timespec::try_from(START).ok()?;
        let ready = poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&limit)).ok()?;
        let stream = (ready > 0).then(|| self.socket.accept().ok()).flatten()?.0;
        drop(self.socket);
        drop(self.folder);
        receive(&stream).ok().flatten()
    }
}

/// Connects to the socket in this folder.
///
/// # Errors
/// When it cannot be reached.
pub(crate) fn connect(folder: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(folder.join("s"))
}

/// Hands over the listener.
///
/// # Errors
/// When it cannot be sent.
pub(crate) fn send(stream: &UnixStream, listener: Listener) -> io::Result<()> {
    let fd = OwnedFd::from(listener);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [fd.as_fd()];
    if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::Error::other("a descriptor does not fit into a message"));
    }
    sendmsg(stream, &[IoSlice::new(b"l")], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The listener; `None` when the other end closed without one.
fn receive(stream: &UnixStream) -> io::Result<Option<Listener>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let fd = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    Ok(fd.map(Listener::from))
}
