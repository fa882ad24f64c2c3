//! Servers and connections of commands: on loopback, for those that have no network of their own, and in the file system.
//! Landlock limits ports, not addresses, so it refuses all of TCP to the command, and knows no sockets in the file system:
//! `bind`, `listen` and `connect` are done here in its place.
//!
//! With a network of its own, a command may connect in it as it likes. That is done here too: if the kernel did it after a
//! look at the socket, another thread could put a socket of the file system under the same number meanwhile.
//!
//! Each is done on a copy of the caller's socket with an address that is read once. A number that gets another socket
//! meanwhile, or an address that changes, changes nothing: what is used is what was judged.
//!
//! A server listens on loopback only. A connection leads to a server of the same session, or to the proxy: the sockets
//! that listen are known by their inodes, which the kernel's table of sockets names. They are compared before a
//! connection and after it, and nothing can begin to listen for a command in between: otherwise the port of a server that
//! ended could lead to a program of the person's that took it over.
//!
//! A connection is complete when the answer is given, or it is undone: one that is still tried could reach another server
//! later. Where the queue of a server is full, a thread tries again, so that neither the supervisor nor another call
//! waits for that.

mod address;
mod file;

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fstat};
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, SocketType, getpeername, getsockname, ipproto};
use tiller_seccomp::{Answer, Call, Listener};
use tiller_tool::proxy::tcp;
use tiller_tool::shell::BlockedKind;

use crate::network::Servers;
use crate::policy::Policy;
use crate::supervisor::caller::{Caller, descriptor_number};
use crate::supervisor::decide::{Note, unreachable};
use crate::supervisor::scope::Scope;
use address::Address;
use file::SocketFile;

/// How long a connection on loopback takes at most, unless the queue of the server is full.
const SOON: Duration = Duration::from_millis(50);
/// Before it is tried again.
const PAUSE: Duration = Duration::from_millis(50);
/// Longest time of the attempts for a socket that blocks: that of the kernel.
const PATIENT: Duration = Duration::from_secs(127);
/// How long for one that does not want to wait.
const IMPATIENT: Duration = Duration::from_millis(500);
/// Threads that try again, of one command.
const TRIALS: usize = 32;
/// Lowest port that a command may listen on: those below are for administrators, whose rights this process may have.
const LOWEST: u16 = 1024;

/// The calls that are done here.
pub(crate) const CALLS: [i64; 3] = [libc::SYS_bind, libc::SYS_listen, libc::SYS_connect];
/// Those of a command with a network of its own.
pub(crate) const CALLS_IN_NAMESPACES: [i64; 2] = [libc::SYS_listen, libc::SYS_connect];

/// The sockets of one command.
#[derive(Clone, Debug)]
pub(super) struct Sockets {
    servers: Servers,
    /// It has a network of its own.
    namespaces: bool,
    /// Inode of the proxy's socket.
    proxy: Option<u64>,
    trials: Arc<AtomicUsize>,
}

/// What becomes of a call.
pub(super) struct Outcome {
    /// `None`: a thread answers it.
    pub(super) answer: Option<Answer>,
    pub(super) note: Option<Note>,
}

impl From<Result<(), Errno>> for Outcome {
    fn from(done: Result<(), Errno>) -> Self {
        Self { answer: Some(answer(done)), note: None }
    }
}

fn answer(done: Result<(), Errno>) -> Answer {
    match done {
        Ok(()) => Answer::Return(0),
        Err(errno) => Answer::Fail(errno.raw_os_error()),
    }
}

/// Where a connection leads.
enum Destination {
    /// To a server of the session on this machine's loopback, or to the proxy.
    Loopback(SocketAddr),
    /// Into the command's own network.
    Own(SocketAddr),
    File(SocketFile),
}

/// How an attempt to connect ended.
enum Attempt {
    Done(Result<(), Errno>),
    /// No server of the session is there; whether another one is.
    Refused {
        other: bool,
    },
    /// The server takes no connection now.
    Full,
}

impl Sockets {
    /// `None`: these calls are not done here under this policy.
    pub(super) fn new(policy: &Policy, namespaces: bool, servers: &Servers) -> Option<Self> {
        policy.sockets_by_supervisor().then(|| Self {
            servers: servers.clone(),
            namespaces,
            proxy: policy.proxy_port.as_ref().map(|proxy| proxy.inode),
            trials: Arc::default(),
        })
    }

    /// Does one of [`CALLS`].
    pub(super) fn perform(
        &self,
        call: &Call,
        caller: &Caller,
        listener: &Arc<Listener>,
        scope: &Scope,
    ) -> Outcome {
        let socket = match Socket::of(call, caller, listener) {
            Ok(socket) => socket,
            Err(errno) => return Err(errno).into(),
        };
        let family = sockopt::socket_domain(&socket.fd);
        let in_files = family == Ok(AddressFamily::UNIX);
        match call.number {
            libc::SYS_bind if in_files => file::bind(call, caller, scope),
            libc::SYS_bind => bind(&socket, call, caller, listener).into(),
            libc::SYS_listen => self.listen(&socket, call, caller, scope).into(),
            _ if in_files => match self.file(call, caller, scope) {
                Ok(file) => self.connect(call.id, socket, Destination::File(file), listener),
                Err(outcome) => outcome,
            },
            _ if self.namespaces => self.connect_own(socket, call, caller, listener),
            _ => self.connect_loopback(socket, call, caller, listener),
        }
    }

    fn listen(&self, socket: &Socket, call: &Call, caller: &Caller, scope: &Scope) -> Result<(), Errno> {
        let backlog = descriptor_number(call.args[1]);
        if sockopt::socket_domain(&socket.fd)? == AddressFamily::UNIX {
            return self.listen_file(socket, backlog, call, caller, scope);
        }
        if self.namespaces {
            return rustix::net::listen(&socket.fd, backlog);
        }
        let v6 = socket.internet()?;
        let own = SocketAddr::try_from(getsockname(&socket.fd)?)?;
        if own.port() == 0 {
            // The kernel would choose a port on every address.
            let all = if v6 { "[::]:0" } else { "0.0.0.0:0" };
            let all = all.parse().map_err(|_| Errno::INVAL)?;
            serve(&socket.fd, all)?;
        } else if !own.ip().to_canonical().is_loopback() {
            return Err(Errno::ACCESS);
        }
        let mut servers = self.servers.lock();
        rustix::net::listen(&socket.fd, backlog)?;
        servers.add(fstat(&socket.fd)?.st_ino);
        Ok(())
    }

    fn connect_loopback(
        &self,
        socket: Socket,
        call: &Call,
        caller: &Caller,
        listener: &Arc<Listener>,
    ) -> Outcome {
        let target =
            socket.internet().and_then(|v6| Address::read(caller, call.args[1], call.args[2])?.internet(v6));
        let asked = match target {
            Ok(asked) => asked,
            Err(errno) => return Err(errno).into(),
        };
        let Some(to) = address::to_reach(asked) else {
            let asked = SocketAddr::new(asked.ip().to_canonical(), asked.port());
            return refused(Errno::NETUNREACH, Some(asked));
        };
        self.connect(call.id, socket, Destination::Loopback(to), listener)
    }

    /// A connection in the command's own network, as the kernel would make it.
    fn connect_own(&self, socket: Socket, call: &Call, caller: &Caller, listener: &Arc<Listener>) -> Outcome {
        let to = match self.address_of(&socket, call, caller, listener) {
            Ok(Some(to)) => to,
            Ok(None) => return Ok(()).into(),
            Err(errno) => return Err(errno).into(),
        };
        let outcome = self.connect(call.id, socket, Destination::Own(to), listener);
        Outcome { note: unreachable(to), ..outcome }
    }

    /// Where a connection in the command's own network leads. `None`: it is done already.
    fn address_of(
        &self,
        socket: &Socket,
        call: &Call,
        caller: &Caller,
        listener: &Listener,
    ) -> Result<Option<SocketAddr>, Errno> {
        let address = Address::read(caller, call.args[1], call.args[2])?;
        let family = sockopt::socket_domain(&socket.fd)?;
        socket.still_waits(call, listener)?;
        match family {
            _ if address.is_unspecified() => rustix::net::connect_unspec(&socket.fd).map(|()| None),
            AddressFamily::NETLINK => rustix::net::connect(&socket.fd, &address.netlink()?).map(|()| None),
            AddressFamily::INET | AddressFamily::INET6 => address.any_internet().map(Some),
            _ => Err(Errno::OPNOTSUPP),
        }
    }

    fn connect(&self, id: u64, socket: Socket, to: Destination, listener: &Arc<Listener>) -> Outcome {
        if !listener.waits(id) {
            return Err(Errno::INTR).into();
        }
        match self.attempt(&socket, &to) {
            Attempt::Done(done) => done.into(),
            Attempt::Refused { other } => {
                let to = match to {
                    Destination::Loopback(to) if other => {
                        Some(SocketAddr::new(to.ip().to_canonical(), to.port()))
                    }
                    _ => None,
                };
                refused(Errno::CONNREFUSED, to)
            }
            Attempt::Full => self.later(id, socket, to, listener),
        }
    }

    /// Tries again in a thread, which answers the call.
    fn later(&self, id: u64, socket: Socket, to: Destination, listener: &Arc<Listener>) -> Outcome {
        if self.trials.fetch_add(1, Ordering::SeqCst) >= TRIALS {
            self.trials.fetch_sub(1, Ordering::SeqCst);
            return Err(Errno::CONNREFUSED).into();
        }
        let (own, listener) = (self.clone(), Arc::clone(listener));
        let try_again = move || {
            let done = own.insist(id, &socket, &to, &listener);
            own.trials.fetch_sub(1, Ordering::SeqCst);
            // The caller may have ended.
            let _ = listener.answer(id, answer(done));
        };
        let thread = std::thread::Builder::new().name("tiller-connect".into()).stack_size(super::STACK);
        match thread.spawn(try_again) {
            Ok(_) => Outcome { answer: None, note: None },
            Err(_) => {
                self.trials.fetch_sub(1, Ordering::SeqCst);
                Err(Errno::CONNREFUSED).into()
            }
        }
    }

    fn insist(&self, id: u64, socket: &Socket, to: &Destination, listener: &Listener) -> Result<(), Errno> {
        let (limit, error) = match socket.waits() {
            true => (PATIENT, Errno::TIMEDOUT),
            false => (IMPATIENT, Errno::CONNREFUSED),
        };
        let until = Instant::now() + limit;
        while Instant::now() < until && listener.waits(id) {
            std::thread::park_timeout(PAUSE);
            match self.attempt(socket, to) {
                // It was made meanwhile.
                Attempt::Done(Err(Errno::ISCONN)) => return Ok(()),
                Attempt::Done(done) => return done,
                Attempt::Refused { .. } => return Err(Errno::CONNREFUSED),
                Attempt::Full => {}
            }
        }
        Err(error)
    }

    fn attempt(&self, socket: &Socket, to: &Destination) -> Attempt {
        let done = match to {
            Destination::Loopback(to) => return self.attempt_loopback(socket, *to),
            Destination::Own(to) => socket.connect(*to),
            Destination::File(file) => file.connect(socket),
        };
        match done {
            Err(Errno::INPROGRESS | Errno::ALREADY | Errno::INTR | Errno::AGAIN) if socket.waits() => {
                if socket.is_connected() {
                    Attempt::Done(Ok(()))
                } else {
                    Attempt::Full
                }
            }
            done => Attempt::Done(done),
        }
    }

    /// Connects to a server of the session or the proxy, if one listens there.
    fn attempt_loopback(&self, socket: &Socket, to: SocketAddr) -> Attempt {
        // Until the end: nothing begins to listen for a command meanwhile.
        let servers = self.servers.lock();
        let foreign = |found: &[u64]| found.iter().any(|i| !servers.contains(*i) && self.proxy != Some(*i));
        let find = |at: SocketAddr| tcp::listeners(SocketAddr::new(at.ip().to_canonical(), at.port()));
        let mut to = to;
        let mut found = find(to);
        if let (Ok([]), Some(other)) = (found.as_deref(), address::other(to)) {
            (to, found) = (other, find(other));
        }
        match found.as_deref() {
            Ok([]) => return Attempt::Refused { other: false },
            Ok(found) if !foreign(found) => {}
            _ => return Attempt::Refused { other: true },
        }
        let done = socket.connect(to);
        match done {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
            Err(_) => return Attempt::Done(done),
        }
        if !socket.is_connected() {
            // Otherwise it would go on, and could reach what listens there later.
            let _ = rustix::net::connect_unspec(&socket.fd);
            return Attempt::Full;
        }
        // The server itself may have ended already.
        if !find(to).is_ok_and(|found| !foreign(&found)) {
            let _ = rustix::net::connect_unspec(&socket.fd);
            return Attempt::Refused { other: true };
        }
        match socket.waits() {
            true => Attempt::Done(Ok(())),
            // The error of the kernel at the first call.
            false => Attempt::Done(done),
        }
    }
}

fn refused(errno: Errno, address: Option<SocketAddr>) -> Outcome {
    let note =
        |address: SocketAddr| Note { kind: BlockedKind::Connect, target: address.to_string(), minor: false };
    Outcome { note: address.map(note), ..Err(errno).into() }
}

fn bind(socket: &Socket, call: &Call, caller: &Caller, listener: &Listener) -> Result<(), Errno> {
    let address = Address::read(caller, call.args[1], call.args[2])?;
    if sockopt::socket_domain(&socket.fd)? == AddressFamily::NETLINK {
        let address = address.netlink()?;
        socket.still_waits(call, listener)?;
        return rustix::net::bind(&socket.fd, &address);
    }
    let asked = address.internet(socket.internet()?)?;
    socket.still_waits(call, listener)?;
    serve(&socket.fd, asked)
}

/// Binds a socket to the loopback address that stands for the requested one.
fn serve(socket: &OwnedFd, asked: SocketAddr) -> Result<(), Errno> {
    let only_v6 = asked.is_ipv6() && sockopt::ipv6_v6only(socket)?;
    let own = address::to_serve(asked, only_v6).ok_or(Errno::ADDRNOTAVAIL)?;
    if (1..LOWEST).contains(&own.port()) {
        return Err(Errno::ACCESS);
    }
    rustix::net::bind(socket, &own)
}

/// A copy of the socket that a call names.
struct Socket {
    fd: OwnedFd,
}

impl Socket {
    fn of(call: &Call, caller: &Caller, listener: &Listener) -> Result<Self, Errno> {
        let socket = Self { fd: caller.copy(descriptor_number(call.args[0]))? };
        socket.still_waits(call, listener)?;
        Ok(socket)
    }

    /// What was read belongs to the caller if it still waits.
    fn still_waits(&self, call: &Call, listener: &Listener) -> Result<(), Errno> {
        if listener.waits(call.id) { Ok(()) } else { Err(Errno::INTR) }
    }

    /// Whether it is one of IPv6.
    ///
    /// # Errors
    /// When it is no TCP socket.
    fn internet(&self) -> Result<bool, Errno> {
        let family = sockopt::socket_domain(&self.fd)?;
        let v6 = match family {
            AddressFamily::INET => false,
            AddressFamily::INET6 => true,
            _ => return Err(Errno::OPNOTSUPP),
        };
        let tcp = sockopt::socket_type(&self.fd)? == SocketType::STREAM
            && sockopt::socket_protocol(&self.fd)? == Some(ipproto::TCP);
        if tcp { Ok(v6) } else { Err(Errno::OPNOTSUPP) }
    }

    /// Whether its calls wait.
    fn waits(&self) -> bool {
        !fcntl_getfl(&self.fd).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK))
    }

    /// Connects, and waits a moment for that.
    fn connect(&self, to: SocketAddr) -> Result<(), Errno> {
        let done = self.connect_to(&to);
        if matches!(done, Err(Errno::INPROGRESS | Errno::INTR)) && !self.is_connected() {
            let limit = Timespec::try_from(SOON).map_err(|_| Errno::INVAL)?;
            let _ = poll(&mut [PollFd::new(&self.fd, PollFlags::OUT)], Some(&limit));
        }
        done
    }

    /// Connects. The call itself takes a moment at most.
    fn connect_to(&self, to: &impl SocketAddrArg) -> Result<(), Errno> {
        // The flags of a socket belong to all its copies, so it is not made one that does not wait.
        let before = sockopt::socket_timeout(&self.fd, Timeout::Send)?;
        let short = before.is_none_or(|before| before > SOON);
        if short {
            sockopt::set_socket_timeout(&self.fd, Timeout::Send, Some(SOON))?;
        }
        let done = rustix::net::connect(&self.fd, to);
        if short {
            sockopt::set_socket_timeout(&self.fd, Timeout::Send, before)?;
        }
        done
    }

    fn is_connected(&self) -> bool {
        getpeername(self.fd.as_fd()).is_ok_and(|address| address.is_some())
    }
}

#[cfg(test)]
mod tests;
