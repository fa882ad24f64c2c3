//! The HTTP of this program's proxies: that of confined commands (`sandbox`) and that of the browser. Which hosts are reached
//! is decided by each of them.

pub mod body;
mod pass;
pub mod request;
#[cfg(target_os = "linux")]
pub mod tcp;

use std::net::SocketAddr;

pub use pass::{HEAD, answer, forward, head, tunnel};
pub use request::host_name;

/// True if a connection on this machine's loopback comes from this user: others must not use a proxy of this program.
#[cfg(target_os = "linux")]
pub fn is_own(from: SocketAddr, proxy: SocketAddr) -> bool {
    tcp::user_of(from, proxy).is_ok_and(|user| user == Some(rustix::process::getuid().as_raw()))
}

/// True: this system does not tell whose a connection is.
#[cfg(not(target_os = "linux"))]
pub fn is_own(_from: SocketAddr, _proxy: SocketAddr) -> bool {
    true
}
