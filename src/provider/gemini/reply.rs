//! Google Gemini: reading the streamed reply. Each event is a piece of the answer; the last one has a finish reason.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tiller_protocol::StopReason;

use crate::codec::chunk::Chunk;
use crate::codec::lax::{self, Count, Str};
use crate::codec::reply::{BlockKind, Blocks, usage};
use crate::codec::{Decoder, Flow};
use crate::error::ProviderError;
use crate::transport::fault;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiEvent<'a> {
    #[serde(borrow, default)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow, default)]
    usage_metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    prompt_feedback: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow, default)]
    content: Option<ReplyContent<'a>>,
    #[serde(borrow, default)]
    finish_reason: Str<'a>,
    #[serde(borrow, default)]
    finish_message: Str<'a>,
}

#[derive(Deserialize)]
struct ReplyContent<'a> {
    #[serde(borrow, default)]
    parts: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReplyPart<'a> {
    #[serde(borrow, default)]
    text: Option<Str<'a>>,
    #[serde(default)]
    thought: bool,
    #[serde(borrow, default)]
    thought_signature: Str<'a>,
    #[serde(borrow, default)]
    function_call: Option<FunctionCall<'a>>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    #[serde(borrow, default)]
    id: Str<'a>,
    #[serde(borrow, default)]
    name: Str<'a>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GeminiUsage {
    prompt_token_count: Count,
    candidates_token_count: Count,
    thoughts_token_count: Count,
    cached_content_token_count: Count,
    tool_use_prompt_token_count: Count,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow, default)]
    block_reason: Str<'a>,
}

/// The decoder of one reply.
pub(crate) struct GeminiReply {
    provider: String,
    blocks: Blocks,
    /// The signature of the open text; emitted when the text ends, so that it does not split it.
    held: Option<String>,
    calls: bool,
    stop: Option<StopReason>,
}

impl GeminiReply {
    pub(crate) fn new(provider: &str) -> Self {
        Self { provider: provider.into(), blocks: Blocks::default(), held: None, calls: false, stop: None }
    }

    fn end_last(&mut self, out: &mut VecDeque<Chunk>) {
        self.blocks.end(out);
        // Stored as a thought without text, directly after the text that it belongs to.
        if let Some(signature) = self.held.take() {
            let index = self.blocks.fresh();
            out.push_back(Chunk::Signature { index, signature });
            out.push_back(Chunk::BlockEnd { index });
        }
    }

    fn part(&mut self, raw: &RawValue, out: &mut VecDeque<Chunk>) {
        let Some(part) = lax::read::<ReplyPart<'_>>(Some(raw)) else { return };
        let mut signature = Some(part.thought_signature).filter(|s| !s.is_empty());
        if let Some(call) = part.function_call {
            self.end_last(out);
            self.calls = true;
            let index = self.blocks.fresh();
            let mut vendor = Map::new();
            if !call.id.is_empty() {
                vendor.insert("id".into(), call.id.as_str().into());
            }
            if let Some(signature) = signature.take() {
                vendor.insert("thoughtSignature".into(), signature.into_string().into());
            }
            out.push_back(Chunk::ToolBegin {
                index,
                id: call.id.into_string(),
                name: call.name.into_string(),
                vendor: (!vendor.is_empty()).then_some(Value::Object(vendor)),
            });
            if let Some(args) = call.args.filter(|a| a.get() != "null") {
                out.push_back(Chunk::ToolArgs { index, json: args.get().to_owned() });
            }
            out.push_back(Chunk::BlockEnd { index });
        } else if let Some(text) = part.text {
            let text = text.into_string();
            let kind = if part.thought { BlockKind::Thought } else { BlockKind::Text };
            if !text.is_empty() {
                if self.blocks.running(kind).is_none() {
                    self.end_last(out);
                }
                let (index, _) = self.blocks.run(kind, out);
                out.push_back(if part.thought {
                    Chunk::Thinking { index, text }
                } else {
                    Chunk::Text { index, text }
                });
            }
        } else if let Some(raw) = lax::read::<Value>(Some(raw)) {
            self.end_last(out);
            let index = self.blocks.fresh();
            out.push_back(Chunk::Unknown { index, raw });
            return;
        }
        if let Some(signature) = signature {
            if self.held.is_some() {
                self.end_last(out);
            }
            self.held = Some(signature.into_string());
        }
    }

    fn count(raw: Option<&RawValue>, out: &mut VecDeque<Chunk>) -> bool {
        let Some(c) = lax::read::<GeminiUsage>(raw) else { return false };
        let Some(prompt) = c.prompt_token_count.0 else { return false };
        // This format counts reasoning separately from the output.
        let reasoning = c.thoughts_token_count.0.unwrap_or(0);
        let output = c.candidates_token_count.0.unwrap_or(0).saturating_add(reasoning);
        let cache_read = c.cached_content_token_count.0.unwrap_or(0);
        let mut usage = usage(prompt, cache_read, 0, output, reasoning);
        usage.input = usage.input.saturating_add(c.tool_use_prompt_token_count.0.unwrap_or(0));
        out.push_back(Chunk::Usage(usage));
        true
    }

    fn finished(&self, reason: &str, message: &str) -> Result<StopReason, ProviderError> {
        Ok(match reason {
            "MAX_TOKENS" => StopReason::MaxTokens,
            "SAFETY"
            | "RECITATION"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "LANGUAGE"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION" => {
                StopReason::Refusal(if message.is_empty() { reason } else { message }.to_owned())
            }
            "MALFORMED_FUNCTION_CALL"
            | "UNEXPECTED_TOOL_CALL"
            | "MALFORMED_RESPONSE"
            | "TOO_MANY_TOOL_CALLS" => {
                return Err(ProviderError::Wait {
                    message: format!(
                        "{} stopped: the model made a call that could not be read.",
                        self.provider
                    ),
                    after: None,
                });
            }
            _ if self.calls => StopReason::ToolUse,
            _ => StopReason::EndTurn,
        })
    }
}

impl Decoder for GeminiReply {
    fn event(&mut self, name: &str, data: &str, out: &mut VecDeque<Chunk>) -> Result<Flow, ProviderError> {
        if data.trim() == "[DONE]" {
            // Proxies of other formats end with it, some without a reason before it. Parts are whole in this format.
            if self.stop.is_none() && self.blocks.any() {
                self.stop = Some(self.finished("STOP", "")?);
            }
            return Ok(Flow::Over);
        }
        let Some(event) = lax::event::<GeminiEvent<'_>>(&self.provider, data)? else { return Ok(Flow::More) };
        if event.error.is_some_and(|raw| raw.get() != "null") || name == "error" {
            return Err(fault::stated(&self.provider, data));
        }
        let counted = Self::count(event.usage_metadata, out);
        if let Some(feedback) = lax::read::<Feedback<'_>>(event.prompt_feedback)
            && !feedback.block_reason.is_empty()
        {
            self.stop = Some(StopReason::Refusal(feedback.block_reason.into_string()));
            return Ok(Flow::Over);
        }
        // One candidate is requested.
        if let Some(candidate) = event.candidates.into_iter().flatten().next() {
            for part in candidate.content.and_then(|c| c.parts).into_iter().flatten() {
                self.part(part, out);
            }
            if !candidate.finish_reason.is_empty() {
                self.stop =
                    Some(self.finished(candidate.finish_reason.as_str(), candidate.finish_message.as_str())?);
                return Ok(if counted { Flow::Over } else { Flow::Grace });
            }
        }
        Ok(if self.stop.is_some() { Flow::Over } else { Flow::More })
    }

    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), ProviderError> {
        let Some(stop) = self.stop.take() else { return Err(fault::cut(&self.provider)) };
        self.end_last(out);
        out.push_back(Chunk::Stop(stop));
        Ok(())
    }
}
