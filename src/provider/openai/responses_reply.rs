//! OpenAI Responses: reading the streamed reply.

use std::collections::{HashMap, VecDeque};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tiller_protocol::StopReason;

use crate::codec::chunk::Chunk;
use crate::codec::lax::{self, Count, Str};
use crate::codec::reply::usage;
use crate::codec::{Decoder, Flow};
use crate::error::ProviderError;
use crate::transport::fault;

/// Key of an unknown block that holds the fields beside the text of the message before it.
pub(crate) const HEAD: &str = "tiller_message_head";

#[derive(Deserialize)]
struct ResponsesEvent<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Str<'a>,
    #[serde(default)]
    output_index: Count,
    #[serde(default)]
    summary_index: Count,
    #[serde(borrow, default)]
    delta: Str<'a>,
    #[serde(borrow, default)]
    arguments: Str<'a>,
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    code: Str<'a>,
    #[serde(borrow, default)]
    message: Str<'a>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ReplyItem<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Str<'a>,
    #[serde(borrow, default)]
    id: Str<'a>,
    #[serde(borrow, default)]
    call_id: Str<'a>,
    #[serde(borrow, default)]
    name: Str<'a>,
    #[serde(borrow, default)]
    arguments: Str<'a>,
    #[serde(borrow, default)]
    phase: Str<'a>,
    #[serde(borrow, default)]
    encrypted_content: Str<'a>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    summary: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Text<'a> {
    #[serde(borrow, default)]
    text: Str<'a>,
    #[serde(borrow, default)]
    refusal: Str<'a>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    incomplete_details: Option<&'a RawValue>,
}

/// A whole reply, from a server that does not stream.
#[derive(Deserialize)]
struct WholeReply<'a> {
    #[serde(borrow, default)]
    output: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    status: Str<'a>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    incomplete_details: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct IncompleteDetails<'a> {
    #[serde(borrow, default)]
    reason: Str<'a>,
    #[serde(borrow, default)]
    code: Str<'a>,
    #[serde(rename = "type", borrow, default)]
    kind: Str<'a>,
    #[serde(borrow, default)]
    message: Str<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponsesUsage {
    input_tokens: Count,
    output_tokens: Count,
    input_tokens_details: Option<ResponsesDetails>,
    output_tokens_details: Option<ResponsesDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponsesDetails {
    cached_tokens: Count,
    cache_write_tokens: Count,
    reasoning_tokens: Count,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemKind {
    Text,
    Thought,
    Call,
    Other,
}

struct OpenItem {
    index: usize,
    kind: ItemKind,
    /// Whether part of its content arrived as deltas.
    has_deltas: bool,
    /// The last part of a summary.
    part: u64,
}

/// The decoder of one reply.
pub(crate) struct ResponsesReply {
    provider: String,
    open: HashMap<u64, OpenItem>,
    next: usize,
    calls: bool,
    refusal: String,
    stop: Option<StopReason>,
}

impl ResponsesReply {
    pub(crate) fn new(provider: &str) -> Self {
        Self {
            provider: provider.into(),
            open: HashMap::new(),
            next: 0,
            calls: false,
            refusal: String::new(),
            stop: None,
        }
    }

    /// The open block at a server's index; created when the server did not announce it.
    fn at(&mut self, at: u64, kind: ItemKind) -> &mut OpenItem {
        let next = &mut self.next;
        self.open.entry(at).or_insert_with(|| {
            *next += 1;
            OpenItem { index: *next - 1, kind, has_deltas: false, part: 0 }
        })
    }

    fn added(&mut self, at: u64, raw: Option<&RawValue>, out: &mut VecDeque<Chunk>) {
        let Some(item) = lax::read::<ReplyItem<'_>>(raw) else { return };
        let kind = match item.kind.as_str() {
            "message" => ItemKind::Text,
            "reasoning" => ItemKind::Thought,
            "function_call" => ItemKind::Call,
            _ => ItemKind::Other,
        };
        self.open.remove(&at);
        let index = self.at(at, kind).index;
        if kind == ItemKind::Call {
            self.calls = true;
            let id = if item.call_id.is_empty() { &item.id } else { &item.call_id };
            out.push_back(Chunk::ToolBegin {
                index,
                id: id.as_str().to_owned(),
                name: item.name.into_string(),
                vendor: Some(json!({"id": item.id.as_str(), "text": null})),
            });
        }
    }

    fn done(&mut self, at: u64, raw: Option<&RawValue>, out: &mut VecDeque<Chunk>) {
        if !self.open.contains_key(&at) {
            self.added(at, raw, out);
        }
        let Some(open) = self.open.remove(&at) else { return };
        let index = open.index;
        let item = lax::read::<ReplyItem<'_>>(raw);
        match (open.kind, item) {
            (ItemKind::Text, Some(item)) => {
                if !open.has_deltas {
                    for part in lax::read::<Vec<Text<'_>>>(item.content).unwrap_or_default() {
                        self.refusal.push_str(part.refusal.as_str());
                        out.push_back(Chunk::Text { index, text: part.text.into_string() });
                    }
                }
                out.push_back(Chunk::BlockEnd { index });
                if !item.phase.is_empty() {
                    let index = self.next;
                    self.next += 1;
                    out.push_back(Chunk::Unknown {
                        index,
                        raw: json!({HEAD: {"phase": item.phase.as_str()}}),
                    });
                }
                return;
            }
            (ItemKind::Thought, Some(item)) => {
                if !open.has_deltas {
                    for part in lax::read::<Vec<Text<'_>>>(item.summary).unwrap_or_default() {
                        out.push_back(Chunk::Thinking { index, text: part.text.into_string() });
                    }
                }
                // Without the encrypted part the vendor could not read it back.
                if let Some(raw) = raw.filter(|_| !item.encrypted_content.is_empty()) {
                    out.push_back(Chunk::Signature { index, signature: raw.get().to_owned() });
                }
            }
            (ItemKind::Call, Some(item)) => {
                if !open.has_deltas && !item.arguments.is_empty() {
                    out.push_back(Chunk::ToolArgs { index, json: item.arguments.into_string() });
                }
            }
            (ItemKind::Other, _) => {
                if let Some(raw) = lax::read::<Value>(raw) {
                    out.push_back(Chunk::Unknown { index, raw });
                }
            }
            (_, None) => {}
        }
        out.push_back(Chunk::BlockEnd { index });
    }

    fn count(raw: Option<&RawValue>, out: &mut VecDeque<Chunk>) {
        let Some(c) = lax::read::<ResponsesUsage>(raw) else { return };
        if c.input_tokens.0.is_none() && c.output_tokens.0.is_none() {
            return;
        }
        let details = c.input_tokens_details.unwrap_or_default();
        let reasoning = c.output_tokens_details.unwrap_or_default().reasoning_tokens.0;
        out.push_back(Chunk::Usage(usage(
            c.input_tokens.0.unwrap_or(0),
            details.cached_tokens.0.unwrap_or(0),
            details.cache_write_tokens.0.unwrap_or(0),
            c.output_tokens.0.unwrap_or(0),
            reasoning.unwrap_or(0),
        )));
    }

    /// Handles the vendor's report about the end of a reply.
    fn ended(&mut self, incomplete: bool, why: Option<&RawValue>) {
        let why = lax::read::<IncompleteDetails<'_>>(why);
        let refusal = std::mem::take(&mut self.refusal);
        self.stop = Some(match why.as_ref().map(|w| w.reason.as_str()) {
            Some("max_output_tokens") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::Refusal(refusal),
            _ if incomplete => StopReason::MaxTokens,
            _ if !refusal.is_empty() => StopReason::Refusal(refusal),
            _ if self.calls => StopReason::ToolUse,
            _ => StopReason::EndTurn,
        });
    }

    fn failure(&self, raw: Option<&RawValue>, code: &str, message: &str) -> ProviderError {
        let why = lax::read::<IncompleteDetails<'_>>(raw);
        let text = why.as_ref().map_or(message, |w| w.message.as_str());
        let code = why.as_ref().map_or_else(
            || code.to_owned(),
            |w| format!("{} {}", w.kind.as_str(), w.code.as_str()).trim().to_owned(),
        );
        fault::event(&self.provider, &code, text)
    }
}

impl Decoder for ResponsesReply {
    fn event(&mut self, _: &str, data: &str, out: &mut VecDeque<Chunk>) -> Result<Flow, ProviderError> {
        let Some(event) = lax::event::<ResponsesEvent<'_>>(&self.provider, data)? else {
            return Ok(Flow::More);
        };
        let at = event.output_index.0.unwrap_or(0);
        match event.kind.as_str() {
            "response.output_text.delta" => {
                let open = self.at(at, ItemKind::Text);
                open.has_deltas = true;
                out.push_back(Chunk::Text { index: open.index, text: event.delta.into_string() });
            }
            "response.function_call_arguments.delta" => {
                let open = self.at(at, ItemKind::Call);
                open.has_deltas = true;
                out.push_back(Chunk::ToolArgs { index: open.index, json: event.delta.into_string() });
            }
            "response.function_call_arguments.done" => {
                let open = self.at(at, ItemKind::Call);
                if !open.has_deltas && !event.arguments.is_empty() {
                    open.has_deltas = true;
                    out.push_back(Chunk::ToolArgs { index: open.index, json: event.arguments.into_string() });
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let part = event.summary_index.0.unwrap_or(0);
                let open = self.at(at, ItemKind::Thought);
                if open.has_deltas && part != open.part {
                    out.push_back(Chunk::Thinking { index: open.index, text: "\n\n".into() });
                }
                (open.has_deltas, open.part) = (true, part);
                out.push_back(Chunk::Thinking { index: open.index, text: event.delta.into_string() });
            }
            "response.refusal.delta" => {
                self.at(at, ItemKind::Text).has_deltas = true;
                self.refusal.push_str(event.delta.as_str());
            }
            "response.output_item.added" => self.added(at, event.item, out),
            "response.output_item.done" => self.done(at, event.item, out),
            "response.completed" | "response.incomplete" => {
                let response = lax::read::<Response<'_>>(event.response);
                Self::count(response.as_ref().and_then(|r| r.usage), out);
                let incomplete = event.kind.as_str() == "response.incomplete";
                self.ended(incomplete, response.and_then(|r| r.incomplete_details));
                return Ok(Flow::Over);
            }
            "response.failed" => {
                let response = lax::read::<Response<'_>>(event.response);
                Self::count(response.as_ref().and_then(|r| r.usage), out);
                return Err(self.failure(response.and_then(|r| r.error), "server_error", "the reply failed"));
            }
            "error" => {
                return Err(self.failure(event.error, event.code.as_str(), event.message.as_str()));
            }
            _ if !event.kind.as_str().starts_with("response.") && event.error.is_some() => {
                return Err(self.failure(event.error, "", ""));
            }
            // The vendor may add new kinds of event.
            _ => {}
        }
        Ok(Flow::More)
    }

    fn document(&mut self, data: &str, out: &mut VecDeque<Chunk>) -> Result<(), ProviderError> {
        let Some(whole) = lax::event::<WholeReply<'_>>(&self.provider, data)? else { return Ok(()) };
        if let Some(raw) = whole.error.filter(|raw| raw.get() != "null") {
            return Err(self.failure(Some(raw), "", ""));
        }
        let Some(items) = whole.output else { return self.event("", data, out).map(drop) };
        for (at, item) in items.into_iter().enumerate() {
            self.done(at as u64, Some(item), out);
        }
        Self::count(whole.usage, out);
        match whole.status.as_str() {
            "failed" => return Err(self.failure(None, "server_error", "the reply failed")),
            status => self.ended(status == "incomplete", whole.incomplete_details),
        }
        Ok(())
    }

    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), ProviderError> {
        let Some(stop) = self.stop.take() else { return Err(fault::cut(&self.provider)) };
        // At the output limit texts stay open; calls that stay open are incomplete.
        for open in std::mem::take(&mut self.open).into_values() {
            if matches!(open.kind, ItemKind::Text) {
                out.push_back(Chunk::BlockEnd { index: open.index });
            }
        }
        out.push_back(Chunk::Stop(stop));
        Ok(())
    }
}
