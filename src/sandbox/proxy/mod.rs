//! The network of confined commands, limited to listed domains: an HTTP proxy of this program.
//!
//! ```text
//!  own network namespace of a command           | this program
//!  curl --- 127.0.0.1:3128 (listening socket) ==|==> accept, check, resolve, connect --- the listed host
//! ```
//! The launcher, already in its namespace and not yet confined, listens there and hands the listening socket over
//! through a socket in the file system ([`offer`]). So no port of the machine is opened, and nothing runs in the namespace
//! but the command. Afterwards the command can open no socket in the file system any more.
//!
//! Requests are read by [`tiller_tool::proxy`].
//!
//! | module | holds |
//! | --- | --- |
//! | [`domains`] | the list of domains, compared label by label |
//! | `serve` | one connection of a command |
//! | `listen` | sockets that launchers hand over |
//!
//! Without a network namespace (Landlock alone) the proxy listens on a port of the machine's loopback ([`Proxy::port`]), and the
//! supervisor of a command lets it connect to that socket ([`crate::supervise`]). Connections of other users are closed.
//!
//! It resolves names itself and connects to the addresses that it has checked, so that a name cannot lead to a private
//! address. It reads no TLS: what a command asks of a listed host inside of it, another name for the same server
//! included, is not seen.

pub mod domains;
#[cfg(target_os = "linux")]
mod listen;
mod serve;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use tokio::net::TcpStream;
use tokio::sync::oneshot;

pub use domains::Domains;
#[cfg(target_os = "linux")]
pub(crate) use listen::offer;

use crate::policy::ProxyPort;

/// The port on which commands find the proxy in their own network namespace: the usual one of proxies.
pub const PORT: u16 = 3128;

/// Beginning of the name of the folder of its socket, in the folder for temporary files.
const PREFIX: &str = "tiller-net-";

/// Refused connections that are kept until they are taken.
const REFUSALS: usize = 32;
/// Hosts that are remembered; the one that was not reached for the longest time is forgotten.
const HOSTS: usize = 256;

/// Variables that name the proxy to programs.
const VARIABLES: &[&str] =
    &["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
/// Variables that list what is reached without it.
const EXCEPTIONS: &[&str] = &["NO_PROXY", "no_proxy"];

/// Sets the variables that lead programs to the proxy, in place of those of a proxy of the user's.
pub(crate) fn set_variables(env: &mut Vec<(String, String)>, port: u16) {
    env.retain(|(name, _)| !VARIABLES.contains(&name.as_str()) && !EXCEPTIONS.contains(&name.as_str()));
    let address = format!("http://127.0.0.1:{port}");
    env.extend(VARIABLES.iter().map(|name| ((*name).to_owned(), address.clone())));
    env.extend(EXCEPTIONS.iter().map(|name| ((*name).to_owned(), "localhost,127.0.0.1,::1".to_owned())));
    // Node.js reads them only with this.
    env.push(("NODE_USE_ENV_PROXY".into(), "1".into()));
}

/// A connection that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Host as the command named it, printable ASCII, cut.
    pub host: String,
    pub why: String,
}

impl Refusal {
    /// One line for people and models.
    pub fn words(&self) -> String {
        format!("{}: {}", self.host, self.why)
    }
}

/// How the proxy reaches the world. Tests replace it.
#[async_trait]
pub trait Outside: Send + Sync + 'static {
    /// All addresses of a name.
    async fn resolve(&self, host: &str) -> std::io::Result<Vec<IpAddr>>;
    /// Connects to an address that was checked.
    async fn connect(&self, to: SocketAddr) -> std::io::Result<TcpStream>;
}

/// The resolver and the network of the system.
pub struct System;

#[async_trait]
impl Outside for System {
    async fn resolve(&self, host: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
    }

    async fn connect(&self, to: SocketAddr) -> std::io::Result<TcpStream> {
        TcpStream::connect(to).await
    }
}

/// What all connections share.
pub(crate) struct Shared {
    pub domains: Domains,
    pub outside: Box<dyn Outside>,
    refusals: Mutex<VecDeque<Refusal>>,
    reached: Mutex<Reached>,
}

/// Connections that were made.
#[derive(Default)]
struct Reached {
    number: u64,
    /// Each host with the number of its last one, oldest first.
    hosts: VecDeque<(u64, String)>,
}

impl Shared {
    /// Notes a connection.
    pub(crate) fn reach(&self, host: &str) {
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        reached.number += 1;
        let number = reached.number;
        reached.hosts.retain(|(_, name)| name != host);
        if reached.hosts.len() >= HOSTS {
            reached.hosts.pop_front();
        }
        reached.hosts.push_back((number, host.to_owned()));
    }

    /// Notes a refusal that is not noted yet.
    pub(crate) fn refuse(&self, refusal: Refusal) {
        let mut all = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains(&refusal) && all.len() < REFUSALS {
            all.push_back(refusal);
        }
    }
}

/// The running proxy. It ends, with all connections, when this is dropped.
pub struct Proxy {
    shared: Arc<Shared>,
    /// Holds the socket; private.
    folder: tempfile::TempDir,
    port: OnceLock<Option<ProxyPort>>,
    /// Its thread ends when this is dropped.
    _stop: oneshot::Sender<()>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("domains", &self.shared.domains).finish_non_exhaustive()
    }
}

impl Proxy {
    /// Starts its thread, which waits for launchers.
    ///
    /// # Errors
    /// When its socket or its thread cannot be made; always where there are no network namespaces.
    pub fn start(domains: Domains, outside: Box<dyn Outside>) -> std::io::Result<Self> {
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir()?;
        let shared =
            Arc::new(Shared { domains, outside, refusals: Mutex::default(), reached: Mutex::default() });
        // Held by the proxy; its thread waits for the end of the other side.
        let (stop, stopped) = oneshot::channel();
        Self::run(&socket(folder.path()), Arc::clone(&shared), stopped)?;
        Ok(Self { shared, folder, port: OnceLock::new(), _stop: stop })
    }

    #[cfg(target_os = "linux")]
    fn run(socket: &Path, shared: Arc<Shared>, stopped: oneshot::Receiver<()>) -> std::io::Result<()> {
        let listener = std::os::unix::net::UnixListener::bind(socket)?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let own = socket.parent().map(Path::to_owned);
        std::thread::Builder::new().name("tiller-proxy".into()).spawn(move || {
            // Beside it: no command waits for this.
            drop(runtime.spawn_blocking(move || own.as_deref().map(listen::sweep)));
            runtime.block_on(listen::run(listener, shared, stopped));
            // Names that are still being looked up are not waited for.
            runtime.shutdown_background();
        })?;
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn run(_socket: &Path, _shared: Arc<Shared>, _stopped: oneshot::Receiver<()>) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    /// Where launchers hand over their listening sockets.
    pub fn socket(&self) -> PathBuf {
        socket(self.folder.path())
    }

    /// The port on the machine's loopback where it listens from the first call on, for commands without a network namespace.
    /// `None`: there can be none.
    pub fn port(&self) -> Option<ProxyPort> {
        #[cfg(target_os = "linux")]
        let open = || listen::share(&self.socket()).ok();
        #[cfg(not(target_os = "linux"))]
        let open = || None;
        *self.port.get_or_init(open)
    }

    /// Number of connections that were made until now.
    pub fn connections(&self) -> u64 {
        self.shared.reached.lock().unwrap_or_else(PoisonError::into_inner).number
    }

    /// Hosts of the connections after the first `since`, each once.
    pub fn reached(&self, since: u64) -> Vec<String> {
        let reached = self.shared.reached.lock().unwrap_or_else(PoisonError::into_inner);
        reached.hosts.iter().filter(|(number, _)| *number > since).map(|(_, host)| host.clone()).collect()
    }

    /// Takes the refused connections since the last call, oldest first.
    pub fn refused(&self) -> Vec<Refusal> {
        self.shared.refusals.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("s")
}
