//! Listening sockets of commands: a launcher makes one in the network namespace of its command and hands it over. This
//! process hands over one for commands without a namespace.

use std::io::{Error, IoSlice, IoSliceMut, Result};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use rustix::process::{Pid, PidfdFlags};
use tiller_tool::proxy::is_own;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{PORT, PREFIX, Shared, serve};
use crate::policy::ProxyPort;

/// Connections at one time, of all commands.
const CONNECTIONS: usize = 128;
/// Commands at one time.
const COMMANDS: usize = 64;
/// Longest time for a launcher to hand its socket over.
const HANDOVER: Duration = Duration::from_secs(10);
/// Before it is tried again to accept, when the process has no more descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A folder without a socket is certainly left after this time.
const MAKING: Duration = Duration::from_secs(600);
/// As [`MAKING`], of a folder whose socket refuses: a socket that has a name does not listen yet.
const BINDING: Duration = Duration::from_secs(60);

/// What is sent beside the socket: by a launcher, and for the machine's own loopback.
const WORD: u8 = b'L';
const SHARED: u8 = b'S';

/// Listens on the proxy's port of this network namespace and hands the listening socket to the proxy behind `socket`.
///
/// # Errors
/// When the proxy is gone or the port is taken.
pub(crate) fn offer(socket: &Path) -> Result<()> {
    hand_over(&TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))?, WORD, socket)
}

/// Listens on a free port of loopback for the proxy behind `socket`.
///
/// # Errors
/// When the proxy is gone.
pub(super) fn share(socket: &Path) -> Result<ProxyPort> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let inode = rustix::fs::fstat(&listener)?.st_ino;
    let port = listener.local_addr()?.port();
    hand_over(&listener, SHARED, socket)?;
    Ok(ProxyPort { port, inode })
}

fn hand_over(listener: &TcpListener, word: u8, socket: &Path) -> Result<()> {
    let proxy = UnixStream::connect(socket)?;
    let fds = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    beside.push(SendAncillaryMessage::ScmRights(&fds));
    rustix::net::sendmsg(&proxy, &[IoSlice::new(&[word])], &mut beside, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Removes the folders of proxies whose process was killed, beside the folder `own`. Blocks.
pub(super) fn sweep(own: &Path) {
    let entries = own.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    for entry in entries.into_iter().flatten().flatten() {
        let path = entry.path();
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX) && path != own;
        if ours && is_left(&path) {
            // Another process may be removing it.
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

/// Whether it is a folder of this user where no proxy listens any more.
fn is_left(folder: &Path) -> bool {
    let Ok(meta) = folder.symlink_metadata() else { return false };
    if !meta.is_dir() || meta.uid() != rustix::process::getuid().as_raw() {
        return false;
    }
    let older = |than| meta.modified().ok().and_then(|at| at.elapsed().ok()).is_some_and(|age| age > than);
    match UnixStream::connect(super::socket(folder)) {
        Err(e) if e.kind() == std::io::ErrorKind::ConnectionRefused => older(BINDING),
        // It is being made, unless its process was killed before it could listen.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => older(MAKING),
        _ => false,
    }
}

/// Serves commands until `stopped` ends.
pub(crate) async fn run(
    socket: std::os::unix::net::UnixListener,
    shared: Arc<Shared>,
    mut stopped: oneshot::Receiver<()>,
) {
    let Ok(socket) = tokio::net::UnixListener::from_std(socket) else { return };
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    // Ended with this function.
    let mut commands = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            // The proxy was dropped.
            _ = &mut stopped => return,
            Some(_) = commands.join_next(), if !commands.is_empty() => {}
            accepted = socket.accept(), if commands.len() < COMMANDS => match accepted {
                Ok((launcher, _)) => {
                    commands.spawn(command(launcher, Arc::clone(&shared), Arc::clone(&room)));
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
        }
    }
}

/// Serves one command: until its first process ends and its last connection is closed.
async fn command(launcher: tokio::net::UnixStream, shared: Arc<Shared>, room: Arc<Semaphore>) {
    let Ok(Ok((listener, word))) = timeout(HANDOVER, take(&launcher)).await else { return };
    let Some(process) = process(&launcher) else { return };
    drop(launcher);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            // It became readable: the process has ended.
            _ = process.readable() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => {
                    if word == SHARED && !listener.local_addr().is_ok_and(|own| is_own(from, own)) {
                        continue;
                    }
                    // One too many is closed at once.
                    let Ok(place) = Arc::clone(&room).try_acquire_owned() else { continue };
                    let shared = Arc::clone(&shared);
                    connections.spawn(async move {
                        let _place = place;
                        serve::serve(stream, &shared).await;
                    });
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// The listening socket that is handed over, and what is said beside it.
async fn take(launcher: &tokio::net::UnixStream) -> Result<(tokio::net::TcpListener, u8)> {
    let (fd, word) = loop {
        launcher.readable().await?;
        match launcher.try_io(Interest::READABLE, || receive(launcher)) {
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            received => break received?,
        }
    };
    let listener = TcpListener::from(fd);
    if !listener.local_addr()?.ip().is_loopback() || !rustix::net::sockopt::socket_acceptconn(&listener)? {
        return Err(Error::other("not a socket that listens on loopback"));
    }
    listener.set_nonblocking(true)?;
    Ok((tokio::net::TcpListener::from_std(listener)?, word))
}

fn receive(launcher: &tokio::net::UnixStream) -> Result<(OwnedFd, u8)> {
    let mut word = [0; 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut word)];
    rustix::net::recvmsg(launcher, &mut into, &mut beside, RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT)?;
    let mut fds = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    let fd = fds.next().filter(|_| [WORD, SHARED].contains(&word[0]));
    Ok((fd.ok_or_else(|| Error::other("not a launcher"))?, word[0]))
}

/// The process that sent the socket; the command has replaced the launcher in it.
#[expect(
    deprecated,
    reason = "its successor is unsafe for types that do not own their descriptor; this one does"
)]
fn process(launcher: &tokio::net::UnixStream) -> Option<AsyncFd<OwnedFd>> {
    let pid = Pid::from_raw(launcher.peer_cred().ok()?.pid()?)?;
    let fd = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()?;
    AsyncFd::with_interest(fd, Interest::READABLE).ok()
}
