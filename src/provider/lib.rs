//! A provider turns a [`Request`] into a stream of [`Chunk`]s, for one wire format.
//!
//! Providers know nothing of sessions, tools or permissions. Retrying is not theirs either: an error
//! is classed by its remedy ([`ProviderError`]) and the turn decides, with [`retry`] to say how long to
//! wait.
//!
//! | module | job |
//! | --- | --- |
//! | [`registry`], `local`, `offered` | which providers there are: configuration, environment, this machine |
//! | [`models`], [`effort`] | windows, limits, prices, abilities |
//! | [`assemble`] | chunks → blocks |
//! | [`sse`], `stream`, `alarm`, [`http`], `fault` | bytes of the network → events, clocks, errors by remedy |
//! | `anthropic`, `openai_chat`, `openai_responses`, `gemini` | the wire formats |
//! | `answer` | a stream, a document or a web page |
//! | `fit`, `amend` | what a vendor's schema refuses, mended on the way out |
//! | [`key`] | where keys come from |
//! | [`demo`] | the built-in demo model |
//! | [`record`] | recordings, and playing them back |
//! | [`retry`] | how long to wait before trying again |

mod alarm;
mod amend;
mod answer;
mod anthropic;
mod anthropic_reply;
pub mod assemble;
pub mod chunk;
pub mod demo;
pub mod effort;
pub mod error;
mod fault;
mod fit;
mod gemini;
mod gemini_reply;
mod gemini_schema;
pub mod http;
pub mod key;
mod lax;
mod local;
pub mod models;
mod offered;
mod openai_chat;
mod openai_chat_event;
mod openai_chat_reply;
mod openai_responses;
mod openai_responses_reply;
pub mod record;
mod redact;
pub mod registry;
mod reply;
pub mod request;
pub mod retry;
pub mod sse;
mod stream;
mod think_tags;
mod wire;

pub use alarm::Alarm;
pub use assemble::{Assembled, Assembler};
pub use chunk::Chunk;
pub use error::ProviderError;
pub use redact::Redact;
pub use registry::{Providers, build};
pub use request::{ChatMessage, Request};
pub use tiller_protocol::Effort;

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

    /// Makes what the first request would have to wait for. What fails here fails there again, and is told there.
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
