//! Row P17: options and schemas that named servers refuse. The session goes on without them, and nothing else is left out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod common;

use std::sync::Arc;

use common::{KEY, Outcome, ask, entry, hello, provider, request, tools, user, with_entry};
use serde_json::{Value, json};
use tiller_config::Config;
use tiller_protocol::{Block, Part, ToolSpec};
use tiller_provider::{ApiFormats, ChatMessage, Provider, ProviderError, Request, build};
use tiller_testkit::{Dice, Reply, Script, ScriptServer, Wire, strict};

/// Sends a request as a turn does: what can be mended is sent again.
async fn turn(p: &Arc<dyn Provider>, request: &Request) -> (Outcome, usize) {
    for n in 1..5 {
        let out = ask(p, request.clone()).await;
        if !matches!(&out.error, Some(ProviderError::Wait { after: Some(wait), .. }) if wait.is_zero()) {
            return (out, n);
        }
    }
    panic!("it was refused again and again");
}

/// A refusal of a request: who, its format, whether a body has it, the status, and the words.
type Refusal = (&'static str, Wire, fn(&Value) -> bool, u16, Value);

fn refusals() -> Vec<Refusal> {
    let error = |text: &str| json!({"error": {"message": text, "type": "invalid_request_error"}});
    let detail = |text: &str| json!({"detail": text});
    let chat = Wire::OpenaiChat;
    vec![
        (
            "Azure, newer models",
            chat,
            |b| b.get("max_tokens").is_some(),
            400,
            error(
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            ),
        ),
        (
            "Mistral",
            chat,
            |b| b.get("stream_options").is_some(),
            422,
            json!({"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}),
        ),
        (
            "older vLLM",
            chat,
            |b| b.get("stream_options").is_some(),
            400,
            json!({"object": "error", "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted'}]", "code": 400}),
        ),
        (
            "Databricks",
            chat,
            |b| b.get("stream_options").is_some(),
            400,
            json!({"error_code": "BAD_REQUEST", "message": "stream_options: unrecognized field"}),
        ),
        (
            "a strict gateway",
            chat,
            |b| b.get("return_progress").is_some(),
            400,
            error("Unknown parameter: 'return_progress'."),
        ),
        (
            "SambaNova",
            chat,
            |b| b.get("max_tokens").is_some() || b.get("max_completion_tokens").is_some(),
            400,
            detail("max_tokens and max_completion_tokens are not supported"),
        ),
        (
            "an Azure gateway, 500",
            chat,
            |b| b.get("stream_options").is_some(),
            500,
            error("stream_options is not supported"),
        ),
        (
            "Gemma's template in llama.cpp",
            chat,
            |b| b["messages"][0]["role"] == "system",
            500,
            json!({"error": {"code": 500, "message": "System role not supported at row 1, column 1", "type": "server_error"}}),
        ),
        (
            "Gemma at Google",
            chat,
            |b| b["messages"][0]["role"] == "system",
            400,
            error("Developer instruction is not enabled for models/gemma-3-27b-it"),
        ),
        (
            "SGLang",
            chat,
            |b| {
                b["messages"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|m| m["role"] == "assistant" && m["content"].is_null())
            },
            400,
            error("messages[2].content: none is not an allowed value"),
        ),
        (
            "Together, a small output",
            chat,
            |b| b["max_tokens"].as_u64().is_some_and(|n| n > 4096),
            422,
            error("max_tokens must be less than or equal to 4096"),
        ),
        (
            "Cohere, effort",
            chat,
            |b| b.get("reasoning_effort").is_some(),
            422,
            json!({"message": "unknown field: reasoning_effort"}),
        ),
        (
            "Codex proxy",
            Wire::OpenaiResponses,
            |b| b.get("max_output_tokens").is_some(),
            400,
            detail("Unsupported parameter: max_output_tokens"),
        ),
        (
            "xAI, store",
            Wire::OpenaiResponses,
            |b| b.get("store").is_some(),
            400,
            error("Argument not supported: unknown parameter 'store'"),
        ),
        (
            "LM Studio, include",
            Wire::OpenaiResponses,
            |b| b.get("include").is_some(),
            400,
            error("Unrecognized request argument supplied: include"),
        ),
        (
            "Ollama, summaries",
            Wire::OpenaiResponses,
            |b| b["reasoning"].get("summary").is_some(),
            400,
            error("unknown field reasoning.summary"),
        ),
        (
            "OpenRouter, key of the cache",
            Wire::OpenaiResponses,
            |b| b.get("prompt_cache_key").is_some(),
            400,
            error("prompt_cache_key: unexpected field"),
        ),
        (
            "vLLM, strict",
            Wire::OpenaiResponses,
            |b| b["tools"][0].get("strict").is_some(),
            422,
            error("tools.0: unexpected field 'strict'"),
        ),
        (
            "Bedrock",
            Wire::Anthropic,
            |b| b.to_string().contains("cache_control"),
            400,
            json!({"message": "system.0.cache_control: Extra inputs are not permitted"}),
        ),
        (
            "DeepSeek, a small output",
            Wire::Anthropic,
            |b| b["max_tokens"].as_u64().is_some_and(|n| n > 8192),
            400,
            error("max_tokens: 20000 > 8192, which is the maximum allowed number of output tokens for x"),
        ),
        (
            "Gemma",
            Wire::Gemini,
            |b| b.get("systemInstruction").is_some(),
            400,
            json!({"error": {"code": 400, "message": "Developer instruction is not enabled for models/gemma-3-27b-it", "status": "INVALID_ARGUMENT"}}),
        ),
    ]
}

fn refusing(wire: Wire, has: fn(&Value) -> bool, status: u16, said: Value) -> ScriptServer {
    ScriptServer::with(move |request, _| match has(&request.json()) {
        true => Reply::status(status).json(&said),
        false => Reply::script(wire, &Script::new().text("So.")),
    })
}

/// A request with all that it may carry.
fn full() -> Request {
    let call = tiller_protocol::ToolCall {
        id: "c1".into(),
        name: "read_file".into(),
        arguments: json!({"path": "a"}),
        malformed: None,
        vendor: None,
    };
    let blocks = vec![Block::ToolCall(call)];
    let result = ChatMessage::ToolResult {
        call_id: "c1".into(),
        name: "read_file".into(),
        ok: true,
        content: vec![Part::Text { text: "x".into() }],
    };
    let model = tiller_protocol::ModelRef("p/model-1".into());
    let mut all = request(vec![user("look"), ChatMessage::Assistant { blocks, model }, result]);
    all.max_output = Some(20_000);
    all.effort = tiller_provider::Effort::High;
    all
}

/// A turn states no limit of the output; this format sends one all the same, which the server may find too large.
#[tokio::test]
async fn p17_a_stated_limit_is_learned_by_a_turn_without_one() {
    let said = json!({"error": {"message": "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for x"}});
    let server = refusing(Wire::Anthropic, |b| b["max_tokens"].as_u64().is_some_and(|n| n > 8192), 400, said);
    let p = provider(Wire::Anthropic, &server.url());
    let turns = Request { max_output: None, ..full() };
    let (out, n) = turn(&p, &turns).await;
    assert_eq!((out.error, n), (None, 2));
    assert_eq!(server.bodies()[1]["max_tokens"], 8192);
    assert_eq!(turn(&p, &turns).await.1, 1);
}

/// Words of a server that failed, or that are about something else, leave nothing out.
#[tokio::test]
async fn p17_words_about_something_else_leave_nothing_out() {
    for (status, text, mends) in [
        (500, "could not fetch image_url", false),
        (500, "reasoning_content could not be stored", false),
        (400, "content is required", false),
        (500, "stream_options is not supported", true),
    ] {
        let said = json!({"error": {"message": text}});
        let server = ScriptServer::with(move |_, _| Reply::status(status).json(&said));
        let out = ask(&provider(Wire::OpenaiChat, &server.url()), hello()).await;
        let again =
            matches!(&out.error, Some(ProviderError::Wait { after: Some(wait), .. }) if wait.is_zero());
        let named = format!("{:?}", out.error).contains("return_progress");
        assert_eq!(again && !named, mends, "{status} {text} {:?}", out.error);
    }
}

/// A refusal that names nothing: what Tiller adds of its own is left out, once, for this run alone; where that was not the
/// reason, the refusal is shown.
#[tokio::test]
async fn p17_a_refusal_that_names_nothing_costs_the_report_of_progress_and_nothing_else() {
    for (status, body) in [
        (400, json!({"error": {"message": "Bad Request", "type": "invalid_request_error"}})),
        (400, json!({"error": "Extra inputs are not permitted"})),
        (422, json!({"detail": "Unprocessable Entity"})),
        (400, json!({"message": "Request body does not match the schema"})),
        (400, json!({"error": {"message": "Unknown parameter"}})),
        (400, json!({})),
    ] {
        let said = body.clone();
        let server = ScriptServer::with(move |request, _| match request.json().get("return_progress") {
            Some(_) => Reply::status(status).json(&said),
            None => Reply::script(Wire::OpenaiChat, &Script::new().text("So.")),
        });
        let p = provider(Wire::OpenaiChat, &server.url());
        let (out, n) = turn(&p, &full()).await;
        assert_eq!((out.error.clone(), n), (None, 2), "{body}");
        let (first, second) = (&server.bodies()[0], &server.bodies()[1]);
        let mut same = first.clone();
        same.as_object_mut().unwrap().remove("return_progress");
        assert_eq!(&same, second, "{body}: nothing else is left out");
        assert_eq!(turn(&p, &full()).await.1, 1, "{body}: not sent again");
    }
    let server =
        ScriptServer::with(|_, _| Reply::status(400).json(&json!({"error": {"message": "Bad Request"}})));
    let p = provider(Wire::OpenaiChat, &server.url());
    let (out, n) = turn(&p, &full()).await;
    assert!(
        matches!(&out.error, Some(ProviderError::Rejected(t)) if t.contains("Bad Request")),
        "{:?}",
        out.error
    );
    assert_eq!(n, 2, "tried without it once");
}

#[tokio::test]
async fn p17_refused_options_are_left_out_and_not_sent_again() {
    for (who, wire, has, status, said) in refusals() {
        let server = refusing(wire, has, status, said);
        let p = provider(wire, &server.url());
        let (out, n) = turn(&p, &full()).await;
        assert_eq!((out.error.clone(), out.text().as_str()), (None, "So."), "{who}");
        assert!(n > 1, "{who}: it was sent");
        // Nothing that the model must read is lost.
        let last = server.bodies().pop().unwrap().to_string();
        assert!(last.contains("You are a test.") && last.contains("look"), "{who} {last}");
        // Other requests to the model, also those beside the conversation, leave it out at once.
        let mut beside = Request { tools: [].into(), ..full() };
        beside.cache_key = "session-1-side".into();
        assert_eq!(turn(&p, &beside).await.1, 1, "{who}");
    }
}

/// A provider `p` that keeps what it learns in this folder.
fn keeping(wire: Wire, url: &str, dir: &std::path::Path) -> Arc<dyn Provider> {
    kept(entry(wire, url), dir)
}

fn kept(entry: tiller_config::schema::Provider, dir: &std::path::Path) -> Arc<dyn Provider> {
    let mut config = Config::default();
    config.providers.insert("p".into(), entry);
    let var = |name: &str| (name == "TEST_KEY").then(|| KEY.into());
    let keys = dir.join("keys.toml");
    build(&config, &ApiFormats::built_in(), &var, Some(&keys), &tiller_provider::Redact::default())
        .get("p")
        .unwrap()
}

#[tokio::test]
async fn p17_the_next_session_does_not_ask_again() {
    for (who, wire, has, status, said) in refusals() {
        // A stated limit is asked for once in each session.
        if who.contains("small output") {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let server = refusing(wire, has, status, said);
        let first = turn(&keeping(wire, &server.url(), dir.path()), &full()).await;
        let next = turn(&keeping(wire, &server.url(), dir.path()), &full()).await;
        assert!(first.1 > 1 && next.1 == 1 && next.0.error.is_none(), "{who} {} {}", first.1, next.1);
    }
}

#[tokio::test]
async fn p17_a_limit_that_a_person_set_is_never_left_out() {
    let said = json!({"error": {"message": "max_tokens and max_completion_tokens are not supported"}});
    let has: fn(&Value) -> bool =
        |b| b.get("max_tokens").is_some() || b.get("max_completion_tokens").is_some();
    let server = refusing(Wire::OpenaiChat, has, 400, said);
    let mut of = entry(Wire::OpenaiChat, &server.url());
    let own = tiller_config::schema::ModelInfo { max_output: Some(20_000), ..Default::default() };
    of.models.insert("model-*".into(), own);
    let (out, _) = turn(&with_entry(of), &full()).await;
    assert!(
        matches!(&out.error, Some(ProviderError::Rejected(t)) if t.contains("are not supported")),
        "{:?}",
        out.error
    );
    assert!(server.bodies().iter().all(has), "each request has the limit");
}

#[tokio::test]
async fn p17_a_limit_that_is_set_later_is_sent_again() {
    let dir = tempfile::tempdir().unwrap();
    let said = json!({"error": {"message": "max_tokens and max_completion_tokens are not supported"}});
    let has: fn(&Value) -> bool =
        |b| b.get("max_tokens").is_some() || b.get("max_completion_tokens").is_some();
    let server = refusing(Wire::OpenaiChat, has, 400, said);
    let first = turn(&keeping(Wire::OpenaiChat, &server.url(), dir.path()), &full()).await;
    assert_eq!(first.0.error, None);
    let mut of = entry(Wire::OpenaiChat, &server.url());
    let own = tiller_config::schema::ModelInfo { max_output: Some(20_000), ..Default::default() };
    of.models.insert("model-*".into(), own);
    let next = turn(&kept(of, dir.path()), &full()).await;
    assert!(matches!(next.0.error, Some(ProviderError::Rejected(_))), "{:?}", next.0.error);
    assert!(server.bodies().last().is_some_and(has), "the request has the limit");
}

/// Any schema, as tools of others have them.
fn any_schema(dice: &mut Dice, depth: usize) -> Value {
    let odd = [
        json!(true),
        json!({}),
        json!(null),
        json!([]),
        json!("string"),
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/D"}),
        json!({"$ref": "#/gone"}),
        json!({"$ref": 7}),
    ];
    if depth == 0 || dice.below(9) == 0 {
        return odd[dice.below(odd.len())].clone();
    }
    let mut out = serde_json::Map::new();
    for _ in 0..dice.below(6) {
        let (key, value) = match dice.below(22) {
            0 => ("type", json!("object")),
            1 => ("type", json!("array")),
            2 => ("type", json!(["string", "null", "integer"])),
            3 => ("type", json!(["array", "object"])),
            4 => ("type", json!("any")),
            5 => ("type", json!("null")),
            6 => ("enum", json!([])),
            7 => ("enum", json!(["", null, 1, true, {"a": 1}, "x", "x"])),
            8 => ("required", json!(["a", "gone", 7])),
            9 => ("required", json!("a")),
            10 => ("const", json!(7)),
            11 => ("items", json!([any_schema(dice, depth - 1), any_schema(dice, depth - 1)])),
            12 => ("items", any_schema(dice, depth - 1)),
            13 => ("prefixItems", json!([any_schema(dice, depth - 1)])),
            14 => ("format", json!("uri")),
            15 => ("description", json!(7)),
            16 => ("minimum", json!("1")),
            17 => ("patternProperties", json!({"^x": {"type": "string"}})),
            18 => (
                ["anyOf", "oneOf", "allOf"][dice.below(3)],
                json!([any_schema(dice, depth - 1), any_schema(dice, depth - 1)]),
            ),
            19 => (
                ["anyOf", "oneOf", "allOf"][dice.below(3)],
                [json!([]), json!({}), json!([{"type": "null"}])][dice.below(3)].clone(),
            ),
            20 => ("properties", json!([])),
            _ => ("properties", json!({"a": any_schema(dice, depth - 1), "b": any_schema(dice, depth - 1)})),
        };
        out.insert(key.into(), value);
    }
    if depth > 3 {
        out.insert("$defs".into(), json!({"D": any_schema(dice, 1)}));
    }
    Value::Object(out)
}

#[tokio::test]
async fn p17_one_odd_tool_does_not_stop_every_request() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for wire in Wire::ALL {
        let server = ScriptServer::with(move |request, _| match strict::refusal(wire, &request.json()) {
            Some(why) => Reply::status(400).json(&json!({"error": {"message": why}})),
            None => Reply::script(wire, &Script::new().text("So.")),
        });
        let p = provider(wire, &server.url());
        for n in 0..40 {
            let odd = (0..25).map(|k| {
                let schema = any_schema(&mut dice, 4);
                ToolSpec { name: format!("mcp__odd__{n}_{k}"), description: "Odd.".into(), schema }
            });
            let odd: Vec<ToolSpec> = tools().iter().cloned().chain(odd).collect();
            let out = ask(&p, Request { tools: odd.clone().into(), ..hello() }).await;
            assert_eq!(out.error, None, "{wire:?} {}", serde_json::to_string(&odd).unwrap());
        }
    }
}
