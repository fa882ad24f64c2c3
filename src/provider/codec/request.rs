//! Requests to a model, independent of the wire format.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use tiller_protocol::{Block, Effort, ModelRef, Part, ToolSpec};

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatMessage {
    User {
        content: Vec<Part>,
    },
    /// `model` wrote it: signatures and unknown blocks are sent back to that vendor only.
    Assistant {
        blocks: Vec<Block>,
        model: ModelRef,
    },
    /// The result of one call. The results of a reply follow it directly, in call order.
    ToolResult {
        call_id: String,
        name: String,
        ok: bool,
        content: Vec<Part>,
    },
}

/// A complete request. Equal requests give equal bytes; a request that extends another by messages contains the other's
/// messages unchanged (cache marks may move).
#[derive(Clone, Debug)]
pub struct Request {
    /// Without the provider's prefix.
    pub model: String,
    pub system: Arc<str>,
    pub tools: Arc<[ToolSpec]>,
    pub messages: Arc<[ChatMessage]>,
    /// Output limit in tokens; `None`: the model table's, else the vendor's default.
    pub max_output: Option<u64>,
    pub effort: Effort,
    /// Stable within a session: lets vendors route to the same cache.
    pub cache_key: String,
}

/// The form for the demo model and recordings, which have no wire format. Messages come last.
impl Serialize for Request {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut out = s.serialize_struct("Request", 7)?;
        out.serialize_field("model", &self.model)?;
        out.serialize_field("max_output", &self.max_output)?;
        out.serialize_field("effort", &self.effort)?;
        out.serialize_field("cache_key", &self.cache_key)?;
        out.serialize_field("system", &*self.system)?;
        out.serialize_field("tools", &*self.tools)?;
        out.serialize_field("messages", &*self.messages)?;
        out.end()
    }
}
