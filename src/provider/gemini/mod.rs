//! Google Gemini `streamGenerateContent`: the request. The reply is read in `reply.rs`; `schema.rs` reduces the JSON
//! schemas of tools to the supported subset.

pub(crate) mod reply;
pub(crate) mod schema;

use std::borrow::Cow;
use std::collections::HashSet;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use serde_json::{Value, json};
use tiller_config::schema::ModelInfo;
use tiller_protocol::{Block, Effort, Part};

use crate::codec::amend::{Amendments, EffortSupport, Refusal, SYSTEM};
use crate::codec::fit::{self, Rules, fit, wire_name};
use crate::codec::format::ApiFormat;
use crate::codec::image_limits::ImageLimits;
use crate::codec::request::{ChatMessage, Request};
use crate::codec::{Decoder, Wire};
use crate::gemini::reply::GeminiReply;
use crate::gemini::schema::subset;
use crate::models::effort;
use crate::openai::chat::text_of;
use crate::registry::key::Secret;

/// The vendor's address.
pub(crate) const BASE: &str = "https://generativelanguage.googleapis.com";

/// This format.
pub(crate) const FORMAT: ApiFormat = ApiFormat::server("gemini", |_| Box::new(Gemini::default()));
/// Replaces the signature of a call that another model made; documented by the vendor for that purpose.
const FOREIGN: &str = "skip_thought_signature_validator";

/// The format.
#[derive(Default)]
pub(crate) struct Gemini {
    amended: Amendments,
}

const RULES: Rules = Rules {
    id: fit::id_any,
    calls: usize::MAX,
    images: &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"],
    image_bytes: fit::mib(15),
    image_side: u32::MAX,
    image_limits: ImageLimits { count: 3_000, bytes: fit::mib(15), many: (usize::MAX, 0) },
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<RequestContent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tools<'a>>,
    contents: Vec<RequestContent<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
struct Declaration<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Value>,
}

#[derive(Serialize)]
struct RequestContent<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    role: &'static str,
    parts: Vec<RequestPart<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestPart<'a> {
    #[serde(flatten)]
    what: PartContent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum PartContent<'a> {
    Text(&'a str),
    #[serde(rename_all = "camelCase")]
    InlineData {
        mime_type: &'a str,
        data: &'a str,
    },
    FunctionCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        name: &'a str,
        args: &'a Value,
    },
    FunctionResponse {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        name: &'a str,
        response: Value,
    },
    #[serde(untagged)]
    Raw(&'a Value),
}

impl<'a> From<PartContent<'a>> for RequestPart<'a> {
    fn from(what: PartContent<'a>) -> Self {
        Self { what, thought_signature: None }
    }
}

fn system_part(text: &str) -> RequestContent<'_> {
    RequestContent { role: "", parts: vec![PartContent::Text(text).into()] }
}

fn version(base: &str) -> &'static str {
    if base.ends_with("/v1beta") || base.ends_with("/v1") { "" } else { "/v1beta" }
}

impl Wire for Gemini {
    fn path(&self, base: &str, model: &str) -> String {
        // The model's name is part of the URL: it must not contain anything that ends the path.
        let model: String = model
            .strip_prefix("models/")
            .unwrap_or(model)
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || "-._".contains(*c))
            .collect();
        format!("{}/models/{model}:streamGenerateContent?alt=sse", version(base))
    }

    fn headers(&self, key: Option<&Secret>, out: &mut HeaderMap) {
        if let Some(key) = key
            && let Ok(mut value) = HeaderValue::from_str(key.reveal())
        {
            value.set_sensitive(true);
            out.insert(HeaderName::from_static("x-goog-api-key"), value);
        }
    }

    fn body(&self, provider: &str, request: &Request, info: &ModelInfo) -> Vec<u8> {
        let declarations: Vec<_> = request
            .tools
            .iter()
            .map(|t| Declaration {
                name: wire_name(&t.name),
                description: &t.description,
                parameters: subset(&t.schema),
            })
            .collect();
        let system = (!request.system.trim().is_empty()).then(|| system_part(&request.system));
        let fitted = fit(&request.messages, &RULES, self.amended.images(request));
        let thoughts = self.amended.thoughts(request);
        let mut contents = contents(provider, request, &fitted, info.images != Some(false), thoughts);
        let apart = !self.amended.refused(&request.model, SYSTEM);
        if system.is_some() && !apart {
            // Some models take no instruction apart from the conversation.
            let mut system = system_part(&request.system);
            match contents.first_mut().filter(|first| first.role == "user") {
                Some(first) => first.parts.insert(0, system.parts.remove(0)),
                None => contents.insert(0, RequestContent { role: "user", ..system }),
            }
        }
        let body = GeminiRequest {
            generation_config: generation(request, info, self.amended.told(&request.model)),
            system_instruction: system.filter(|_| apart),
            tools: if declarations.is_empty() {
                Vec::new()
            } else {
                vec![Tools { function_declarations: declarations }]
            },
            contents,
        };
        serde_json::to_vec(&body).unwrap_or_default()
    }

    fn amend(&self, request: &Request, _: &ModelInfo, refusal: Refusal<'_>) -> Option<&'static str> {
        let sent = Some(SYSTEM).filter(|_| !self.amended.refused(&request.model, SYSTEM));
        let asked = request.max_output;
        self.amended.take(request, refusal, sent.as_slice(), asked, || fit::images(&request.messages, &RULES))
    }

    fn amendments(&self) -> &Amendments {
        &self.amended
    }

    fn decoder(&self, provider: &str) -> Box<dyn Decoder> {
        Box::new(GeminiReply::new(provider))
    }

    fn models_path(&self, base: &str) -> String {
        format!("{}/models?pageSize=1000", version(base))
    }

    fn models(&self, body: &[u8]) -> Vec<String> {
        let names = crate::models::ids(body, "models", "name");
        names.into_iter().map(|n| n.strip_prefix("models/").unwrap_or(&n).to_owned()).collect()
    }
}

/// Whether the model is of generation 3 or later, which takes a level instead of a budget.
fn third(model: &str) -> bool {
    let number =
        model.split("gemini-").nth(1).and_then(|rest| rest.split(['.', '-']).next()?.parse::<u32>().ok());
    number.is_some_and(|n| n >= 3)
}

fn generation(request: &Request, info: &ModelInfo, told: EffortSupport) -> Option<Value> {
    let mut out = serde_json::Map::new();
    if let Some(max) = request.max_output {
        out.insert("maxOutputTokens".into(), max.into());
    }
    if info.thinking == Some(true) && told == EffortSupport::Effort {
        let mut thinking = json!({"includeThoughts": true});
        if third(&request.model) {
            if let Some(level) = effort::word(request.effort, info) {
                // These models cannot turn thinking off.
                thinking["thinkingLevel"] = if level == "none" { "low" } else { level }.into();
            }
        } else {
            let budget = match effort::used(request.effort, info) {
                Effort::Default => None,
                // The larger models cannot turn thinking off.
                Effort::Off if request.model.contains("pro") => Some(128),
                Effort::Off => Some(0),
                Effort::Low => Some(1_024),
                Effort::Medium => Some(8_192),
                Effort::High | Effort::Max => Some(24_576),
            };
            if let Some(budget) = budget {
                thinking["thinkingBudget"] = budget.into();
            }
        }
        out.insert("thinkingConfig".into(), thinking);
    }
    (!out.is_empty()).then_some(Value::Object(out))
}

/// The messages of a request. `thoughts`: include signatures for the model that made them.
fn contents<'a>(
    provider: &str,
    request: &'a Request,
    fitted: &'a [Cow<'a, ChatMessage>],
    sees: bool,
    thoughts: bool,
) -> Vec<RequestContent<'a>> {
    let mut out: Vec<RequestContent<'a>> = Vec::new();
    // Calls with an id of the vendor's: only those are named in results.
    let mut named: HashSet<&str> = HashSet::new();
    // Adjacent messages of one role are one.
    let mut add = |role, mut parts: Vec<RequestPart<'a>>| match out.last_mut() {
        _ if parts.is_empty() => {}
        Some(last) if last.role == role => last.parts.append(&mut parts),
        _ => out.push(RequestContent { role, parts }),
    };
    for message in fitted.iter().map(AsRef::as_ref) {
        match message {
            ChatMessage::User { content } => {
                add("user", content.iter().filter_map(|p| part(p, sees)).collect());
            }
            ChatMessage::Assistant { blocks, model } => {
                let own = thoughts && model.provider() == provider && model.model() == request.model;
                add("model", reply(blocks, own, provider, third(&request.model), &mut named));
            }
            ChatMessage::ToolResult { call_id, name, ok, content } => {
                let text = text_of(content, sees);
                let key = if *ok { "output" } else { "error" };
                let id = named.contains(call_id.as_str()).then_some(call_id.as_str());
                let mut parts: Vec<RequestPart<'a>> =
                    vec![PartContent::FunctionResponse { id, name, response: json!({key: text}) }.into()];
                if sees {
                    parts.extend(
                        content
                            .iter()
                            .filter(|p| matches!(p, Part::Image { .. }))
                            .filter_map(|p| part(p, sees)),
                    );
                }
                add("user", parts);
            }
        }
    }
    out
}

fn part(part: &Part, sees: bool) -> Option<RequestPart<'_>> {
    Some(match part {
        Part::Text { text } if text.trim().is_empty() => return None,
        Part::Text { text } => PartContent::Text(text).into(),
        Part::Image { media_type, data } if sees => {
            PartContent::InlineData { mime_type: media_type, data }.into()
        }
        Part::Image { .. } => PartContent::Text("[image left out: this model cannot see images]").into(),
    })
}

fn reply<'a>(
    blocks: &'a [Block],
    own: bool,
    provider: &str,
    third: bool,
    named: &mut HashSet<&'a str>,
) -> Vec<RequestPart<'a>> {
    let mut out: Vec<RequestPart<'a>> = Vec::new();
    let mut calls = 0;
    for block in blocks {
        match block {
            Block::Text { text } if text.is_empty() => {}
            Block::Text { text } => out.push(PartContent::Text(text).into()),
            // Thoughts themselves are not sent back; a signature belongs to the text before it.
            Block::Thinking { signature: Some(signature), .. } if own => match out.last_mut() {
                Some(RequestPart { what: PartContent::Text(_), thought_signature: slot @ None }) => {
                    *slot = Some(signature)
                }
                _ => {
                    out.push(RequestPart { what: PartContent::Text(""), thought_signature: Some(signature) })
                }
            },
            Block::Thinking { .. } | Block::Redacted { .. } => {}
            Block::ToolCall(call) => {
                let vendor = call.vendor.as_ref().filter(|_| own);
                let id = vendor.and_then(|v| v.get("id")).and_then(Value::as_str);
                if id.is_some() {
                    named.insert(&call.id);
                }
                let signature = vendor.and_then(|v| v.get("thoughtSignature")).and_then(Value::as_str);
                let foreign = (!own && third && calls == 0).then_some(FOREIGN);
                calls += 1;
                out.push(RequestPart {
                    what: PartContent::FunctionCall {
                        id: id.map(|_| call.id.as_str()),
                        name: &call.name,
                        args: &call.arguments,
                    },
                    thought_signature: signature.or(foreign),
                });
            }
            Block::Unknown { provider: of, raw } if own && of == provider && raw.is_object() => {
                out.push(PartContent::Raw(raw).into())
            }
            Block::Unknown { .. } => {}
        }
    }
    // Only signatures: the vendor would reject the message.
    if out.iter().all(|p| matches!(p.what, PartContent::Text(""))) {
        out.clear();
    }
    out
}
