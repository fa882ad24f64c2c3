//! A provider turns a [`Request`] into a stream of [`Chunk`]s, for one wire format.
//!
//! Retrying is not done here: an error is classed by its remedy ([`ProviderError`]) and the turn decides, with
//! [`retry`](transport::retry) for the waiting time.
//!
//! | module | job |
//! | --- | --- |
//! | [`registry`] | the available providers: configuration, environment, this machine; sources of keys |
//! | [`models`] | windows, limits, prices, abilities, levels of thinking effort |
//! | [`codec`] | requests and chunks, chunks to blocks, and adapting messages to a vendor's schema |
//! | [`transport`] | HTTP, event streams, timeouts, retries, errors by remedy |
//! | `anthropic`, `openai`, `gemini` | the vendors' wire formats |
//! | [`demo`] | the built-in demo model |
//! | [`replay`] | recordings of requests and replies, and replaying them |
//!
//! May use: `protocol`, `http`, `config`. Not here: sessions, tools, permissions, and the decision to retry (`engine`).

mod anthropic;
pub mod codec;
pub mod demo;
pub mod error;
mod gemini;
pub mod models;
mod openai;
pub mod registry;
pub mod replay;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transport;

pub use codec::assemble::{Assembled, Assembler};
pub use codec::chunk::Chunk;
pub use codec::format::{ApiFormat, LocalEntry, MakeLocal};
pub use codec::picture::size as picture_size;
pub use codec::request::{ChatMessage, Request};
pub use error::ProviderError;
pub use registry::{ApiFormats, Providers, build};
pub use replay::redact::Redact;
pub use tiller_protocol::Effort;
pub use transport::overflow::window as stated_window;
pub use transport::timer::Timer;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

/// A stream of chunks. The connection's task is the sender; dropping the stream closes the connection.
pub type ChunkStream = BoxStream<'static, Result<Chunk, ProviderError>>;

/// How long a reply may take to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patience {
    /// `None`: as long as it takes.
    pub limit: Option<std::time::Duration>,
    /// The setting of the limit, as it stands in `config.toml`.
    pub setting: String,
    /// The same for a server that sends signals without a reply: each moves the other limit, and none this one.
    pub signals: (std::time::Duration, String),
}

impl Patience {
    /// The end of the wait and its setting, in time since it began. `heard`: when the last byte arrived; `moved`: when the server was
    /// last seen to get on with the prompt.
    #[must_use]
    pub fn end(
        &self,
        heard: Option<std::time::Duration>,
        moved: std::time::Duration,
    ) -> Option<(std::time::Duration, &str)> {
        let limit = self.limit?;
        let silent = heard.unwrap_or_default().saturating_add(limit);
        let quiet = moved.saturating_add(self.signals.0);
        Some(if silent <= quiet { (silent, &*self.setting) } else { (quiet, &*self.signals.1) })
    }
}

/// One wire format at one address.
#[async_trait]
pub trait Provider: Send + Sync {
    /// The configured name, for instance `anthropic`; the first part of a model's reference.
    fn name(&self) -> &str;

    /// Returns true when the server's address is on this machine, where requests cost nothing.
    fn is_local(&self) -> bool {
        false
    }

    /// Sends the request. Returns when the server has accepted it (status 200) or refused it.
    async fn stream(&self, request: Request) -> Result<ChunkStream, ProviderError>;

    /// Prepares what the first request needs. An error here occurs again with that request, and is reported then.
    async fn prepare(&self) {}

    /// How long the beginning of a reply is awaited; `None`: it is no server.
    fn patience(&self) -> Option<Patience> {
        None
    }

    /// The exact body that `stream` would send, for the prefix tests and `/context`.
    fn body(&self, request: &Request) -> Vec<u8>;

    /// The models that the server offers; `Ok(vec![])` when it cannot list them.
    async fn models(&self) -> Result<Vec<String>, ProviderError>;

    /// Verifies the key with a request that costs nothing.
    async fn check(&self) -> Result<(), ProviderError> {
        self.models().await.map(drop)
    }
}
