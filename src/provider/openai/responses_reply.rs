//! OpenAI Responses: reading the streamed reply.

use std::collections::{HashMap, VecDeque};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tiller_protocol::StopReason;

use crate::codec::chunk::Chunk;
use crate::codec::lax::{self, Count, Str};
use crate::codec::repair;
use crate::codec::reply::usage;
use crate::codec::{Decoder, Flow};
use crate::error::ProviderError;
use crate::openai::chat_event::argument_text;
use crate::transport::fault;

/// Key of an unknown block that holds the fields beside the text of the message before it.
pub(crate) const HEAD: &str = "tiller_message_head";

/// From here on indices are not the server's.
const OWN_INDICES: u64 = 1 << 32;

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
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    item_id: Str<'a>,
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
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
    arguments: Option<&'a RawValue>,
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
    output: Option<Vec<&'a RawValue>>,
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
    /// The server's id of it.
    id: String,
    /// Arguments of a call so far.
    json: String,
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
            let (id, json) = (String::new(), String::new());
            OpenItem { index: *next - 1, kind, id, json, has_deltas: false, part: 0 }
        })
    }

    /// The index that an event is about. Some servers give none, or one to all items: then its id tells, else the item
    /// that began last.
    fn place(&self, at: Count, id: &str) -> u64 {
        let known = self.open.iter().find(|(_, open)| !id.is_empty() && open.id == id).map(|(at, _)| *at);
        let last = || self.open.iter().max_by_key(|(_, open)| open.index).map(|(at, _)| *at);
        known.or(at.0).or_else(last).unwrap_or(0)
    }

    /// The index of an item that begins: one of its own where the server's is in use by an item with another id.
    fn room(&self, at: Count, id: &str) -> u64 {
        let taken = |at: &u64| self.open.get(at).is_some_and(|open| !open.id.is_empty() && open.id != id);
        at.0.filter(|at| !taken(at)).unwrap_or_else(|| OWN_INDICES.saturating_add(self.next as u64))
    }

    /// Adds arguments to a call.
    fn arguments(&mut self, at: u64, more: String, out: &mut VecDeque<Chunk>) {
        let open = self.at(at, ItemKind::Call);
        open.has_deltas |= !more.is_empty();
        open.json.push_str(&more);
        out.push_back(Chunk::ToolArgs { index: open.index, json: more });
    }

    /// Ends an item whose end the server did not report. A call whose arguments are not whole stays open: it is left out.
    fn leave(open: &OpenItem, out: &mut VecDeque<Chunk>) {
        let whole = match open.kind {
            ItemKind::Call => repair::is_whole(&open.json),
            ItemKind::Text => true,
            ItemKind::Thought | ItemKind::Other => false,
        };
        if whole {
            out.push_back(Chunk::BlockEnd { index: open.index });
        }
    }

    fn added(&mut self, at: u64, raw: Option<&RawValue>, out: &mut VecDeque<Chunk>) {
        let Some(item) = lax::read::<ReplyItem<'_>>(raw) else { return };
        let kind = match item.kind.as_str() {
            "message" => ItemKind::Text,
            "reasoning" => ItemKind::Thought,
            "function_call" => ItemKind::Call,
            _ => ItemKind::Other,
        };
        if let Some(before) = self.open.remove(&at) {
            Self::leave(&before, out);
        }
        let open = self.at(at, kind);
        open.id = item.id.as_str().to_owned();
        let index = open.index;
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
                let json = item.arguments.map(argument_text).unwrap_or_default();
                if !open.has_deltas && !json.is_empty() {
                    out.push_back(Chunk::ToolArgs { index, json });
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
}

impl ResponsesReply {
    /// The error of a failed reply.
    fn failed(&self, raw: Option<&RawValue>) -> ProviderError {
        match raw.filter(|raw| raw.get() != "null") {
            Some(raw) => fault::stated(&self.provider, raw.get()),
            None => fault::event(&self.provider, "server_error", "the reply failed"),
        }
    }
}

impl Decoder for ResponsesReply {
    fn event(&mut self, name: &str, data: &str, out: &mut VecDeque<Chunk>) -> Result<Flow, ProviderError> {
        if data.trim() == "[DONE]" {
            // The end mark of another format, from servers without an event for the end.
            let whole = |open: &OpenItem| match open.kind {
                ItemKind::Call => repair::is_whole(&open.json),
                kind => kind == ItemKind::Text,
            };
            if self.stop.is_none() && self.next > 0 && self.open.values().all(whole) {
                self.ended(false, None);
            }
            return Ok(Flow::Over);
        }
        let Some(event) = lax::event::<ResponsesEvent<'_>>(&self.provider, data)? else {
            return Ok(Flow::More);
        };
        let at = self.place(event.output_index, event.item_id.as_str());
        match event.kind.as_str() {
            "response.output_text.delta" => {
                let open = self.at(at, ItemKind::Text);
                open.has_deltas = true;
                out.push_back(Chunk::Text { index: open.index, text: event.delta.into_string() });
            }
            "response.function_call_arguments.delta" => {
                self.arguments(at, event.delta.into_string(), out);
            }
            "response.function_call_arguments.done" => {
                let json = event.arguments.map(argument_text).unwrap_or_default();
                if !json.is_empty() && !self.at(at, ItemKind::Call).has_deltas {
                    self.arguments(at, json, out);
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
            "response.output_item.added" => {
                let id = lax::read::<ReplyItem<'_>>(event.item).map(|item| item.id.into_string());
                let at = self.room(event.output_index, &id.unwrap_or_default());
                self.added(at, event.item, out);
            }
            "response.output_item.done" => {
                let id = lax::read::<ReplyItem<'_>>(event.item).map(|item| item.id.into_string());
                let at = self.place(event.output_index, &id.unwrap_or_default());
                self.done(at, event.item, out);
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                let response = lax::read::<Response<'_>>(event.response);
                Self::count(response.as_ref().and_then(|r| r.usage), out);
                // Some servers send the items only here.
                let items = response.as_ref().and_then(|r| r.output.clone()).filter(|_| self.next == 0);
                for (at, item) in items.into_iter().flatten().enumerate() {
                    self.done(at as u64, Some(item), out);
                }
                let incomplete = event.kind.as_str() == "response.incomplete";
                self.ended(incomplete, response.and_then(|r| r.incomplete_details));
                return Ok(Flow::Over);
            }
            "response.failed" => {
                let response = lax::read::<Response<'_>>(event.response);
                Self::count(response.as_ref().and_then(|r| r.usage), out);
                return Err(self.failed(response.and_then(|r| r.error)));
            }
            "error" => return Err(fault::stated(&self.provider, data)),
            kind if !kind.starts_with("response.") && (event.error.is_some() || name == "error") => {
                return Err(fault::stated(&self.provider, data));
            }
            // The vendor may add new kinds of event.
            _ => {}
        }
        Ok(Flow::More)
    }

    fn document(&mut self, data: &str, out: &mut VecDeque<Chunk>) -> Result<(), ProviderError> {
        let Some(whole) = lax::event::<WholeReply<'_>>(&self.provider, data)? else { return Ok(()) };
        if whole.error.is_some_and(|raw| raw.get() != "null") {
            return Err(fault::stated(&self.provider, data));
        }
        let Some(items) = whole.output else { return self.event("", data, out).map(drop) };
        for (at, item) in items.into_iter().enumerate() {
            self.done(at as u64, Some(item), out);
        }
        Self::count(whole.usage, out);
        match whole.status.as_str() {
            "failed" => return Err(self.failed(None)),
            status => self.ended(status == "incomplete", whole.incomplete_details),
        }
        Ok(())
    }

    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), ProviderError> {
        let Some(stop) = self.stop.take() else { return Err(fault::cut(&self.provider)) };
        // At the output limit texts stay open; calls that stay open are complete only if their arguments are.
        for open in std::mem::take(&mut self.open).into_values() {
            Self::leave(&open, out);
        }
        out.push_back(Chunk::Stop(stop));
        Ok(())
    }
}
