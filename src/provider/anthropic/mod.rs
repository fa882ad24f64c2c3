//! Anthropic Messages: the request. The reply is read in `reply.rs`.
//!
//! Format: the vendor's Messages API reference, version 2023-06-01. All constant parts come before `messages`, so that
//! a request is its predecessor plus new bytes (cache marks aside). Cache marks: the last tool, the system prompt, and
//! the last two user messages. The older of these two was marked by the request before, so its cache entry is found.

pub(crate) mod reply;

use std::borrow::Cow;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use serde_json::Value;
use tiller_config::schema::ModelInfo;
use tiller_protocol::{Block, Effort, Part};

use crate::anthropic::reply::AnthropicReply;
use crate::codec::amend::{Amendments, EffortSupport, Refusal};
use crate::codec::fit::{self, Rules, fit, wire_name};
use crate::codec::format::ApiFormat;
use crate::codec::image_limits::ImageLimits;
use crate::codec::request::{ChatMessage, Request};
use crate::codec::{Decoder, Wire};
use crate::gemini::schema::object;
use crate::models::effort;
use crate::registry::key::Secret;

/// The vendor's address.
pub(crate) const BASE: &str = "https://api.anthropic.com";

/// This format.
pub(crate) const FORMAT: ApiFormat = ApiFormat::server("anthropic", |base| {
    Box::new(Anthropic { official: base == BASE, amended: Amendments::default() })
});
/// Output limit where neither the request nor the model table has one; the format requires a number.
const DEFAULT_OUTPUT: u64 = 32_000;

/// The format. `official`: at the vendor's own address.
pub(crate) struct Anthropic {
    pub(crate) official: bool,
    pub(crate) amended: Amendments,
}

const RULES: Rules = Rules {
    id: fit::id_64,
    calls: usize::MAX,
    images: &["image/png", "image/jpeg", "image/gif", "image/webp"],
    image_bytes: fit::mib(5),
    image_side: 8_000,
    image_limits: ImageLimits { count: 100, bytes: fit::mib(24), many: (20, 2_000) },
};

#[derive(Serialize)]
struct AnthropicRequest<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<AnthropicTool<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<RequestBlock<'a>>,
    messages: Vec<RequestMessage<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thinking {
    Adaptive { display: &'static str },
    Enabled { budget_tokens: u64 },
    Disabled,
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

#[derive(Serialize)]
struct AnthropicTool<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    input_schema: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Mark,
}

#[derive(Serialize)]
struct RequestMessage<'a> {
    role: &'static str,
    content: Vec<RequestBlock<'a>>,
}

#[derive(Clone, Copy, Serialize)]
struct Ephemeral {
    #[serde(rename = "type")]
    kind: &'static str,
}

type Mark = Option<Ephemeral>;

const MARK: Mark = Some(Ephemeral { kind: "ephemeral" });

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum RequestBlock<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Mark,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: &'a Value,
    },
    ToolResult {
        tool_use_id: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Self>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Mark,
    },
    Image {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Mark,
    },
    #[serde(untagged)]
    Raw(&'a Value),
}

#[derive(Serialize)]
struct Source<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'a str,
    data: &'a str,
}

impl RequestBlock<'_> {
    fn mark(&mut self) {
        match self {
            Self::Text { cache_control, .. }
            | Self::ToolResult { cache_control, .. }
            | Self::Image { cache_control, .. } => *cache_control = MARK,
            _ => {}
        }
    }
}

impl Wire for Anthropic {
    fn path(&self, base: &str, _model: &str) -> String {
        if base.ends_with("/v1") { "/messages".into() } else { "/v1/messages".into() }
    }

    fn headers(&self, key: Option<&Secret>, out: &mut HeaderMap) {
        out.insert(HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));
        if self.official {
            // Thinking between tool calls, for models that need this header.
            out.insert(
                HeaderName::from_static("anthropic-beta"),
                HeaderValue::from_static("interleaved-thinking-2025-05-14"),
            );
        }
        if let Some(key) = key {
            // Some compatible servers need the bearer form; the vendor accepts only one of the two.
            let (name, value) = if self.official {
                (HeaderName::from_static("x-api-key"), key.reveal().to_owned())
            } else {
                if let Ok(mut v) = HeaderValue::from_str(key.reveal()) {
                    v.set_sensitive(true);
                    out.insert(HeaderName::from_static("x-api-key"), v);
                }
                (AUTHORIZATION, format!("Bearer {}", key.reveal()))
            };
            if let Ok(mut value) = HeaderValue::from_str(&value) {
                value.set_sensitive(true);
                out.insert(name, value);
            }
        }
    }

    fn body(&self, provider: &str, request: &Request, info: &ModelInfo) -> Vec<u8> {
        let max_tokens = most_output(request, info);
        let mut tools: Vec<AnthropicTool<'_>> = request
            .tools
            .iter()
            .map(|t| AnthropicTool {
                name: wire_name(&t.name),
                description: &t.description,
                input_schema: object(&t.schema),
                cache_control: None,
            })
            .collect();
        let marks = !self.amended.refused(&request.model, "cache_control");
        if let Some(last) = tools.last_mut().filter(|_| marks) {
            last.cache_control = MARK;
        }
        let system = if request.system.trim().is_empty() {
            Vec::new()
        } else {
            vec![RequestBlock::Text { text: &request.system, cache_control: MARK.filter(|_| marks) }]
        };
        let fitted = fit(&request.messages, &RULES, self.amended.images(request));
        let messages = messages(provider, &request.model, &fitted, self.amended.thoughts(request), marks);
        let (thinking, effort) = match self.amended.told(&request.model) {
            EffortSupport::Effort => thinking(request, max_tokens, info, may_begin(&messages)),
            EffortSupport::Nothing | EffortSupport::Least => (None, None),
        };
        let body = AnthropicRequest {
            model: &request.model,
            max_tokens,
            thinking,
            output_config: effort.map(|effort| OutputConfig { effort }),
            stream: true,
            tools,
            system,
            messages,
        };
        serde_json::to_vec(&body).unwrap_or_default()
    }

    fn amend(&self, request: &Request, info: &ModelInfo, refusal: Refusal<'_>) -> Option<&'static str> {
        let marks = "cache_control";
        let sent = Some(marks).filter(|_| !self.amended.refused(&request.model, marks));
        // The format demands a limit: one is sent where the request has none.
        let asked = Some(most_output(request, info));
        self.amended.take(request, refusal, sent.as_slice(), asked, || fit::images(&request.messages, &RULES))
    }

    fn amendments(&self) -> &Amendments {
        &self.amended
    }

    fn decoder(&self, provider: &str) -> Box<dyn Decoder> {
        Box::new(AnthropicReply::new(provider))
    }

    fn models_path(&self, base: &str) -> String {
        if base.ends_with("/v1") { "/models?limit=1000".into() } else { "/v1/models?limit=1000".into() }
    }

    fn models(&self, body: &[u8]) -> Vec<String> {
        crate::models::ids(body, "data", "id")
    }
}

/// The limit of the output that is sent.
fn most_output(request: &Request, info: &ModelInfo) -> u64 {
    request.max_output.or(info.max_output).unwrap_or(DEFAULT_OUTPUT).max(1)
}

/// Reasoning budget in tokens, for models that take a number instead of an effort.
fn budget(effort: Effort) -> u64 {
    match effort {
        Effort::Off => 0,
        Effort::Low => 4_096,
        Effort::Default => 8_192,
        Effort::Medium => 16_384,
        Effort::High | Effort::Max => 32_768,
    }
}

/// The thinking settings of a request. Models from 4.6 on choose the amount themselves and take an effort; older ones,
/// and other vendors' models in this format, take a budget. `may_begin`: a budget is allowed now.
fn thinking(
    request: &Request,
    max_tokens: u64,
    info: &ModelInfo,
    may_begin: bool,
) -> (Option<Thinking>, Option<&'static str>) {
    if info.thinking == Some(false) {
        return (None, None);
    }
    let Some(generation) = generation(&request.model).filter(|g| *g >= (4, 6)) else {
        // Unknown models get no thinking settings unless the person chose an effort.
        let known = info.thinking == Some(true) && request.model.contains("claude-");
        let effort = effort::used(request.effort, info);
        let budget = if effort == Effort::Default && !known { 0 } else { budget(effort) };
        // The format requires at least 1,024, and less than the output limit.
        let budget = budget.min(max_tokens.saturating_sub(1_024));
        let fits = budget >= 1_024 && may_begin;
        return (fits.then_some(Thinking::Enabled { budget_tokens: budget }), None);
    };
    let adaptive = Some(Thinking::Adaptive { display: "summarized" });
    match effort::used(request.effort, info) {
        // Models from generation 5 on think by default, but hide their thoughts unless asked for.
        Effort::Off if generation >= (5, 0) => (Some(Thinking::Disabled), None),
        Effort::Off => (None, None),
        _ => (adaptive, effort::word(request.effort, info)),
    }
}

/// Whether a thinking budget is allowed: the format refuses it in the middle of a turn whose first reply began without
/// a thought.
fn may_begin(messages: &[RequestMessage<'_>]) -> bool {
    let words = |m: &RequestMessage<'_>| {
        m.role == "user" && !m.content.iter().any(|c| matches!(c, RequestBlock::ToolResult { .. }))
    };
    let turn = messages.iter().rposition(words).map_or(0, |at| at + 1);
    let first = messages[turn..].iter().find(|m| m.role == "assistant").and_then(|m| m.content.first());
    first.is_none_or(|c| matches!(c, RequestBlock::Thinking { .. } | RequestBlock::RedactedThinking { .. }))
}

/// Major and minor version in ids such as `claude-opus-4-6` or `claude-sonnet-5`, also in the older order
/// (`claude-3-5-sonnet`).
fn generation(model: &str) -> Option<(u32, u32)> {
    let rest = &model[model.find("claude-")? + 7..];
    let mut numbers = rest.split(['-', '.', '@']).filter_map(|w| w.parse::<u32>().ok());
    let major = numbers.next().filter(|n| *n < 100)?;
    // A date is not a minor number.
    Some((major, numbers.next().filter(|n| *n < 100).unwrap_or(0)))
}

/// The messages of a request. `thoughts`: include thoughts, and blocks of unknown kinds, for the model that wrote them.
fn messages<'a>(
    provider: &str,
    asked: &str,
    fitted: &'a [Cow<'a, ChatMessage>],
    thoughts: bool,
    marks: bool,
) -> Vec<RequestMessage<'a>> {
    let mut out: Vec<RequestMessage<'a>> = Vec::new();
    // Adjacent messages of one role are one.
    let mut add = |role, mut content: Vec<RequestBlock<'a>>| match out.last_mut() {
        _ if content.is_empty() => {}
        Some(last) if last.role == role => last.content.append(&mut content),
        _ => out.push(RequestMessage { role, content }),
    };
    for message in fitted.iter().map(AsRef::as_ref) {
        match message {
            ChatMessage::User { content } => add("user", parts(content)),
            ChatMessage::Assistant { blocks, model } => {
                let same = thoughts && model.provider() == provider;
                add("assistant", reply(blocks, same && model.model() == asked, same, provider));
            }
            ChatMessage::ToolResult { call_id, ok, content, .. } => {
                let result = RequestBlock::ToolResult {
                    tool_use_id: call_id,
                    is_error: !ok,
                    content: if *ok { parts(content) } else { texts(content) },
                    cache_control: None,
                };
                add("user", vec![result]);
            }
        }
    }
    for message in out.iter_mut().rev().filter(|m| marks && m.role == "user").take(2) {
        if let Some(last) = message.content.last_mut() {
            last.mark();
        }
    }
    out
}

fn parts(content: &[Part]) -> Vec<RequestBlock<'_>> {
    content
        .iter()
        .filter_map(|part| match part {
            // The format rejects empty texts.
            Part::Text { text } if text.trim().is_empty() => None,
            Part::Text { text } => Some(RequestBlock::Text { text, cache_control: None }),
            Part::Image { media_type, data } => Some(RequestBlock::Image {
                source: Source { kind: "base64", media_type, data },
                cache_control: None,
            }),
        })
        .collect()
}

/// As [`parts`], for a failed call: the format accepts only text there.
fn texts(content: &[Part]) -> Vec<RequestBlock<'_>> {
    let mut out = parts(content);
    for piece in &mut out {
        if matches!(piece, RequestBlock::Image { .. }) {
            *piece = RequestBlock::Text { text: "[image left out: the call failed]", cache_control: None };
        }
    }
    out
}

/// The blocks of a reply. `own`: the requested model wrote it; thoughts go back to that model only. `same`: its vendor
/// did.
fn reply<'a>(blocks: &'a [Block], own: bool, same: bool, provider: &str) -> Vec<RequestBlock<'a>> {
    let mut out = Vec::new();
    for block in blocks {
        match block {
            Block::Text { text } if text.trim().is_empty() => {}
            Block::Text { text } => out.push(RequestBlock::Text { text, cache_control: None }),
            Block::Thinking { text, signature: Some(signature) } if own => {
                out.push(RequestBlock::Thinking { thinking: text, signature });
            }
            Block::Redacted { data } if own => out.push(RequestBlock::RedactedThinking { data }),
            Block::Thinking { .. } | Block::Redacted { .. } => {}
            Block::ToolCall(call) => {
                out.push(RequestBlock::ToolUse { id: &call.id, name: &call.name, input: &call.arguments })
            }
            Block::Unknown { provider: of, raw } if same && of == provider && raw.is_object() => {
                out.push(RequestBlock::Raw(raw))
            }
            Block::Unknown { .. } => {}
        }
    }
    // A message may neither end with a thought nor consist of thoughts only.
    while matches!(out.last(), Some(RequestBlock::Thinking { .. } | RequestBlock::RedactedThinking { .. })) {
        out.pop();
    }
    out
}
