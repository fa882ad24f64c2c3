//! Shared by the tests of this room.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "each test binary uses a part of it"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use tiller_config::Config;
use tiller_config::schema::{Provider as Entry, ProviderKind, Timeouts};
use tiller_protocol::{Part, ToolSpec};
use tiller_provider::{
    ApiFormats, Assembled, Assembler, ChatMessage, Chunk, Effort, Provider, ProviderError, Request, build,
};
use tiller_testkit::Wire;

/// The key that every test sends; it must not appear anywhere else.
pub const KEY: &str = "test-key-8d1f00";

pub fn kind(wire: Wire) -> ProviderKind {
    let name = match wire {
        Wire::Anthropic => "anthropic",
        Wire::OpenaiChat => "openai-chat",
        Wire::OpenaiResponses => "openai-responses",
        Wire::Gemini => "gemini",
    };
    ProviderKind(name.into())
}

pub fn entry(wire: Wire, url: &str) -> Entry {
    Entry {
        kind: kind(wire),
        base_url: Some(url.into()),
        api_key_env: Some("TEST_KEY".into()),
        api_key_command: None,
        headers: Default::default(),
        timeouts: Timeouts::default(),
        recording: None,
        speed: None,
        models: Default::default(),
    }
}

/// A provider named `p` that speaks `wire` to `url`.
pub fn provider(wire: Wire, url: &str) -> Arc<dyn Provider> {
    with_entry(entry(wire, url))
}

pub fn with_entry(entry: Entry) -> Arc<dyn Provider> {
    with_env(entry, &|_| None)
}

pub fn with_env(entry: Entry, more: &dyn Fn(&str) -> Option<String>) -> Arc<dyn Provider> {
    let mut config = Config::default();
    config.providers.insert("p".into(), entry);
    let var = |name: &str| if name == "TEST_KEY" { Some(KEY.into()) } else { more(name) };
    build(&config, &ApiFormats::built_in(), &var, None, &tiller_provider::Redact::default()).get("p").unwrap()
}

pub fn user(text: &str) -> ChatMessage {
    ChatMessage::User { content: vec![Part::Text { text: text.into() }] }
}

pub fn tools() -> Arc<[ToolSpec]> {
    ["read_file", "list_dir", "terminal"]
        .map(|name| ToolSpec {
            name: name.into(),
            description: format!("What {name} does."),
            schema: serde_json::json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        })
        .into()
}

pub fn request(messages: Vec<ChatMessage>) -> Request {
    Request {
        model: "model-1".into(),
        system: "You are a test.".into(),
        tools: tools(),
        messages: messages.into(),
        max_output: None,
        effort: Effort::Default,
        cache_key: "session-1".into(),
    }
}

pub fn hello() -> Request {
    request(vec![user("hello")])
}

/// The result of one request.
pub struct Outcome {
    pub chunks: Vec<Chunk>,
    pub reply: Assembled,
    pub error: Option<ProviderError>,
    pub took: Duration,
}

impl Outcome {
    pub fn text(&self) -> String {
        self.reply
            .blocks
            .iter()
            .filter_map(|b| {
                if let tiller_protocol::Block::Text { text } = b { Some(text.as_str()) } else { None }
            })
            .collect()
    }

    pub fn message(&self) -> String {
        self.error.as_ref().map(ToString::to_string).unwrap_or_default()
    }
}

/// Sends a request and reads the reply to its end.
pub async fn ask(provider: &Arc<dyn Provider>, request: Request) -> Outcome {
    let start = Instant::now();
    let mut assembler = Assembler::new(provider.name(), "1", []);
    let mut chunks = Vec::new();
    let mut error = None;
    match provider.stream(request).await {
        Ok(mut stream) => {
            while let Some(item) = stream.next().await {
                match item {
                    Ok(chunk) => {
                        chunks.push(chunk.clone());
                        assembler.push(chunk);
                    }
                    Err(e) => {
                        assert_eq!(error, None, "one error ends a stream");
                        error = Some(e);
                    }
                }
            }
        }
        Err(e) => error = Some(e),
    }
    Outcome { chunks, reply: assembler.finish(), error, took: start.elapsed() }
}
