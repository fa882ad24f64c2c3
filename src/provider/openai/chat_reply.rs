//! OpenAI Chat Completions: reading the streamed reply, with tolerance for the differences between servers.

use std::collections::VecDeque;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tiller_protocol::StopReason;

use crate::codec::chunk::Chunk;
use crate::codec::lax::{self, Str};
use crate::codec::reply::{BlockKind, Blocks, usage};
use crate::codec::{Decoder, Flow};
use crate::error::ProviderError;
use crate::openai::chat_event::{CallDelta, ChatEvent, ChatFailure, ChatUsage, Groq, argument_text};
use crate::openai::think_tags::{Piece, ThinkTags};
use crate::transport::fault;

/// An open call at a server's index.
struct OpenCall {
    at: u64,
    id: String,
    index: usize,
}

/// The decoder of one reply.
pub(crate) struct ChatReply {
    provider: String,
    blocks: Blocks,
    calls: Vec<OpenCall>,
    any_call: bool,
    details: Vec<Value>,
    tags: ThinkTags,
    /// Indices of text blocks so far.
    texts: Vec<usize>,
    refusal: String,
    finish: Option<String>,
    counted: bool,
    done: bool,
    /// The answer is not a stream: each call of a list is complete.
    whole: bool,
}

impl ChatReply {
    pub(crate) fn new(provider: &str) -> Self {
        Self {
            provider: provider.into(),
            blocks: Blocks::default(),
            calls: Vec::new(),
            any_call: false,
            details: Vec::new(),
            tags: ThinkTags::default(),
            texts: Vec::new(),
            refusal: String::new(),
            finish: None,
            counted: false,
            done: false,
            whole: false,
        }
    }

    fn text(&mut self, text: &str, out: &mut VecDeque<Chunk>) {
        let mut pieces = Vec::new();
        self.tags.push(text, &mut pieces);
        self.pieces(pieces, out);
    }

    /// Ends the open text.
    fn end_text(&mut self, out: &mut VecDeque<Chunk>) {
        let mut pieces = Vec::new();
        self.tags.finish(&mut pieces);
        self.pieces(pieces, out);
    }

    fn pieces(&mut self, pieces: Vec<Piece>, out: &mut VecDeque<Chunk>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => {
                    let (index, new) = self.blocks.run(BlockKind::Text, out);
                    if new {
                        self.texts.push(index);
                    }
                    out.push_back(Chunk::Text { index, text });
                }
                Piece::Thought(text) => self.thought(text, "", out),
                Piece::AllThought => {
                    self.blocks.end(out);
                    out.extend(self.texts.drain(..).map(|index| Chunk::TextWasThought { index }));
                }
            }
        }
    }

    /// Stores `field` as the signature: the thought is sent back under the same name.
    fn thought(&mut self, text: String, field: &str, out: &mut VecDeque<Chunk>) {
        if text.is_empty() {
            return;
        }
        let (index, new) = self.blocks.run(BlockKind::Thought, out);
        if new && !field.is_empty() {
            out.push_back(Chunk::Signature { index, signature: field.into() });
        }
        out.push_back(Chunk::Thinking { index, text });
    }

    fn call(&mut self, call: CallDelta<'_>, out: &mut VecDeque<Chunk>) {
        let (name, json) = call.function.map_or((Str::default(), None), |f| (f.name, f.arguments));
        let json = json.map(argument_text).unwrap_or_default();
        // Some servers give no index, or the same one to every call: a new id with a name begins a call.
        let last = self.calls.last();
        let at = call.index.0.filter(|_| !self.whole).unwrap_or_else(|| match last {
            Some(open) if self.whole => open.at.saturating_add(1),
            Some(open) if call.id.is_empty() || call.id.as_str() == open.id => open.at,
            Some(open) => open.at.saturating_add(1),
            None => 0,
        });
        let known = self.calls.iter().rev().find(|o| o.at == at);
        let other = known.is_some_and(|o| {
            !call.id.is_empty() && !name.is_empty() && !o.id.is_empty() && o.id != call.id.as_str()
        });
        let index = match known {
            Some(open) if !other => open.index,
            _ => {
                self.end_text(out);
                self.blocks.end(out);
                self.any_call = true;
                let index = self.blocks.fresh();
                let mut vendor = json!({"text": null});
                if let Some(extra) = lax::read::<Value>(call.extra_content) {
                    vendor["extra_content"] = extra;
                }
                self.calls.push(OpenCall { at, id: call.id.as_str().to_owned(), index });
                out.push_back(Chunk::ToolBegin {
                    index,
                    id: call.id.into_string(),
                    name: name.into_string(),
                    vendor: Some(vendor),
                });
                index
            }
        };
        if !json.is_empty() {
            out.push_back(Chunk::ToolArgs { index, json });
        }
    }

    fn count(&mut self, raw: Option<&RawValue>, out: &mut VecDeque<Chunk>) {
        let Some(c) = lax::read::<ChatUsage>(raw) else { return };
        let (prompt, output) = (c.prompt_tokens.0, c.completion_tokens.0);
        if prompt.is_none() && output.is_none() {
            return;
        }
        let of_prompt = c.prompt_tokens_details.unwrap_or_default();
        let cache_read = of_prompt.cached_tokens.0.or(c.prompt_cache_hit_tokens.0);
        let reasoning = c.completion_tokens_details.unwrap_or_default().reasoning_tokens.0;
        self.counted = true;
        out.push_back(Chunk::Usage(usage(
            prompt.unwrap_or(0),
            cache_read.unwrap_or(0),
            of_prompt.cache_write_tokens.0.unwrap_or(0),
            output.unwrap_or(0),
            reasoning.unwrap_or(0),
        )));
    }

    /// Joins a streamed list of reasoning details: pieces of one index and type become one.
    fn detail(&mut self, raw: Option<&RawValue>) {
        for piece in lax::read::<Vec<Value>>(raw).unwrap_or_default() {
            let same = |d: &&mut Value| d["index"] == piece["index"] && d["type"] == piece["type"];
            let Some(Value::Object(known)) = self.details.last_mut().filter(same) else {
                self.details.push(piece);
                continue;
            };
            let Value::Object(piece) = piece else { continue };
            for (key, value) in piece {
                match (known.get_mut(&key), value) {
                    (Some(Value::String(a)), Value::String(b))
                        if matches!(key.as_str(), "text" | "summary" | "data") =>
                    {
                        a.push_str(&b);
                    }
                    (_, Value::Null) => {}
                    (_, value) => {
                        known.insert(key, value);
                    }
                }
            }
        }
    }
}

impl Decoder for ChatReply {
    fn event(&mut self, _: &str, data: &str, out: &mut VecDeque<Chunk>) -> Result<Flow, ProviderError> {
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(Flow::Over);
        }
        let Some(event) = lax::event::<ChatEvent<'_>>(&self.provider, data)? else { return Ok(Flow::More) };
        if let Some(raw) = event.error.filter(|raw| raw.get() != "null") {
            let failure = lax::read::<ChatFailure<'_>>(Some(raw));
            let text = failure.as_ref().map_or_else(
                || lax::read::<Str<'_>>(Some(raw)).unwrap_or_default().into_string(),
                |f| f.message.as_str().to_owned(),
            );
            let code = failure.map(|f| {
                let (kind, code) = (f.kind.into_string(), f.code.into_string());
                if code.is_empty() || code.parse::<u16>().is_err() && !kind.is_empty() {
                    format!("{kind} {code}").trim().to_owned()
                } else {
                    code
                }
            });
            return Err(fault::event(&self.provider, &code.unwrap_or_default(), &text));
        }
        // One choice is requested; further ones are ignored.
        if let Some(choice) = event.choices.into_iter().flatten().next() {
            if let Some(delta) = choice.delta {
                let field =
                    if delta.reasoning_content.is_empty() { "reasoning" } else { "reasoning_content" };
                let thought = if delta.reasoning_content.is_empty() {
                    delta.reasoning
                } else {
                    delta.reasoning_content
                };
                self.thought(thought.into_string(), field, out);
                self.thought(delta.content.thought, "", out);
                self.detail(delta.reasoning_details);
                if !delta.content.text.is_empty() {
                    self.text(delta.content.text.as_str(), out);
                }
                self.refusal.push_str(delta.refusal.as_str());
                for call in delta.tool_calls.into_iter().flatten() {
                    self.call(call, out);
                }
            }
            if !choice.finish_reason.is_empty() {
                self.finish = Some(choice.finish_reason.into_string());
            }
        }
        self.count(event.usage, out);
        self.count(lax::read::<Groq<'_>>(event.x_groq).and_then(|g| g.usage), out);
        Ok(match (&self.finish, self.counted) {
            (Some(_), _) => Flow::Grace,
            (None, _) => Flow::More,
        })
    }

    fn document(&mut self, data: &str, out: &mut VecDeque<Chunk>) -> Result<(), ProviderError> {
        // Some servers send the pieces of a stream, but not as events.
        let answer = serde_json::from_str::<Value>(data).unwrap_or_default();
        self.whole = answer["choices"][0]["message"].is_object();
        self.event("", data, out)?;
        if self.whole {
            self.end_text(out);
            if self.finish.is_none() && self.blocks.any() {
                self.finish = Some("stop".into());
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), ProviderError> {
        // Without a finish reason the last call may be incomplete.
        let Some(finish) = self
            .finish
            .take()
            .or_else(|| (self.done && self.blocks.any() && !self.any_call).then(|| "stop".to_owned()))
        else {
            return Err(fault::cut(&self.provider));
        };
        self.end_text(out);
        self.blocks.end(out);
        for open in std::mem::take(&mut self.calls) {
            out.push_back(Chunk::BlockEnd { index: open.index });
        }
        if !self.details.is_empty() {
            let index = self.blocks.fresh();
            let raw = json!({"reasoning_details": std::mem::take(&mut self.details)});
            out.push_back(Chunk::Unknown { index, raw });
        }
        let refusal = std::mem::take(&mut self.refusal);
        out.push_back(Chunk::Stop(match finish.as_str() {
            "error" => {
                return Err(fault::event(&self.provider, "server_error", "the model stopped with an error"));
            }
            "length" | "max_tokens" | "model_length" => StopReason::MaxTokens,
            // Other vendors' words for it.
            "content_filter" | "refusal" | "safety" | "SAFETY" | "sensitive" => StopReason::Refusal(refusal),
            _ if !refusal.is_empty() => StopReason::Refusal(refusal),
            _ if self.any_call => StopReason::ToolUse,
            _ => StopReason::EndTurn,
        }));
        Ok(())
    }
}
