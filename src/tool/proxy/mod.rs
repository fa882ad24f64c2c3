//! The HTTP of this program's proxies: that of confined commands (`sandbox`) and that of the browser. Which hosts are reached
//! is decided by each of them.

pub mod body;
mod pass;
pub mod request;

pub use pass::{HEAD, answer, forward, head, tunnel};
pub use request::host_name;
