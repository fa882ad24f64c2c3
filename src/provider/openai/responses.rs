//! OpenAI Responses: the request. The reply is read in `responses_reply.rs`.
//!
//! Nothing is stored at the vendor (`store: false`), so encrypted reasoning is kept here and sent back exactly as it
//! arrived: the whole item is stored in the block's signature.

use std::borrow::Cow;

use reqwest::header::HeaderMap;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tiller_config::schema::ModelInfo;
use tiller_protocol::{Block, Part};

use crate::codec::amend::{Amendments, Refusal, SUMMARY};
use crate::codec::fit::{self, Rules, fit, wire_name};
use crate::codec::format::ApiFormat;
use crate::codec::image_limits::ImageLimits;
use crate::codec::request::{ChatMessage, Request};
use crate::codec::{Decoder, Wire};
use crate::gemini::schema::object;
use crate::openai::chat::{arguments, bearer, effort, text_of, versioned};
use crate::openai::responses_reply::{HEAD, ResponsesReply};
use crate::registry::key::Secret;

/// The format of Responses.
pub(crate) const FORMAT: ApiFormat =
    ApiFormat::server("openai-responses", |_| Box::new(OpenAiResponses::default()));

/// The format.
#[derive(Default)]
pub(crate) struct OpenAiResponses {
    amended: Amendments,
}

const RULES: Rules = Rules {
    id: fit::id_64,
    calls: usize::MAX,
    images: &["image/png", "image/jpeg", "image/gif", "image/webp"],
    image_bytes: fit::mib(20),
    image_side: u32::MAX,
    image_limits: ImageLimits { count: 500, bytes: fit::mib(40), many: (usize::MAX, 0) },
};

#[derive(Serialize)]
struct ResponsesRequest<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<bool>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "str::is_empty")]
    prompt_cache_key: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ResponsesTool<'a>>,
    input: Vec<RequestItem<'a>>,
}

#[derive(Serialize)]
struct Reasoning {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

#[derive(Serialize)]
struct ResponsesTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: Cow<'a, str>,
    description: &'a str,
    parameters: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum RequestItem<'a> {
    Message {
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a Value>,
        content: Vec<RequestPart<'a>>,
    },
    FunctionCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a Value>,
        call_id: &'a str,
        name: &'a str,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: Output<'a>,
    },
    /// A vendor's item as it arrived.
    #[serde(untagged)]
    Raw(&'a RawValue),
    #[serde(untagged)]
    Kept(&'a Value),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(String),
    Pieces(Vec<RequestPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum RequestPart<'a> {
    InputText { text: &'a str },
    OutputText { text: &'a str },
    InputImage { image_url: String },
}

impl Wire for OpenAiResponses {
    fn path(&self, base: &str, _model: &str) -> String {
        versioned(base, "/responses")
    }

    fn headers(&self, key: Option<&Secret>, out: &mut HeaderMap) {
        bearer(key, out);
    }

    fn body(&self, provider: &str, request: &Request, info: &ModelInfo) -> Vec<u8> {
        // Models without reasoning reject reasoning settings.
        let reasons = info.thinking != Some(false);
        let fitted = fit(&request.messages, &RULES, self.amended.images(request));
        let thoughts = self.amended.thoughts(request);
        let takes = |option: &str| !self.amended.refused(&request.model, option);
        let body = ResponsesRequest {
            model: &request.model,
            stream: true,
            store: takes("store").then_some(false),
            include: if reasons && takes("include") { &["reasoning.encrypted_content"] } else { &[] },
            reasoning: reasons
                .then(|| Reasoning {
                    effort: effort(request, info, self.amended.told(&request.model)),
                    summary: takes(SUMMARY).then_some("auto"),
                })
                .filter(|r| r.effort.is_some() || r.summary.is_some()),
            max_output_tokens: request.max_output.filter(|_| takes("max_output_tokens")),
            prompt_cache_key: if takes("prompt_cache_key") { &request.cache_key } else { "" },
            instructions: request.system.trim_end(),
            tools: request
                .tools
                .iter()
                .map(|t| ResponsesTool {
                    kind: "function",
                    name: wire_name(&t.name),
                    description: &t.description,
                    parameters: object(&t.schema),
                    strict: takes("strict").then_some(false),
                })
                .collect(),
            input: items(provider, request, &fitted, info.images != Some(false), thoughts),
        };
        serde_json::to_vec(&body).unwrap_or_default()
    }

    fn amend(&self, request: &Request, _: &ModelInfo, refusal: Refusal<'_>) -> Option<&'static str> {
        let limit = request.max_output.map(|_| "max_output_tokens");
        let sent: Vec<&'static str> = ["store", "include", "prompt_cache_key", "strict", SUMMARY]
            .into_iter()
            .chain(limit)
            .filter(|option| !self.amended.refused(&request.model, option))
            .collect();
        self.amended
            .take(request, refusal, &sent, request.max_output, || fit::images(&request.messages, &RULES))
    }

    fn amendments(&self) -> &Amendments {
        &self.amended
    }

    fn decoder(&self, provider: &str) -> Box<dyn Decoder> {
        Box::new(ResponsesReply::new(provider))
    }

    fn models_path(&self, base: &str) -> String {
        versioned(base, "/models")
    }

    fn models(&self, body: &[u8]) -> Vec<String> {
        crate::models::ids(body, "data", "id")
    }
}

fn pieces(content: &[Part], sees: bool) -> Vec<RequestPart<'_>> {
    content
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } if text.trim().is_empty() => None,
            Part::Text { text } => Some(RequestPart::InputText { text }),
            Part::Image { media_type, data } if sees => {
                Some(RequestPart::InputImage { image_url: format!("data:{media_type};base64,{data}") })
            }
            Part::Image { .. } => {
                Some(RequestPart::InputText { text: "[image left out: this model cannot see images]" })
            }
        })
        .collect()
}

/// The items of a request. `thoughts`: include thoughts for the model that wrote them.
fn items<'a>(
    provider: &str,
    request: &'a Request,
    fitted: &'a [Cow<'a, ChatMessage>],
    sees: bool,
    thoughts: bool,
) -> Vec<RequestItem<'a>> {
    let mut out = Vec::with_capacity(request.messages.len());
    for message in fitted.iter().map(AsRef::as_ref) {
        match message {
            ChatMessage::User { content } => {
                let mut more = pieces(content, sees);
                match out.last_mut() {
                    _ if more.is_empty() => {}
                    // Adjacent messages of the user's are one.
                    Some(RequestItem::Message { role: "user", content, .. }) => content.append(&mut more),
                    _ => out.push(RequestItem::Message { role: "user", phase: None, content: more }),
                }
            }
            ChatMessage::Assistant { blocks, model } => {
                let same = model.provider() == provider;
                let own = thoughts && same && model.model() == request.model;
                reply(blocks, own, same && thoughts, provider, &mut out);
            }
            ChatMessage::ToolResult { call_id, ok, content, .. } => {
                let with_images = sees && content.iter().any(|p| matches!(p, Part::Image { .. }));
                let output = if with_images {
                    Output::Pieces(pieces(content, sees))
                } else {
                    let mut text = text_of(content, false);
                    if !ok && !text.starts_with("error") {
                        text.insert_str(0, "error: ");
                    }
                    Output::Text(text)
                };
                out.push(RequestItem::FunctionCallOutput { call_id, output });
            }
        }
    }
    out
}

/// The items of a reply. `own`: the requested model wrote it; `same`: its vendor did. Both are false once the server
/// refused thoughts.
fn reply<'a>(blocks: &'a [Block], own: bool, same: bool, provider: &str, out: &mut Vec<RequestItem<'a>>) {
    let from = out.len();
    // The vendor accepts a call's own id only together with the thought that led to it.
    let mut thought_sent = true;
    for (at, block) in blocks.iter().enumerate() {
        match block {
            Block::Text { text } if text.trim().is_empty() => {}
            Block::Text { text } => {
                let phase = blocks.get(at + 1).filter(|_| own).and_then(phase);
                out.push(RequestItem::Message {
                    role: "assistant",
                    phase,
                    content: vec![RequestPart::OutputText { text }],
                });
            }
            Block::Thinking { signature: Some(item), .. } if own => {
                if let Ok(raw) = serde_json::from_str::<&RawValue>(item)
                    && raw.get().starts_with('{')
                {
                    // The thought before has no result: its call was dropped.
                    if matches!(out[from..].last(), Some(RequestItem::Raw(_))) {
                        out.pop();
                    }
                    out.push(RequestItem::Raw(raw));
                    thought_sent = true;
                }
            }
            Block::Thinking { .. } | Block::Redacted { .. } => thought_sent = false,
            Block::ToolCall(call) => out.push(RequestItem::FunctionCall {
                id: call.vendor.as_ref().filter(|_| own && thought_sent).and_then(item_id),
                call_id: &call.id,
                name: &call.name,
                arguments: arguments(call),
            }),
            Block::Unknown { provider: of, raw }
                if same && of == provider && phase(block).is_none() && raw.is_object() =>
            {
                out.push(RequestItem::Kept(raw));
            }
            Block::Unknown { .. } => {}
        }
    }
    // A thought must be followed by its result.
    while out.len() > from && matches!(out.last(), Some(RequestItem::Raw(_))) {
        out.pop();
    }
}

/// The vendor's id of a call's item, if a request may contain it.
fn item_id(vendor: &Value) -> Option<&Value> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let fits = |id: &str| id.starts_with("fc") && id.len() <= 64 && id.chars().all(fine);
    vendor.get("id").filter(|id| id.as_str().is_some_and(fits))
}

/// The fields beside a message's text in the vendor's item, when the reply stored them.
fn phase(block: &Block) -> Option<&Value> {
    match block {
        Block::Unknown { raw, .. } => raw.get(HEAD)?.get("phase"),
        _ => None,
    }
}
