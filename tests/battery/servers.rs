//! Servers outside of the sandbox that note everything which they get.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;

/// Time between two looks at the sockets.
const LOOK: Duration = Duration::from_millis(4);

/// Ports of the servers on loopback; 0 where the machine has no IPv6.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ports {
    pub(crate) tcp: u16,
    pub(crate) tcp6: u16,
    pub(crate) udp: u16,
    pub(crate) udp6: u16,
    /// A proxy that obeys CONNECT.
    pub(crate) relay: u16,
}

/// All servers of one scene. They end when this is dropped.
pub(crate) struct Servers {
    pub(crate) ports: Ports,
    got: Arc<Mutex<Vec<u8>>>,
    /// Number of looks at the sockets so far.
    looks: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Duty {
    Note,
    /// Writes the file that a line `write PATH` names.
    Edit,
    /// Connects to the address of a CONNECT, and hands on what comes.
    Relay,
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

struct Connection {
    stream: Box<dyn Stream>,
    duty: Duty,
    text: Vec<u8>,
    onward: Option<TcpStream>,
}

struct Sockets {
    tcp: Vec<(TcpListener, Duty)>,
    udp: Vec<UdpSocket>,
    paths: Vec<(UnixListener, Duty)>,
    datagrams: Vec<UnixDatagram>,
    open: Vec<Connection>,
    got: Arc<Mutex<Vec<u8>>>,
}

impl Servers {
    /// Starts them: on loopback, in `outside`, in the abstract names, and `editor.sock` in `work`.
    pub(crate) fn start(outside: &Path, work: &Path, token: &str) -> Result<Self> {
        let got = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let tcp = TcpListener::bind("127.0.0.1:0")?;
        let relay = TcpListener::bind("127.0.0.1:0")?;
        let udp = UdpSocket::bind("127.0.0.1:0")?;
        let tcp6 = TcpListener::bind("[::1]:0").ok();
        let udp6 = UdpSocket::bind("[::1]:0").ok();
        let ports = Ports {
            tcp: tcp.local_addr()?.port(),
            tcp6: tcp6.as_ref().and_then(|s| s.local_addr().ok()).map_or(0, |a| a.port()),
            udp: udp.local_addr()?.port(),
            udp6: udp6.as_ref().and_then(|s| s.local_addr().ok()).map_or(0, |a| a.port()),
            relay: relay.local_addr()?.port(),
        };
        let name = |kind: &str| SocketAddr::from_abstract_name(format!("{token}-{kind}"));
        let mut sockets = Sockets {
            tcp: vec![(tcp, Duty::Note), (relay, Duty::Relay)],
            udp: vec![udp],
            paths: vec![
                (UnixListener::bind(outside.join("docker.sock"))?, Duty::Note),
                (UnixListener::bind(work.join("editor.sock"))?, Duty::Edit),
                (UnixListener::bind_addr(&name("stream")?)?, Duty::Note),
            ],
            datagrams: vec![
                UnixDatagram::bind(outside.join("datagram.sock"))?,
                UnixDatagram::bind_addr(&name("datagram")?)?,
            ],
            open: Vec::new(),
            got: Arc::clone(&got),
        };
        sockets.tcp.extend(tcp6.map(|s| (s, Duty::Note)));
        sockets.udp.extend(udp6);
        sockets.without_waiting()?;
        let over = Arc::clone(&stop);
        let looks = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&looks);
        let thread = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                sockets.look();
                counted.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(LOOK);
            }
        });
        Ok(Self { ports, got, looks, stop, thread: Some(thread) })
    }

    /// Whether `token` reached one of them.
    pub(crate) fn got(&self, token: &str) -> bool {
        // What was sent last may still be on its way through the loop, by a relay too: the thread has looked at all sockets
        // some more times, however busy the machine is.
        let seen = self.looks.load(Ordering::SeqCst) + 10;
        while self.looks.load(Ordering::SeqCst) < seen
            && self.thread.as_ref().is_some_and(|t| !t.is_finished())
        {
            std::thread::sleep(LOOK);
        }
        let got = self.got.lock().unwrap_or_else(PoisonError::into_inner);
        memchr::memmem::find(&got, token.as_bytes()).is_some()
    }
}

impl Servers {
    /// Forgets what they got.
    pub(crate) fn forget(&self) {
        self.got.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Sockets {
    fn without_waiting(&self) -> Result<()> {
        self.tcp.iter().try_for_each(|(s, _)| s.set_nonblocking(true))?;
        self.udp.iter().try_for_each(|s| s.set_nonblocking(true))?;
        self.paths.iter().try_for_each(|(s, _)| s.set_nonblocking(true))?;
        self.datagrams.iter().try_for_each(|s| s.set_nonblocking(true))?;
        Ok(())
    }

    fn look(&mut self) {
        for (listener, duty) in &self.tcp {
            while let Ok((stream, _)) = listener.accept() {
                let _ = stream.set_nonblocking(true);
                self.open.push(Connection::new(stream, *duty));
            }
        }
        for (listener, duty) in &self.paths {
            while let Ok((stream, _)) = listener.accept() {
                let _: std::io::Result<()> = UnixStream::set_nonblocking(&stream, true);
                self.open.push(Connection::new(stream, *duty));
            }
        }
        let mut buffer = [0_u8; 4096];
        let mut found = Vec::new();
        for socket in &self.udp {
            while let Ok(len) = socket.recv(&mut buffer) {
                found.extend_from_slice(buffer.get(..len).unwrap_or_default());
            }
        }
        for socket in &self.datagrams {
            while let Ok(len) = socket.recv(&mut buffer) {
                found.extend_from_slice(buffer.get(..len).unwrap_or_default());
            }
        }
        self.open.retain_mut(|c| c.look(&mut found));
        self.got.lock().unwrap_or_else(PoisonError::into_inner).append(&mut found);
    }
}

impl Connection {
    fn new(stream: impl Stream + 'static, duty: Duty) -> Self {
        Self { stream: Box::new(stream), duty, text: Vec::new(), onward: None }
    }

    /// Reads what is there. False at its end.
    fn look(&mut self, found: &mut Vec<u8>) -> bool {
        let mut buffer = [0_u8; 4096];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(len) => self.take(buffer.get(..len).unwrap_or_default(), found),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
    }

    fn take(&mut self, bytes: &[u8], found: &mut Vec<u8>) {
        if self.duty != Duty::Relay {
            found.extend_from_slice(bytes);
        }
        if let Some(onward) = &mut self.onward {
            let _ = onward.write_all(bytes);
            return;
        }
        self.text.extend_from_slice(bytes);
        let text = String::from_utf8_lossy(&self.text).into_owned();
        match self.duty {
            Duty::Note => {}
            Duty::Edit => {
                if let Some(path) = text.strip_prefix("write ").and_then(|t| t.strip_suffix('\n')) {
                    let _ = std::fs::write(path, "x");
                    let _ = self.stream.write_all(b"done");
                }
            }
            Duty::Relay => {
                let to = text.strip_prefix("CONNECT ").and_then(|t| t.split(' ').next());
                if let Some(to) = to.filter(|_| text.ends_with("\r\n\r\n")) {
                    self.onward = TcpStream::connect(to).ok();
                    let _ = self.stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
                }
            }
        }
    }
}
