//! The reply in flight.

use std::collections::HashSet;

use tiller_protocol::{Block, StopReason, Usage};
use tiller_provider::{Assembler, Chunk};

/// A reply as far as it has come.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    parts: Assembler,
    shown: bool,
}

/// A reply that gets no more chunks.
#[derive(Clone, Debug)]
pub struct Whole {
    pub blocks: Vec<Block>,
    /// Names of calls that were cut off; they are not in `blocks`.
    pub dropped: Vec<String>,
    pub stop: StopReason,
    pub usage: Usage,
}

impl Reply {
    /// The reply number `n` of `provider` (its configured name). `taken` are the ids of all calls so far.
    pub fn new(provider: &str, n: u32, taken: &HashSet<String>) -> Self {
        let seed = format!("{}_{n}", taken.len());
        let parts = Assembler::new(provider, &seed, taken.iter().cloned());
        Self { parts, shown: false }
    }

    pub fn push(&mut self, chunk: Chunk) {
        self.shown |= match &chunk {
            Chunk::Text { text, .. } | Chunk::Thinking { text, .. } => !text.is_empty(),
            Chunk::ToolBegin { .. } => true,
            _ => false,
        };
        self.parts.push(chunk);
    }

    /// Whether the end came.
    pub fn stopped(&self) -> bool {
        self.parts.stop.is_some()
    }

    /// Whether the person has seen anything of it.
    pub fn shown(&self) -> bool {
        self.shown
    }

    /// Tokens counted so far.
    pub fn usage(&self) -> Usage {
        self.parts.usage
    }

    /// What has arrived, for a client that comes late. Calls are left out: they may not be whole.
    pub fn so_far(&self) -> Vec<Block> {
        let mut blocks = self.parts.partial();
        blocks.retain(|b| !matches!(b, Block::ToolCall(_)));
        blocks
    }

    /// Ends it. The ids of its calls are added to `ids`.
    pub fn finish(&mut self, ids: &mut HashSet<String>) -> Whole {
        let whole = std::mem::take(&mut self.parts).finish();
        ids.extend(whole.calls().map(|c| c.id.clone()));
        Whole {
            stop: whole.stop.clone().unwrap_or(StopReason::Interrupted),
            blocks: whole.blocks,
            dropped: whole.dropped,
            usage: whole.usage,
        }
    }
}
