//! The reply in flight.

use std::collections::HashSet;

use tiller_protocol::{Block, StopReason, ToolCall, USE_TOOL, Usage};
use tiller_provider::codec::assemble::unsign_last;
use tiller_provider::{Assembler, Chunk, ProviderError};
use tiller_tool::deferred;

use super::meant::meant;
use crate::context::tokens;

/// Tokens that a request used: the server's counts, and an estimate of what arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyUsage {
    /// What the server counted; all zero when it counted nothing.
    pub usage: Usage,
    /// Tokens of what arrived, estimated from its length.
    pub arrived: u64,
    /// The reply is complete, so that the server's counts are final.
    pub whole: bool,
}

/// A reply while it arrives.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    parts: Assembler,
    shown: bool,
    /// The server accepted the request: something other than an error arrived.
    begun: bool,
    /// Bytes of text, thinking and arguments.
    bytes: u64,
}

/// A reply that gets no more chunks.
#[derive(Clone, Debug)]
pub struct FinishedReply {
    pub blocks: Vec<Block>,
    /// Names of calls that were cut off; they are not in `blocks`.
    pub dropped: Vec<String>,
    pub stop: StopReason,
    pub used: ReplyUsage,
}

/// Removes calls from a reply, and the signatures of the thinking that led to them: no vendor accepts such thinking
/// alone.
pub fn drop_calls(blocks: &mut Vec<Block>, gone: impl Fn(&ToolCall) -> bool) {
    for block in std::mem::take(blocks) {
        match block {
            Block::ToolCall(call) if gone(&call) => unsign_last(blocks),
            block => blocks.push(block),
        }
    }
}

/// Replaces a call of `use_tool`, however its name is spelt.
fn resolve(call: &mut ToolCall) {
    if !call.is_use_tool() && meant(&call.name, std::iter::once(USE_TOOL)).is_some() {
        call.name = USE_TOOL.to_owned();
    }
    deferred::resolve(call);
}

impl Reply {
    /// The reply number `n` of `provider` (its configured name). `taken` are the ids of all calls so far.
    pub fn new(provider: &str, n: u32, taken: &HashSet<String>) -> Self {
        let seed = format!("{}_{n}", taken.len());
        let parts = Assembler::new(provider, &seed, taken.iter().cloned());
        Self { parts, ..Self::default() }
    }

    pub fn push(&mut self, chunk: Chunk) {
        self.begun = true;
        self.bytes = self.bytes.saturating_add(match &chunk {
            Chunk::Text { text, .. } | Chunk::Thinking { text, .. } => text.len() as u64,
            Chunk::Redacted { data, .. } => data.len() as u64,
            Chunk::ToolBegin { name, .. } => name.len() as u64,
            Chunk::ToolArgs { json, .. } => json.len() as u64,
            _ => 0,
        });
        self.shown |= match &chunk {
            Chunk::Text { text, .. } | Chunk::Thinking { text, .. } => !text.is_empty(),
            Chunk::ToolBegin { .. } => true,
            _ => false,
        };
        self.parts.push(chunk);
    }

    /// Whether the stop chunk has arrived.
    pub fn stopped(&self) -> bool {
        self.parts.stop.is_some()
    }

    /// Whether any of it was shown.
    pub fn shown(&self) -> bool {
        self.shown
    }

    /// Whether no block of it has begun.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether the server accepted the request, and so charges for it.
    pub fn begun(&self) -> bool {
        self.begun
    }

    /// Whether the server charges for the reply that ended with `error`. A response that is no reply (a login page, an
    /// error with a success status) costs nothing.
    pub fn charged(&self, error: &ProviderError) -> bool {
        let refused = matches!(error, ProviderError::Rejected(_) | ProviderError::Auth(_));
        self.begun && !(refused && self.is_empty() && self.parts.usage == Usage::default())
    }

    /// Usage so far.
    pub fn used(&self) -> ReplyUsage {
        ReplyUsage { usage: self.parts.usage, arrived: tokens::of_bytes(self.bytes), whole: self.stopped() }
    }

    /// The blocks so far, for a client that connects late. Calls are left out: they may be incomplete.
    pub fn so_far(&self) -> Vec<Block> {
        let mut blocks = self.parts.partial();
        blocks.retain(|b| !matches!(b, Block::ToolCall(_)));
        blocks
    }

    /// Ends the reply. A call of `use_tool` becomes the call that it asks for. The ids of its calls are added to `ids`.
    pub fn finish(&mut self, ids: &mut HashSet<String>) -> FinishedReply {
        let used = self.used();
        let mut whole = std::mem::take(&mut self.parts).finish();
        for block in &mut whole.blocks {
            if let Block::ToolCall(call) = block {
                resolve(call);
            }
        }
        ids.extend(whole.calls().map(|c| c.id.clone()));
        FinishedReply {
            stop: whole.stop.clone().unwrap_or(StopReason::Interrupted),
            blocks: whole.blocks,
            dropped: whole.dropped,
            used,
        }
    }
}
