//! Anthropic Messages: reading the streamed reply.

use std::collections::{HashMap, VecDeque};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tiller_protocol::{StopReason, Usage};

use crate::codec::chunk::Chunk;
use crate::codec::lax::{self, Count, Str};
use crate::codec::{Decoder, Flow, repair};
use crate::error::ProviderError;
use crate::openai::chat_event::argument_text;
use crate::transport::fault;

/// One event. A flat struct, because a tagged enum would copy every event before reading it.
#[derive(Deserialize)]
struct AnthropicEvent<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Str<'a>,
    #[serde(default)]
    index: Count,
    #[serde(borrow, default)]
    delta: Option<AnthropicDelta<'a>>,
    #[serde(borrow, default)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct AnthropicDelta<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Str<'a>,
    #[serde(borrow, default)]
    text: Str<'a>,
    #[serde(borrow, default)]
    thinking: Str<'a>,
    #[serde(borrow, default)]
    signature: Str<'a>,
    #[serde(borrow, default)]
    partial_json: Option<&'a RawValue>,
    #[serde(borrow, default)]
    stop_reason: Str<'a>,
    #[serde(borrow, default)]
    stop_details: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Str<'a>,
    #[serde(borrow, default)]
    id: Str<'a>,
    #[serde(borrow, default)]
    name: Str<'a>,
    #[serde(borrow, default)]
    text: Str<'a>,
    #[serde(borrow, default)]
    thinking: Str<'a>,
    #[serde(borrow, default)]
    signature: Str<'a>,
    #[serde(borrow, default)]
    data: Str<'a>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct AnthropicUsage {
    #[serde(default)]
    input_tokens: Count,
    #[serde(default)]
    output_tokens: Count,
    #[serde(default)]
    cache_read_input_tokens: Count,
    #[serde(default)]
    cache_creation_input_tokens: Count,
}

/// A whole reply, from a server that does not stream.
#[derive(Deserialize)]
struct ReplyMessage<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Str<'a>,
    #[serde(borrow, default)]
    content: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    stop_reason: Str<'a>,
    #[serde(borrow, default)]
    stop_details: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Start<'a> {
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct AnthropicDetails<'a> {
    #[serde(borrow, default)]
    explanation: Str<'a>,
}

/// An open block.
struct OpenBlock {
    /// Its index in the chunks.
    index: usize,
    /// For a call: arguments that came with its start, used when no deltas follow.
    input: Option<String>,
    /// For a block of an unknown kind: its start, and the argument text that follows.
    raw: Option<(Value, String)>,
    /// The argument text of a call so far.
    args: String,
    call: bool,
    thought: bool,
}

impl OpenBlock {
    fn new(index: usize) -> Self {
        Self { index, input: None, raw: None, args: String::new(), call: false, thought: false }
    }

    /// True for a call of which some may be missing.
    fn is_cut(&self) -> bool {
        self.call && self.input.is_none() && !repair::is_whole(&self.args)
    }
}

/// The decoder of one reply.
pub(crate) struct AnthropicReply {
    provider: String,
    open: HashMap<u64, OpenBlock>,
    next: usize,
    calls: bool,
    usage: Usage,
    stop: Option<StopReason>,
    /// The end event has arrived.
    over: bool,
}

impl AnthropicReply {
    pub(crate) fn new(provider: &str) -> Self {
        Self {
            provider: provider.into(),
            open: HashMap::new(),
            next: 0,
            calls: false,
            usage: Usage::default(),
            stop: None,
            over: false,
        }
    }

    fn begin(&mut self, at: u64, raw: Option<&RawValue>, out: &mut VecDeque<Chunk>) {
        // Some proxies give all blocks one index, and no end.
        self.close(at, out);
        let index = self.next;
        self.next += 1;
        let mut open = OpenBlock::new(index);
        let head: Option<Head<'_>> = lax::read(raw);
        match head {
            Some(h) if h.kind.as_str() == "text" => {
                out.push_back(Chunk::Text { index, text: h.text.into_string() });
            }
            Some(h) if h.kind.as_str() == "thinking" => {
                open.thought = true;
                out.push_back(Chunk::Thinking { index, text: h.thinking.into_string() });
                if !h.signature.is_empty() {
                    out.push_back(Chunk::Signature { index, signature: h.signature.into_string() });
                }
            }
            Some(h) if h.kind.as_str() == "redacted_thinking" => {
                out.push_back(Chunk::Redacted { index, data: h.data.into_string() });
            }
            Some(h) if h.kind.as_str() == "tool_use" => {
                self.calls = true;
                open.call = true;
                open.input =
                    h.input.map(|v| v.get().to_owned()).filter(|v| v != "{}" && v != "[]" && v != "null");
                out.push_back(Chunk::ToolBegin {
                    index,
                    id: h.id.into_string(),
                    name: h.name.into_string(),
                    vendor: None,
                });
            }
            _ => open.raw = Some((lax::read(raw).unwrap_or(Value::Null), String::new())),
        }
        self.open.insert(at, open);
    }

    fn delta(&mut self, at: u64, delta: AnthropicDelta<'_>, out: &mut VecDeque<Chunk>) {
        if !self.open.contains_key(&at) {
            // Some proxies leave out the start event.
            let index = self.next;
            self.next += 1;
            self.open.insert(at, OpenBlock::new(index));
        }
        let Some(open) = self.open.get_mut(&at) else { return };
        let index = open.index;
        match delta.kind.as_str() {
            "text_delta" => out.push_back(Chunk::Text { index, text: delta.text.into_string() }),
            "thinking_delta" => {
                out.push_back(Chunk::Thinking { index, text: delta.thinking.into_string() });
            }
            "signature_delta" => {
                out.push_back(Chunk::Signature { index, signature: delta.signature.into_string() });
            }
            "input_json_delta" => {
                let more = delta.partial_json.map(argument_text).unwrap_or_default();
                match &mut open.raw {
                    Some((_, json)) => json.push_str(&more),
                    None if more.is_empty() => {}
                    None => {
                        open.input = None;
                        open.args.push_str(&more);
                        out.push_back(Chunk::ToolArgs { index, json: more });
                    }
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, at: u64, out: &mut VecDeque<Chunk>) {
        let Some(open) = self.open.remove(&at) else { return };
        let index = open.index;
        if let Some(json) = open.input {
            out.push_back(Chunk::ToolArgs { index, json });
        }
        if let Some((mut raw, json)) = open.raw {
            if let (Some(map), Ok(input)) = (raw.as_object_mut(), serde_json::from_str::<Value>(&json)) {
                map.insert("input".into(), input);
            }
            if raw.is_object() {
                out.push_back(Chunk::Unknown { index, raw });
            }
        }
        out.push_back(Chunk::BlockEnd { index });
    }

    fn count(&mut self, raw: Option<&RawValue>, out: &mut VecDeque<Chunk>) {
        let Some(counts) = lax::read::<AnthropicUsage>(raw) else { return };
        let set = |to: &mut u64, from: Count| *to = from.0.unwrap_or(*to);
        set(&mut self.usage.input, counts.input_tokens);
        set(&mut self.usage.output, counts.output_tokens);
        set(&mut self.usage.cache_read, counts.cache_read_input_tokens);
        set(&mut self.usage.cache_write, counts.cache_creation_input_tokens);
        out.push_back(Chunk::Usage(self.usage));
    }
}

impl Decoder for AnthropicReply {
    fn event(&mut self, name: &str, data: &str, out: &mut VecDeque<Chunk>) -> Result<Flow, ProviderError> {
        if data.trim() == "[DONE]" {
            // Proxies of other formats end with it, some without a reason before it: then a call that is open must be whole.
            self.over = self.stop.is_some() || !self.open.values().any(OpenBlock::is_cut);
            if self.stop.is_none() && self.next > 0 {
                self.stop = Some(StopReason::EndTurn);
            }
            return Ok(Flow::Over);
        }
        let Some(event) = lax::event::<AnthropicEvent<'_>>(&self.provider, data)? else {
            return Ok(Flow::More);
        };
        let at = event.index.0.unwrap_or(0);
        match event.kind.as_str() {
            "content_block_delta" => {
                if let Some(delta) = event.delta {
                    self.delta(at, delta, out);
                }
            }
            "content_block_start" => self.begin(at, event.content_block, out),
            "content_block_stop" => self.close(at, out),
            "message_start" => {
                self.count(lax::read::<Start<'_>>(event.message).and_then(|m| m.usage), out);
            }
            "message_delta" => {
                self.count(event.usage, out);
                if let Some(delta) = event.delta
                    && !delta.stop_reason.is_empty()
                {
                    self.stop = Some(stopped(delta.stop_reason.as_str(), delta.stop_details));
                }
            }
            "message_stop" => {
                self.stop.get_or_insert(StopReason::EndTurn);
                self.over = true;
                return Ok(Flow::Over);
            }
            "error" => return Err(fault::stated(&self.provider, data)),
            _ if name == "error" => return Err(fault::stated(&self.provider, data)),
            "ping" => out.push_back(Chunk::Ping),
            // The vendor may add new kinds of event.
            _ => {}
        }
        Ok(Flow::More)
    }

    fn document(&mut self, data: &str, out: &mut VecDeque<Chunk>) -> Result<(), ProviderError> {
        let Some(message) = lax::event::<ReplyMessage<'_>>(&self.provider, data)? else { return Ok(()) };
        if message.kind.as_str() != "message" {
            return self.event("", data, out).map(drop);
        }
        let mut any = false;
        for (at, block) in message.content.into_iter().flatten().enumerate() {
            any = true;
            self.begin(at as u64, Some(block), out);
            self.close(at as u64, out);
        }
        self.count(message.usage, out);
        if !message.stop_reason.is_empty() {
            self.stop = Some(stopped(message.stop_reason.as_str(), message.stop_details));
            self.over = true;
        } else if any {
            // A document is complete.
            self.stop = Some(StopReason::EndTurn);
            self.over = true;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), ProviderError> {
        let stop = match self.stop.take() {
            Some(StopReason::EndTurn) if self.calls => StopReason::ToolUse,
            Some(stop) => stop,
            None => return Err(fault::cut(&self.provider)),
        };
        // At the output limit the block is left open. A call that is open then is incomplete, and so is a signature.
        let limit = stop == StopReason::MaxTokens;
        if !limit && !self.over && self.open.values().any(|o| o.call || o.thought) {
            return Err(fault::cut(&self.provider));
        }
        let mut left: Vec<u64> =
            self.open.iter().filter(|(_, o)| !limit || !o.call).map(|(at, _)| *at).collect();
        left.sort_unstable();
        for at in left {
            if limit && self.open.get(&at).is_some_and(|o| o.thought) {
                continue;
            }
            self.close(at, out);
        }
        out.push_back(Chunk::Stop(stop));
        Ok(())
    }
}

/// Maps the vendor's stop reason.
fn stopped(reason: &str, details: Option<&RawValue>) -> StopReason {
    match reason {
        "tool_use" => StopReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "refusal" => StopReason::Refusal(
            lax::read::<AnthropicDetails<'_>>(details)
                .map(|d| d.explanation.into_string())
                .unwrap_or_default(),
        ),
        _ => StopReason::EndTurn,
    }
}
