//! The DevTools protocol: calls with ids, events by session, over a pipe (as CBOR) or a WebSocket (as JSON).
//!
//! Only the fields that are used are read. Unknown methods, events and fields are ignored, so that a newer browser
//! changes nothing. Source of the messages: the Chrome DevTools Protocol, domains Target, Page, DOM, DOMSnapshot,
//! Accessibility, Input, Runtime, Fetch and Browser.

mod cbor;
mod connection;
mod pipe;
mod socket;

pub(crate) use connection::{Cdp, CdpError, Event};
pub(crate) use pipe::pipe;
pub(crate) use socket::{connect, endpoint};

use std::io;

use async_trait::async_trait;
use serde_json::Value;

/// Greatest message that is read, in bytes: a picture of a large page, or the elements of one with 30,000 rows.
pub(crate) const MESSAGE_BYTES: usize = 192 << 20;

/// Receives messages of the browser, each one JSON text.
#[async_trait]
pub(crate) trait Receive: Send {
    /// The next message; `None`: the browser closed the connection. One that cannot be read breaks off behind its id, so that its
    /// call fails, and the others go on.
    ///
    /// # Errors
    /// When reading fails, or it is not known where the next message begins.
    async fn receive(&mut self) -> io::Result<Option<Vec<u8>>>;
}

/// Sends messages to the browser.
#[async_trait]
pub(crate) trait Transmit: Send {
    /// Sends one message.
    ///
    /// # Errors
    /// When the browser is gone.
    async fn send(&mut self, message: Value) -> io::Result<()>;
}
