//! A provider turns a [`Request`] into a stream of [`Chunk`]s, for one wire format.
//!
//! Providers know nothing of sessions, tools or permissions. Retrying is not theirs either: an error
//! is classed by its remedy ([`ProviderError`]) and the turn decides, with [`retry`](transport::retry) to say how long to
//! wait.
//!
//! | module | job |
//! | --- | --- |
//! | [`registry`] | which providers there are: configuration, environment, this machine; where keys come from |
//! | [`models`] | windows, limits, prices, abilities, levels of thinking effort |
//! | [`codec`] | requests and chunks, chunks to blocks, and what a vendor's schema refuses, mended on the way out |
//! | [`transport`] | bytes of the network to events; clocks, retries, errors by remedy |
//! | `anthropic`, `openai`, `gemini` | the formats of the vendors |
//! | [`demo`] | the built-in demo model |
//! | [`replay`] | recordings, and playing them back |
//!
//! It may use `protocol` and `config`.

mod anthropic;
pub mod codec;
pub mod demo;
pub mod error;
mod gemini;
pub mod models;
mod openai;
pub mod registry;
pub mod replay;
pub mod transport;

pub use codec::assemble::{Assembled, Assembler};
pub use codec::chunk::Chunk;
pub use codec::request::{ChatMessage, Request};
pub use error::ProviderError;
pub use registry::{Providers, build};
pub use replay::redact::Redact;
pub use tiller_protocol::Effort;
pub use transport::alarm::Alarm;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

/// A stream of chunks. Dropping it closes the connection.
pub type ChunkStream = BoxStream<'static, Result<Chunk, ProviderError>>;

/// One wire format at one address.
#[async_trait]
pub trait Provider: Send + Sync {
    /// The configured name, for instance `anthropic`; the first part of a model's reference.
    fn name(&self) -> &str;

    /// Sends the request. Resolves when the server has accepted it (status 200) or refused it.
    async fn stream(&self, request: Request) -> Result<ChunkStream, ProviderError>;

    /// Makes what the first request would have to wait for. What fails here fails there again, and is reported there.
    async fn prepare(&self) {}

    /// The exact bytes that `stream` would send as its body, for the prefix tests and `/context`.
    fn body(&self, request: &Request) -> Vec<u8>;

    /// The models that the server offers; `Ok(vec![])` when it cannot say.
    async fn models(&self) -> Result<Vec<String>, ProviderError>;

    /// Tries the key with a question that costs nothing.
    async fn check(&self) -> Result<(), ProviderError> {
        self.models().await.map(drop)
    }
}
