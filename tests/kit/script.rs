//! One reply of a model, independent of the wire format.

use serde_json::Value;

use crate::{anthropic, gemini, openai_chat, openai_responses};

/// Wire formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    Anthropic,
    OpenaiChat,
    OpenaiResponses,
    Gemini,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenaiChat, Self::OpenaiResponses, Self::Gemini];
}

/// One piece of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Text(String),
    /// `signature` is left out where the format has none.
    Thinking {
        text: String,
        signature: String,
    },
    /// Anthropic only; others skip it.
    Redacted(String),
    Call {
        id: String,
        name: String,
        /// The argument text exactly as streamed, so that broken JSON can be scripted.
        arguments: String,
    },
}

/// Why the reply ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// `ToolUse` when there are calls, else the model was done.
    Natural,
    MaxTokens,
    Refusal,
}

/// Token counts as the vendor would give them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Neither read from nor written to a cache.
    pub input: i64,
    pub output: i64,
    pub cache_read: i64,
    pub cache_write: i64,
    pub reasoning: i64,
}

/// One reply. Built by chaining; the order of calls is the order of blocks.
#[derive(Clone, Debug)]
pub struct Script {
    pub(crate) parts: Vec<Part>,
    pub(crate) counts: Option<Counts>,
    pub(crate) stop: Stop,
    pub(crate) piece: usize,
}

impl Default for Script {
    fn default() -> Self {
        Self::new()
    }
}

impl Script {
    /// An empty reply with 10 tokens in and 5 out.
    pub fn new() -> Self {
        Self {
            parts: Vec::new(),
            counts: Some(Counts { input: 10, output: 5, ..Counts::default() }),
            stop: Stop::Natural,
            piece: 12,
        }
    }

    /// Adds text.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        self.parts.push(Part::Text(text.into()));
        self
    }

    /// Adds thinking with a signature.
    #[must_use]
    pub fn thinking(mut self, text: &str, signature: &str) -> Self {
        self.parts.push(Part::Thinking { text: text.into(), signature: signature.into() });
        self
    }

    /// Adds reasoning that the vendor encrypted.
    #[must_use]
    pub fn redacted(mut self, data: &str) -> Self {
        self.parts.push(Part::Redacted(data.into()));
        self
    }

    /// Adds a call of a tool.
    #[must_use]
    pub fn call(self, id: &str, name: &str, arguments: Value) -> Self {
        self.call_raw(id, name, &arguments.to_string())
    }

    /// Adds a call whose arguments are this text, JSON or not. (Gemini sends objects: there, text that is not JSON
    /// becomes a string.)
    #[must_use]
    pub fn call_raw(mut self, id: &str, name: &str, arguments: &str) -> Self {
        self.parts.push(Part::Call { id: id.into(), name: name.into(), arguments: arguments.into() });
        self
    }

    /// Sets the counts.
    #[must_use]
    pub fn counts(mut self, counts: Counts) -> Self {
        self.counts = Some(counts);
        self
    }

    /// Tokens in and out.
    #[must_use]
    pub fn usage(self, input: i64, output: i64) -> Self {
        self.counts(Counts { input, output, ..Counts::default() })
    }

    /// The server reports no usage.
    #[must_use]
    pub fn no_usage(mut self) -> Self {
        self.counts = None;
        self
    }

    /// Sets why it ends.
    #[must_use]
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// Sets how many characters a delta has. Default 12.
    #[must_use]
    pub fn pieces_of(mut self, characters: usize) -> Self {
        self.piece = characters.max(1);
        self
    }

    /// The body of a streamed answer (status 200).
    pub fn body(&self, wire: Wire) -> Vec<u8> {
        match wire {
            Wire::Anthropic => anthropic::body(self),
            Wire::OpenaiChat => openai_chat::body(self),
            Wire::OpenaiResponses => openai_responses::body(self),
            Wire::Gemini => gemini::body(self),
        }
        .into_bytes()
    }

    pub(crate) fn calls(&self) -> bool {
        self.parts.iter().any(|p| matches!(p, Part::Call { .. }))
    }

    /// Cuts text into deltas; an empty text gives none.
    pub(crate) fn cut<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let mut out = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.char_indices().nth(self.piece).map_or(rest.len(), |(at, _)| at);
            let (piece, tail) = rest.split_at(end);
            out.push(piece);
            rest = tail;
        }
        out
    }
}

/// One server-sent event. `name` empty: no event line.
pub fn sse(name: &str, data: &Value) -> String {
    if name.is_empty() { format!("data: {data}\n\n") } else { format!("event: {name}\ndata: {data}\n\n") }
}
