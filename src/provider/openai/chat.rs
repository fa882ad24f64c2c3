//! OpenAI Chat Completions, also as spoken by many other servers: the request. The reply is read in `chat_reply.rs`.
//!
//! Thoughts are sent back only with the calls that followed them, under the field name in which they arrived: some
//! servers require that, and others reject any other form.

use std::borrow::Cow;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tiller_config::schema::ModelInfo;
use tiller_protocol::{Block, Part, ToolCall};

use crate::codec::amend::{Amendments, EffortSupport, NULL_CONTENT, PROGRESS, Refusal, SYSTEM};
use crate::codec::fit::{self, Rules, fit, wire_name};
use crate::codec::format::ApiFormat;
use crate::codec::image_limits::ImageLimits;
use crate::codec::request::{ChatMessage, Request};
use crate::codec::{Decoder, Wire};
use crate::gemini::schema::{object, subset};
use crate::models::effort;
use crate::openai::chat_reply::ChatReply;
use crate::registry::key::Secret;
use crate::registry::local;

/// The vendor's address.
pub(crate) const BASE: &str = "https://api.openai.com/v1";

/// The format of Chat Completions.
pub(crate) const FORMAT: ApiFormat =
    ApiFormat::server("openai-chat", |base| Box::new(OpenAiChat::new(dialect(base), local::is_near(base))));

/// What this server does differently, by its address.
fn dialect(base: &str) -> Dialect {
    if base == BASE {
        Dialect::OpenAi
    } else if base.starts_with("https://openrouter.ai/") {
        Dialect::OpenRouter
    } else if base.starts_with("https://api.mistral.ai") {
        Dialect::Mistral
    } else if base.starts_with("https://api.groq.com/") {
        Dialect::Groq
    } else if is_google(base) {
        Dialect::Gemini
    } else {
        Dialect::Compatible
    }
}

/// True for Google's own servers, also those of its cloud.
fn is_google(base: &str) -> bool {
    let host = base.strip_prefix("https://").and_then(|rest| rest.split('/').next()).unwrap_or_default();
    host == "generativelanguage.googleapis.com"
        || host == "aiplatform.googleapis.com"
        || host.ends_with("-aiplatform.googleapis.com")
}

/// The variants of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// The vendor's own server.
    OpenAi,
    OpenRouter,
    /// Accepts only ids of nine letters and digits.
    Mistral,
    /// Accepts few images.
    Groq,
    /// Google's server of this format: its schemas are those of its own.
    Gemini,
    /// Any other server.
    Compatible,
}

/// The format.
pub(crate) struct OpenAiChat {
    dialect: Dialect,
    amended: Amendments,
    /// On this machine or in a private network: such a server may say how far it has read the prompt.
    near: bool,
}

impl OpenAiChat {
    pub(crate) fn new(dialect: Dialect, near: bool) -> Self {
        Self { dialect, amended: Amendments::default(), near }
    }

    /// The name under which the model's server takes the limit of the output; `None`: it refused both.
    fn limit(&self, model: &str) -> Option<&'static str> {
        let names = ["max_tokens", "max_completion_tokens"];
        let (first, second) =
            if self.dialect == Dialect::OpenAi { (names[1], names[0]) } else { (names[0], names[1]) };
        [first, second].into_iter().find(|name| !self.amended.refused(model, name))
    }

    fn says_progress(&self) -> bool {
        self.near && self.dialect == Dialect::Compatible
    }

    fn parameters<'a>(&self, schema: &'a Value) -> Cow<'a, Value> {
        match self.dialect {
            Dialect::Gemini => {
                Cow::Owned(subset(schema).unwrap_or_else(|| json!({"type": "object", "properties": {}})))
            }
            _ => object(schema),
        }
    }

    /// The options of a request that its server may refuse.
    fn sent(&self, request: &Request) -> Vec<&'static str> {
        let limit = self.limit(&request.model).filter(|_| request.max_output.is_some());
        let only_calls = |message: &ChatMessage| match message {
            ChatMessage::Assistant { blocks, .. } => !blocks.iter().any(|b| matches!(b, Block::Text { .. })),
            _ => false,
        };
        let own = self.dialect == Dialect::OpenAi;
        let null = request.messages.iter().any(only_calls);
        ["stream_options", SYSTEM]
            .into_iter()
            .chain(own.then_some("prompt_cache_key"))
            .chain(self.says_progress().then_some(PROGRESS))
            .chain(null.then_some(NULL_CONTENT))
            .chain(limit)
            .filter(|option| !self.amended.refused(&request.model, option))
            .collect()
    }

    fn rules(&self) -> Rules {
        self.dialect.rules()
    }
}

impl Dialect {
    /// The limits of the server. Images: a router hands them on to vendors of other formats, so the strictest of these hold; other servers
    /// publish some tens of images and some MB of them together, and what one of them refuses is learned.
    fn rules(self) -> Rules {
        let (image_bytes, image_side, image_limits) = match self {
            Self::OpenAi => {
                (20, u32::MAX, ImageLimits { count: 500, bytes: fit::mib(40), many: (usize::MAX, 0) })
            }
            Self::OpenRouter => {
                (5, 8_000, ImageLimits { count: 100, bytes: fit::mib(24), many: (20, 2_000) })
            }
            Self::Mistral => {
                (10, 10_000, ImageLimits { count: 8, bytes: fit::mib(40), many: (usize::MAX, 0) })
            }
            Self::Groq => (4, 5_000, ImageLimits { count: 5, bytes: fit::mib(4), many: (usize::MAX, 0) }),
            Self::Gemini | Self::Compatible => {
                (5, 8_000, ImageLimits { count: 30, bytes: fit::mib(10), many: (20, 2_000) })
            }
        };
        Rules {
            id: if self == Self::Mistral { fit::id_9 } else { fit::id_40 },
            calls: 128,
            images: &["image/png", "image/jpeg", "image/gif", "image/webp"],
            image_bytes: fit::mib(image_bytes),
            image_side,
            image_limits,
        }
    }
}

#[derive(Serialize)]
struct ChatRequest<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    /// llama.cpp: events say how far the prompt has been read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    return_progress: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ChatTool<'a>>,
    messages: Vec<RequestMessage<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Reasoning {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enabled: Option<bool>,
}

#[derive(Serialize)]
struct ChatTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    parameters: Cow<'a, Value>,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum RequestMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: RequestContent<'a>,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_details: Option<&'a Value>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<RequestCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: String,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum RequestContent<'a> {
    Text(String),
    Parts(Vec<RequestPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum RequestPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: Url },
}

#[derive(Serialize)]
struct Url {
    url: String,
}

#[derive(Serialize)]
struct RequestCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: RequestFunction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a Value>,
}

#[derive(Serialize)]
struct RequestFunction<'a> {
    name: &'a str,
    arguments: String,
}

impl Wire for OpenAiChat {
    fn path(&self, base: &str, _model: &str) -> String {
        versioned(base, "/chat/completions")
    }

    fn headers(&self, key: Option<&Secret>, out: &mut HeaderMap) {
        bearer(key, out);
    }

    fn body(&self, provider: &str, request: &Request, info: &ModelInfo) -> Vec<u8> {
        let own = self.dialect == Dialect::OpenAi;
        let word = effort(request, info, self.amended.told(&request.model));
        let router = self.dialect == Dialect::OpenRouter;
        let fitted = fit(&request.messages, &self.rules(), self.amended.images(request));
        let thoughts = self.amended.thoughts(request);
        let takes = |option: &str| !self.amended.refused(&request.model, option);
        let limit = self.limit(&request.model);
        let mut messages = messages(provider, request, &fitted, info.images != Some(false), thoughts);
        if !takes(SYSTEM) {
            without_system(&mut messages);
        }
        if !takes(NULL_CONTENT) {
            without_null(&mut messages);
        }
        let body = ChatRequest {
            model: &request.model,
            stream: true,
            stream_options: takes("stream_options").then_some(StreamOptions { include_usage: true }),
            return_progress: self.says_progress() && takes(PROGRESS),
            max_tokens: request.max_output.filter(|_| limit == Some("max_tokens")),
            max_completion_tokens: request.max_output.filter(|_| limit == Some("max_completion_tokens")),
            reasoning_effort: word.filter(|_| !router),
            reasoning: word.filter(|_| router).map(|word| match word {
                "none" => Reasoning { effort: None, enabled: Some(false) },
                word => Reasoning { effort: Some(word), enabled: None },
            }),
            prompt_cache_key: (own && takes("prompt_cache_key") && !request.cache_key.is_empty())
                .then_some(&*request.cache_key),
            tools: request
                .tools
                .iter()
                .map(|t| ChatTool {
                    kind: "function",
                    function: ToolFunction {
                        name: wire_name(&t.name),
                        description: &t.description,
                        parameters: self.parameters(&t.schema),
                    },
                })
                .collect(),
            messages,
        };
        serde_json::to_vec(&body).unwrap_or_default()
    }

    fn amend(&self, request: &Request, _: &ModelInfo, refusal: Refusal<'_>) -> Option<&'static str> {
        let images = || fit::images(&request.messages, &self.rules());
        self.amended.take(request, refusal, &self.sent(request), request.max_output, images)
    }

    fn amendments(&self) -> &Amendments {
        &self.amended
    }

    fn decoder(&self, provider: &str) -> Box<dyn Decoder> {
        Box::new(ChatReply::new(provider))
    }

    fn models_path(&self, base: &str) -> String {
        versioned(base, "/models")
    }

    fn check_path(&self, base: &str) -> String {
        match self.dialect {
            // Its list of models is public.
            Dialect::OpenRouter => versioned(base, "/key"),
            _ => self.models_path(base),
        }
    }

    fn models(&self, body: &[u8]) -> Vec<String> {
        crate::models::ids(body, "data", "id")
    }
}

/// Puts the text of the system before that of the user's first message, for chat templates without a system role.
fn without_system(messages: &mut Vec<RequestMessage<'_>>) {
    let Some(RequestMessage::System { content: system }) = messages.first() else { return };
    let system = (*system).to_owned();
    messages.remove(0);
    match messages.first_mut() {
        Some(RequestMessage::User { content: RequestContent::Text(text) }) => {
            text.insert_str(0, "\n\n");
            text.insert_str(0, &system);
        }
        Some(RequestMessage::User { content: RequestContent::Parts(parts) }) => {
            parts.insert(0, RequestPart::Text { text: system.into() });
        }
        _ => messages.insert(0, RequestMessage::User { content: RequestContent::Text(system) }),
    }
}

/// Gives replies that have only calls an empty text.
fn without_null(messages: &mut [RequestMessage<'_>]) {
    for message in messages {
        if let RequestMessage::Assistant { content, .. } = message {
            content.get_or_insert_default();
        }
    }
}

/// The path after the base. A base without a path (`http://localhost:1234`) gets the usual `/v1`.
pub(crate) fn versioned(base: &str, path: &str) -> String {
    let bare = base.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'));
    if bare { format!("/v1{path}") } else { path.to_owned() }
}

/// Adds the key as a bearer token.
pub(crate) fn bearer(key: Option<&Secret>, out: &mut HeaderMap) {
    if let Some(key) = key
        && let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {}", key.reveal()))
    {
        value.set_sensitive(true);
        out.insert(AUTHORIZATION, value);
    }
}

/// The word for an effort in OpenAI's formats.
pub(crate) fn effort(request: &Request, info: &ModelInfo, told: EffortSupport) -> Option<&'static str> {
    match told {
        EffortSupport::Effort => effort::word(request.effort, info),
        EffortSupport::Nothing => None,
        EffortSupport::Least => Some("none"),
    }
}

/// The argument text of a call: as the model wrote it where that was stored, else serialised.
pub(crate) fn arguments(call: &ToolCall) -> String {
    let kept = call.vendor.as_ref().and_then(|v| v.get("text")).and_then(Value::as_str);
    match kept {
        // History may come from an imported file: only valid JSON is sent.
        Some(text) if text.starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok() => {
            text.to_owned()
        }
        _ => call.arguments.to_string(),
    }
}

/// The messages of a request. `thoughts`: include thoughts for the model that wrote them.
fn messages<'a>(
    provider: &str,
    request: &'a Request,
    fitted: &'a [Cow<'a, ChatMessage>],
    sees: bool,
    thoughts: bool,
) -> Vec<RequestMessage<'a>> {
    let mut out = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.trim().is_empty() {
        out.push(RequestMessage::System { content: &request.system });
    }
    // Images of tool results are sent in a user message after all results of the reply.
    let mut images: Vec<RequestPart<'a>> = Vec::new();
    for message in fitted.iter().map(AsRef::as_ref) {
        if !matches!(message, ChatMessage::ToolResult { .. }) {
            flush(&mut images, &mut out);
        }
        match message {
            ChatMessage::User { content } => {
                if let Some(content) = user(content, sees) {
                    add_user(content, &mut out);
                }
            }
            ChatMessage::Assistant { blocks, model } => {
                let own = thoughts && model.provider() == provider && model.model() == request.model;
                out.extend(assistant(blocks, own, provider));
            }
            ChatMessage::ToolResult { call_id, ok, content, .. } => {
                let mut text = text_of(content, sees);
                if !ok && !text.starts_with("error") {
                    text.insert_str(0, "error: ");
                }
                out.push(RequestMessage::Tool { tool_call_id: call_id, content: text });
                if sees {
                    images.extend(content.iter().filter_map(image));
                }
            }
        }
    }
    flush(&mut images, &mut out);
    out
}

fn flush<'a>(images: &mut Vec<RequestPart<'a>>, out: &mut Vec<RequestMessage<'a>>) {
    if !images.is_empty() {
        let mut parts = vec![RequestPart::Text { text: "Images of the tool results above:".into() }];
        parts.append(images);
        add_user(RequestContent::Parts(parts), out);
    }
}

/// Adds a message of the user's, joined with one that stands directly before it: some chat templates accept no two in a row.
fn add_user<'a>(content: RequestContent<'a>, out: &mut Vec<RequestMessage<'a>>) {
    let Some(RequestMessage::User { content: before }) = out.last_mut() else {
        return out.push(RequestMessage::User { content });
    };
    match (before, content) {
        (RequestContent::Text(before), RequestContent::Text(more)) => {
            before.push_str("\n\n");
            before.push_str(&more);
        }
        (before, content) => {
            let mut parts = std::mem::replace(before, RequestContent::Parts(Vec::new())).into_parts();
            parts.append(&mut content.into_parts());
            *before = RequestContent::Parts(parts);
        }
    }
}

impl<'a> RequestContent<'a> {
    fn into_parts(self) -> Vec<RequestPart<'a>> {
        match self {
            Self::Text(text) => vec![RequestPart::Text { text: text.into() }],
            Self::Parts(parts) => parts,
        }
    }
}

fn image(part: &Part) -> Option<RequestPart<'_>> {
    match part {
        Part::Image { media_type, data } => {
            Some(RequestPart::ImageUrl { image_url: Url { url: format!("data:{media_type};base64,{data}") } })
        }
        Part::Text { .. } => None,
    }
}

/// The text of parts, with a note for each image that is not allowed there.
pub(crate) fn text_of(content: &[Part], sees: bool) -> String {
    let mut out = String::new();
    for part in content {
        if !out.is_empty() {
            out.push('\n');
        }
        match part {
            Part::Text { text } => out.push_str(text),
            Part::Image { .. } if sees => out.push_str("[image: in the next message]"),
            Part::Image { .. } => out.push_str("[image left out: this model cannot see images]"),
        }
    }
    out
}

fn user(content: &[Part], sees: bool) -> Option<RequestContent<'_>> {
    let with_images = sees && content.iter().any(|p| matches!(p, Part::Image { .. }));
    if !with_images {
        let text = text_of(content, false);
        return (!text.trim().is_empty()).then_some(RequestContent::Text(text));
    }
    let pieces = content
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } if text.trim().is_empty() => None,
            Part::Text { text } => Some(RequestPart::Text { text: text.into() }),
            Part::Image { .. } => image(part),
        })
        .collect();
    Some(RequestContent::Parts(pieces))
}

fn assistant<'a>(blocks: &'a [Block], own: bool, provider: &str) -> Option<RequestMessage<'a>> {
    let mut text = String::new();
    let (mut thought, mut field) = (String::new(), "");
    let mut details = None;
    let mut tool_calls = Vec::new();
    for block in blocks {
        match block {
            Block::Text { text: more } => text.push_str(more),
            Block::Thinking { text: more, signature } if own => {
                thought.push_str(more);
                field = signature.as_deref().unwrap_or(field);
            }
            Block::ToolCall(call) => tool_calls.push(RequestCall {
                id: &call.id,
                kind: "function",
                function: RequestFunction { name: &call.name, arguments: arguments(call) },
                extra_content: call.vendor.as_ref().filter(|_| own).and_then(|v| v.get("extra_content")),
            }),
            Block::Unknown { provider: of, raw } if own && of == provider => {
                details = raw.get("reasoning_details").or(details);
            }
            Block::Thinking { .. } | Block::Redacted { .. } | Block::Unknown { .. } => {}
        }
    }
    if text.trim().is_empty() && tool_calls.is_empty() {
        return None;
    }
    let back = !tool_calls.is_empty() && !thought.is_empty();
    let (as_content, as_reasoning) = match field {
        "reasoning_content" if back => (Some(thought), None),
        "reasoning" if back => (None, Some(thought)),
        _ => (None, None),
    };
    Some(RequestMessage::Assistant {
        content: (!text.trim().is_empty()).then_some(text),
        reasoning_content: as_content,
        reasoning: as_reasoning,
        reasoning_details: details,
        tool_calls,
    })
}
