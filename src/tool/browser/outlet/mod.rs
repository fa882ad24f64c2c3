//! The way out of a browser of this machine: a proxy of this program, which judges each connection that the browser opens,
//! whatever opens it (pages, workers, WebSockets, the browser itself).
//!
//! ```text
//! page --- request paused ---> guard (the whole address, and the page that asks)
//! browser --- 127.0.0.1:PORT ---> proxy --- guard, resolve, check, connect ---> the host that was judged
//! ```
//! The browser resolves no name itself and has no other way: no QUIC, no WebRTC beside the proxy. Each agent has an outlet of
//! its own, as it has cookies of its own, so that its own rules hold.
//!
//! | module | holds |
//! | --- | --- |
//! | `guard` | the decision |
//! | `serve` | one connection of the browser |
//! | `upstream` | the proxy of the person's own, in the browser's arguments |

mod guard;
mod serve;
#[cfg(test)]
mod tests;
mod upstream;

pub(crate) use guard::{Guard, names_loopback};
pub(crate) use upstream::{Upstream, taken_out};

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use crate::proxy::is_own;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

/// Connections at one time.
const CONNECTIONS: usize = 256;
/// Before it is tried again to accept, when the process has no more descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A proxy that runs. It ends, with all connections, when this is dropped.
pub(crate) struct Outlet {
    pub(crate) guard: Arc<Guard>,
    /// Its port on loopback.
    port: u16,
    _task: AbortOnDropHandle<()>,
}

impl Outlet {
    /// Starts it.
    ///
    /// # Errors
    /// When there is no port for it.
    pub(crate) async fn start(guard: Guard, upstream: Option<Upstream>) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let guard = Arc::new(guard);
        let task = tokio::spawn(run(listener, Arc::clone(&guard), Arc::new(upstream)));
        Ok(Self { guard, port, _task: AbortOnDropHandle::new(task) })
    }

    /// Its address, as browsers name a proxy.
    pub(crate) fn address(&self) -> String {
        format!("http://{}:{}", Ipv4Addr::LOCALHOST, self.port)
    }
}

/// Everything goes through the proxy, the names and addresses of this machine as well.
pub(crate) const NO_BYPASS: &str = "<-loopback>";

async fn run(listener: TcpListener, guard: Arc<Guard>, upstream: Arc<Option<Upstream>>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    let Ok(own) = listener.local_addr() else { return };
    loop {
        // Closed never.
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            // Another user's connection is closed.
            Ok((_, from)) if !is_own(from, own) => {}
            Ok((client, _)) => {
                let (guard, upstream) = (Arc::clone(&guard), Arc::clone(&upstream));
                connections.spawn(async move {
                    // What fails is a connection that ended: the browser sees that itself.
                    let _ = serve::serve(client, &guard, upstream.as_ref().as_ref()).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
        while connections.try_join_next().is_some() {}
    }
}
