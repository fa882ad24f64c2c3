//! Deltas of a reply, which [`Assembler`](crate::Assembler) folds into blocks.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tiller_protocol::{StopReason, Usage};

/// One step of a streaming reply. `index` numbers blocks in the order in which they began; a delta for
/// an index that another kind of block holds is ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chunk {
    Text {
        index: usize,
        text: String,
    },
    Thinking {
        index: usize,
        text: String,
    },
    /// The text at this index was a thought, which the server reported only at its end.
    TextWasThought {
        index: usize,
    },
    /// The complete signature, or its next piece.
    Signature {
        index: usize,
        signature: String,
    },
    Redacted {
        index: usize,
        data: String,
    },
    /// A call begins. An empty `id` is replaced by a generated one. A key `text` in `vendor` requests that the argument
    /// text is stored there when serialising the arguments would give another text.
    ToolBegin {
        index: usize,
        id: String,
        name: String,
        vendor: Option<Value>,
    },
    /// Next piece of its arguments, as JSON text.
    ToolArgs {
        index: usize,
        json: String,
    },
    /// The block is complete. Only calls with this chunk are run.
    BlockEnd {
        index: usize,
    },
    Unknown {
        index: usize,
        raw: Value,
    },
    /// Token counts so far; they replace earlier ones.
    Usage(Usage),
    /// The server reads the prompt, whose tokens are `of` in all.
    Progress {
        done: u64,
        of: u64,
    },
    /// The reply is complete. A stream that ends without it was cut.
    Stop(StopReason),
    /// A keep-alive without content.
    Ping,
}

/// Adjacent deltas of one kind are joined up to this size in bytes, so that many tiny ones cost little.
const JOIN_LIMIT: usize = 16 * 1024;

impl Chunk {
    /// True where it carries content of the reply: pings, counts and the progress before it do not.
    pub fn is_content(&self) -> bool {
        !matches!(self, Self::Ping | Self::Usage(_) | Self::Progress { .. })
    }

    /// Bytes of content.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Text { text, .. } | Self::Thinking { text, .. } => text.len(),
            Self::Signature { signature: text, .. }
            | Self::Redacted { data: text, .. }
            | Self::ToolArgs { json: text, .. } => text.len(),
            Self::Unknown { raw, .. } => raw.to_string().len(),
            Self::TextWasThought { .. }
            | Self::ToolBegin { .. }
            | Self::BlockEnd { .. }
            | Self::Usage(_)
            | Self::Progress { .. }
            | Self::Stop(_)
            | Self::Ping => 0,
        }
    }

    /// Appends `next` to `queue`, joined to the last chunk when both are pieces of the same text.
    pub fn join(queue: &mut std::collections::VecDeque<Self>, next: Self) {
        match (queue.back_mut(), &next) {
            (Some(Self::Text { index: a, text }), Self::Text { index: b, text: more })
            | (Some(Self::Thinking { index: a, text }), Self::Thinking { index: b, text: more })
            | (Some(Self::ToolArgs { index: a, json: text }), Self::ToolArgs { index: b, json: more })
                if *a == *b && text.len() + more.len() <= JOIN_LIMIT =>
            {
                text.push_str(more);
            }
            (Some(Self::Ping), Self::Ping) => {}
            (Some(last @ Self::Usage(_)), Self::Usage(_))
            | (Some(last @ Self::Progress { .. }), Self::Progress { .. }) => *last = next,
            _ => queue.push_back(next),
        }
    }
}
