//! Anthropic Messages: the request. The reply is read in `anthropic_reply.rs`.
//!
//! Format: the vendor's Messages API reference, version 2023-06-01. Everything that stays the same comes
//! before `messages`, so that a request is its predecessor plus new bytes (cache marks aside). Marks:
//! the last tool, the system prompt, and the last two user messages: the older of these two is the one
//! that the request before marked, so its cache entry is found.

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use serde_json::Value;
use tiller_config::schema::ModelInfo;
use tiller_protocol::{Block, Part};

use crate::anthropic_reply::Reply;
use crate::key::Secret;
use crate::request::{ChatMessage, Effort, Request};
use crate::wire::{Decoder, Wire};

/// The vendor's own address.
pub(crate) const BASE: &str = "https://api.anthropic.com";
/// Output limit where neither the request nor the table has one; the format demands a number.
const DEFAULT_OUTPUT: u64 = 32_000;

/// The format. `official`: at the vendor's own address.
pub(crate) struct Anthropic {
    pub(crate) official: bool,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Content<'a>>,
    messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thinking {
    Adaptive { display: &'static str },
    Enabled { budget_tokens: u64 },
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Mark,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Vec<Content<'a>>,
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
enum Content<'a> {
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
        id: String,
        name: &'a str,
        input: &'a Value,
    },
    ToolResult {
        tool_use_id: String,
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

impl Content<'_> {
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
            // Thinking between tool calls, for the models that need to be told.
            out.insert(
                HeaderName::from_static("anthropic-beta"),
                HeaderValue::from_static("interleaved-thinking-2025-05-14"),
            );
        }
        if let Some(key) = key {
            // Some compatible servers want the bearer form; the vendor wants exactly one.
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
        let max_tokens = request.max_output.or(info.max_output).unwrap_or(DEFAULT_OUTPUT).max(1);
        let (thinking, effort) = thinking(&request.model, request.effort, max_tokens);
        let mut tools: Vec<Tool<'_>> = request
            .tools
            .iter()
            .map(|t| Tool {
                name: &t.name,
                description: &t.description,
                input_schema: &t.schema,
                cache_control: None,
            })
            .collect();
        if let Some(last) = tools.last_mut() {
            last.cache_control = MARK;
        }
        let system = if request.system.trim().is_empty() {
            Vec::new()
        } else {
            vec![Content::Text { text: &request.system, cache_control: MARK }]
        };
        let body = Body {
            model: &request.model,
            max_tokens,
            thinking,
            output_config: effort.map(|effort| OutputConfig { effort }),
            stream: true,
            tools,
            system,
            messages: messages(provider, request),
        };
        serde_json::to_vec(&body).unwrap_or_default()
    }

    fn decoder(&self, provider: &str) -> Box<dyn Decoder> {
        Box::new(Reply::new(provider))
    }

    fn models_path(&self, base: &str) -> String {
        if base.ends_with("/v1") { "/models?limit=1000".into() } else { "/v1/models?limit=1000".into() }
    }

    fn models(&self, body: &[u8]) -> Vec<String> {
        crate::models::ids(body, "data", "id")
    }
}

/// How to ask a model to think. Models from 4.6 on choose the amount themselves and are told an effort;
/// older ones, and other vendors' behind this format, take a budget.
fn thinking(model: &str, effort: Effort, max_tokens: u64) -> (Option<Thinking>, Option<&'static str>) {
    let word = match effort {
        Effort::Default => None,
        Effort::Off | Effort::Low => Some("low"),
        Effort::Medium => Some("medium"),
        Effort::High => Some("high"),
    };
    if !adaptive(model) {
        let budget: u64 = match effort {
            Effort::Default | Effort::Off => return (None, None),
            Effort::Low => 4_096,
            Effort::Medium => 16_384,
            Effort::High => 32_768,
        };
        // The budget must be at least 1,024 and under the output limit.
        let budget = budget.min(max_tokens.saturating_sub(1_024));
        return ((budget >= 1_024).then_some(Thinking::Enabled { budget_tokens: budget }), None);
    }
    // From generation 5 on they think unless told, but hide it unless asked. Some cannot be told to
    // stop, so `Off` means the least effort.
    let by_default = generation(model).is_some_and(|g| g >= (5, 0));
    let think = by_default || !matches!(effort, Effort::Default | Effort::Off);
    let effort = if think { word } else { None };
    (think.then_some(Thinking::Adaptive { display: "summarized" }), effort)
}

/// Major and minor number in ids such as `claude-opus-4-6` or `claude-sonnet-5`; older orders
/// (`claude-3-5-sonnet`) as well.
fn generation(model: &str) -> Option<(u32, u32)> {
    let rest = &model[model.find("claude-")? + 7..];
    let mut numbers = rest.split(['-', '.', '@']).filter_map(|w| w.parse::<u32>().ok());
    let major = numbers.next().filter(|n| *n < 100)?;
    // A date is not a minor number.
    Some((major, numbers.next().filter(|n| *n < 100).unwrap_or(0)))
}

fn adaptive(model: &str) -> bool {
    generation(model).is_some_and(|g| g >= (4, 6))
}

fn messages<'a>(provider: &str, request: &'a Request) -> Vec<Message<'a>> {
    let mut out: Vec<Message<'a>> = Vec::new();
    let mut results = false;
    for message in request.messages.iter() {
        let was_results = std::mem::take(&mut results);
        match message {
            ChatMessage::User { content } => {
                let content = parts(content);
                if !content.is_empty() {
                    out.push(Message { role: "user", content });
                }
            }
            ChatMessage::Assistant { blocks, model } => {
                let own = model.provider() == provider && model.model() == request.model;
                let content = reply(blocks, own, model.provider() == provider, provider);
                if !content.is_empty() {
                    out.push(Message { role: "assistant", content });
                }
            }
            ChatMessage::ToolResult { call_id, ok, content, .. } => {
                let result = Content::ToolResult {
                    tool_use_id: crate::request::wire_id(call_id),
                    is_error: !ok,
                    content: if *ok { parts(content) } else { texts(content) },
                    cache_control: None,
                };
                results = true;
                match out.last_mut() {
                    Some(last) if was_results => last.content.push(result),
                    _ => out.push(Message { role: "user", content: vec![result] }),
                }
            }
        }
    }
    for message in out.iter_mut().rev().filter(|m| m.role == "user").take(2) {
        if let Some(last) = message.content.last_mut() {
            last.mark();
        }
    }
    out
}

fn parts(content: &[Part]) -> Vec<Content<'_>> {
    content
        .iter()
        .filter_map(|part| match part {
            // The format refuses empty texts.
            Part::Text { text } if text.trim().is_empty() => None,
            Part::Text { text } => Some(Content::Text { text, cache_control: None }),
            Part::Image { media_type, data } => Some(Content::Image {
                source: Source { kind: "base64", media_type, data },
                cache_control: None,
            }),
        })
        .collect()
}

/// As [`parts`], for a failed call: the format takes nothing but text there.
fn texts(content: &[Part]) -> Vec<Content<'_>> {
    let mut out = parts(content);
    for piece in &mut out {
        if matches!(piece, Content::Image { .. }) {
            *piece = Content::Text { text: "[image left out: the call failed]", cache_control: None };
        }
    }
    out
}

/// `own`: the very model that is asked now wrote it; thoughts go back only to that one.
fn reply<'a>(blocks: &'a [Block], own: bool, same: bool, provider: &str) -> Vec<Content<'a>> {
    let mut out = Vec::new();
    for block in blocks {
        match block {
            Block::Text { text } if text.trim().is_empty() => {}
            Block::Text { text } => out.push(Content::Text { text, cache_control: None }),
            Block::Thinking { text, signature: Some(signature) } if own => {
                out.push(Content::Thinking { thinking: text, signature });
            }
            Block::Redacted { data } if own => out.push(Content::RedactedThinking { data }),
            Block::Thinking { .. } | Block::Redacted { .. } => {}
            Block::ToolCall(call) => out.push(Content::ToolUse {
                id: crate::request::wire_id(&call.id),
                name: &call.name,
                input: &call.arguments,
            }),
            Block::Unknown { provider: of, raw } if same && of == provider && raw.is_object() => {
                out.push(Content::Raw(raw))
            }
            Block::Unknown { .. } => {}
        }
    }
    // A message may not end in a thought, or have nothing else.
    while matches!(out.last(), Some(Content::Thinking { .. } | Content::RedactedThinking { .. })) {
        out.pop();
    }
    out
}
