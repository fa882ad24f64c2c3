//! Replies and refusals as the vendors document them, written by hand instead of with the kit of the other tests, so
//! that a mistake of Tiller's cannot be on both sides.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod common;

use std::time::Duration;

use common::{ask, hello, provider, request, user};
use serde_json::{Value, json};
use tiller_protocol::{Block, ModelRef, Part, StopReason, Usage};
use tiller_provider::{ChatMessage, ProviderError};
use tiller_testkit::{Reply, Script, ScriptServer, Wire};

fn lines(events: &[Value]) -> String {
    events.iter().map(|e| format!("data: {e}\n\n")).collect()
}

fn named(events: &[Value]) -> String {
    events.iter().map(|e| format!("event: {}\ndata: {e}\n\n", e["type"].as_str().unwrap())).collect()
}

/// One line for each block.
fn kinds(blocks: &[Block]) -> Vec<String> {
    blocks
        .iter()
        .map(|b| match b {
            Block::Thinking { text, signature } => format!("think {text} {}", signature.is_some()),
            Block::Text { text } => format!("text {text}"),
            Block::ToolCall(c) => format!("call {} {} {}", c.id, c.name, c.arguments),
            other => format!("{other:?}"),
        })
        .collect()
}

#[tokio::test]
async fn anthropic_messages() {
    let body = named(&[
        json!({"type": "message_start", "message": {"id": "msg_01", "type": "message", "role": "assistant",
            "model": "m", "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 25, "cache_creation_input_tokens": 7, "cache_read_input_tokens": 11,
                "cache_creation": {"ephemeral_5m_input_tokens": 7, "ephemeral_1h_input_tokens": 0},
                "output_tokens": 1, "service_tier": "standard"}}}),
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "Hm."}}),
        json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "signature_delta", "signature": "EqQB"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 1,
            "delta": {"type": "text_delta", "text": "I look."}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "content_block_start", "index": 2, "content_block":
            {"type": "tool_use", "id": "toolu_01", "name": "read_file", "input": {}}}),
        json!({"type": "content_block_delta", "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": ""}}),
        json!({"type": "content_block_delta", "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": "{\"path\":\"a\"}"}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null},
            "usage": {"output_tokens": 89}}),
        json!({"type": "message_stop"}),
    ]);
    let server = ScriptServer::start([Reply::sse(body)]);
    let out = ask(&provider(Wire::Anthropic, &server.url()), hello()).await;
    assert_eq!(out.error, None);
    let want = ["think Hm. true", "text I look.", "call toolu_01 read_file {\"path\":\"a\"}"];
    assert_eq!(kinds(&out.reply.blocks), want);
    assert_eq!(out.reply.stop, Some(StopReason::ToolUse));
    let usage =
        Usage { input: 25, output: 89, cache_read: 11, cache_write: 7, reasoning: 0, ..Usage::default() };
    assert_eq!(out.reply.usage, usage);
}

/// The format accepts only text in the result of a failed call.
#[tokio::test]
async fn anthropic_takes_no_image_in_a_failed_result() {
    let server = ScriptServer::start([Reply::script(Wire::Anthropic, &Script::new().text("So."))]);
    let call = tiller_protocol::ToolCall {
        id: "c1".into(),
        name: "read_file".into(),
        arguments: json!({}),
        malformed: None,
        vendor: None,
    };
    let image = Part::Image { media_type: "image/png".into(), data: "aWNvbg==".into() };
    for ok in [true, false] {
        let messages = vec![
            user("look"),
            ChatMessage::Assistant {
                blocks: vec![Block::ToolCall(call.clone())],
                model: ModelRef("p/model-1".into()),
            },
            ChatMessage::ToolResult {
                call_id: "c1".into(),
                name: "read_file".into(),
                ok,
                content: vec![Part::Text { text: "an icon".into() }, image.clone()],
            },
        ];
        let body = provider(Wire::Anthropic, &server.url()).body(&request(messages));
        let body: Value = serde_json::from_slice(&body).unwrap();
        let result = &body["messages"][2]["content"][0];
        assert_eq!(result["is_error"] == true, !ok);
        let types: Vec<&str> =
            result["content"].as_array().unwrap().iter().map(|p| p["type"].as_str().unwrap()).collect();
        assert_eq!(types, if ok { ["text", "image"] } else { ["text", "text"] });
    }
}

#[tokio::test]
async fn openai_chat_completions() {
    let chunk = |delta: Value, finish: Value| {
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "service_tier": "default", "system_fingerprint": "fp", "usage": null,
            "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]})
    };
    let body = lines(&[
        chunk(json!({"role": "assistant", "content": "", "refusal": null}), Value::Null),
        chunk(json!({"content": "I look."}), Value::Null),
        chunk(
            json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function",
                "function": {"name": "read_file", "arguments": ""}}]}),
            Value::Null,
        ),
        chunk(
            json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"path\":\"a\"}"}}]}),
            Value::Null,
        ),
        chunk(json!({}), json!("tool_calls")),
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [],
            "usage": {"prompt_tokens": 40, "completion_tokens": 12, "total_tokens": 52,
                "prompt_tokens_details": {"cached_tokens": 30, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 5, "audio_tokens": 0,
                    "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}}}),
    ]) + "data: [DONE]\n\n";
    let server = ScriptServer::start([Reply::sse(body)]);
    let out = ask(&provider(Wire::OpenaiChat, &server.url()), hello()).await;
    assert_eq!(out.error, None);
    assert_eq!(kinds(&out.reply.blocks), ["text I look.", "call call_1 read_file {\"path\":\"a\"}"]);
    assert_eq!(out.reply.stop, Some(StopReason::ToolUse));
    let usage =
        Usage { input: 10, output: 12, cache_read: 30, cache_write: 0, reasoning: 5, ..Usage::default() };
    assert_eq!(out.reply.usage, usage);
}

fn responses_body() -> String {
    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}],
        "encrypted_content": "gAAA", "status": "completed"});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read_file",
        "arguments": "{\"path\":\"a\"}", "status": "completed"});
    named(&[
        json!({"type": "response.created", "sequence_number": 0,
            "response": {"id": "resp_1", "status": "in_progress"}}),
        json!({"type": "response.output_item.added", "sequence_number": 1, "output_index": 0,
            "item": {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gA"}}),
        json!({"type": "response.reasoning_summary_part.added", "sequence_number": 2, "item_id": "rs_1",
            "output_index": 0, "summary_index": 0, "part": {"type": "summary_text", "text": ""}}),
        json!({"type": "response.reasoning_summary_text.delta", "sequence_number": 3, "item_id": "rs_1",
            "output_index": 0, "summary_index": 0, "delta": "Hm."}),
        json!({"type": "response.output_item.done", "sequence_number": 4, "output_index": 0, "item": thought}),
        json!({"type": "response.output_item.added", "sequence_number": 5, "output_index": 1,
            "item": {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read_file",
                "arguments": "", "status": "in_progress"}}),
        json!({"type": "response.function_call_arguments.delta", "sequence_number": 6, "item_id": "fc_1",
            "output_index": 1, "delta": "{\"path\":\"a\"}", "obfuscation": "x"}),
        json!({"type": "response.function_call_arguments.done", "sequence_number": 7, "item_id": "fc_1",
            "output_index": 1, "arguments": "{\"path\":\"a\"}"}),
        json!({"type": "response.output_item.done", "sequence_number": 8, "output_index": 1, "item": call}),
        json!({"type": "response.completed", "sequence_number": 9, "response": {"id": "resp_1",
            "status": "completed", "error": null, "incomplete_details": null, "usage": {"input_tokens": 40,
                "input_tokens_details": {"cached_tokens": 30}, "output_tokens": 12,
                "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 52}}}),
    ])
}

#[tokio::test]
async fn openai_responses_and_what_goes_back() {
    let server = ScriptServer::start([Reply::sse(responses_body())]);
    let p = provider(Wire::OpenaiResponses, &server.url());
    let out = ask(&p, hello()).await;
    assert_eq!(out.error, None);
    assert_eq!(kinds(&out.reply.blocks), ["think Hm. true", "call call_1 read_file {\"path\":\"a\"}"]);
    assert_eq!(out.reply.stop, Some(StopReason::ToolUse));
    let usage =
        Usage { input: 10, output: 12, cache_read: 30, cache_write: 0, reasoning: 5, ..Usage::default() };
    assert_eq!(out.reply.usage, usage);
    let sent = server.bodies().remove(0);
    assert_eq!((&sent["store"], &sent["include"][0]), (&json!(false), &json!("reasoning.encrypted_content")));
    // The thought is sent back unchanged, before the call that it led to.
    let messages = vec![
        user("hello"),
        ChatMessage::Assistant { blocks: out.reply.blocks, model: ModelRef("p/model-1".into()) },
        ChatMessage::ToolResult {
            call_id: "call_1".into(),
            name: "read_file".into(),
            ok: true,
            content: vec![Part::Image { media_type: "image/png".into(), data: "aWNvbg==".into() }],
        },
    ];
    let body: Value = serde_json::from_slice(&p.body(&request(messages))).unwrap();
    let input = body["input"].as_array().unwrap();
    assert_eq!((&input[1]["type"], &input[1]["encrypted_content"]), (&json!("reasoning"), &json!("gAAA")));
    assert_eq!((&input[2]["type"], &input[2]["call_id"]), (&json!("function_call"), &json!("call_1")));
    assert_eq!(input[3]["output"][0]["type"], "input_image");
}

/// Accounts that are not verified get no summaries, and a refusal of requests that ask for them.
#[tokio::test]
async fn openai_is_asked_without_summaries_when_it_refuses_them() {
    let refused = json!({"error": {
        "message": "Your organization must be verified to generate reasoning summaries. Please go to: settings.",
        "type": "invalid_request_error", "param": "reasoning.summary", "code": "unsupported_value"}});
    let server = ScriptServer::start([
        Reply::status(400).json(&refused),
        Reply::sse(responses_body()),
        Reply::status(400).json(&refused),
    ]);
    let p = provider(Wire::OpenaiResponses, &server.url());
    let first = ask(&p, hello()).await.error.unwrap();
    assert!(matches!(&first, ProviderError::Wait { after: Some(Duration::ZERO), .. }), "{first:?}");
    assert_eq!(ask(&p, hello()).await.error, None);
    let bodies = server.bodies();
    assert_eq!((&bodies[0]["reasoning"]["summary"], &bodies[1]["reasoning"]), (&json!("auto"), &Value::Null));
    assert_eq!(bodies[0]["input"], bodies[1]["input"]);
    let again = ask(&p, hello()).await.error.unwrap();
    assert!(matches!(again, ProviderError::Rejected(_)), "not for ever: {again:?}");
}

#[tokio::test]
async fn gemini_generate_content() {
    let body = lines(&[
        json!({"candidates": [{"content": {"parts": [{"text": "Hm.", "thought": true}], "role": "model"},
            "index": 0}], "usageMetadata": {"promptTokenCount": 40, "totalTokenCount": 45,
            "thoughtsTokenCount": 5}, "modelVersion": "m", "responseId": "r"}),
        json!({"candidates": [{"content": {"parts": [{"text": "I look."}], "role": "model"}, "index": 0}]}),
        json!({"candidates": [{"content": {"parts": [{"functionCall": {"id": "fn1", "name": "read_file",
            "args": {"path": "a"}}, "thoughtSignature": "CpQB"}], "role": "model"}, "finishReason": "STOP",
            "index": 0}], "usageMetadata": {"promptTokenCount": 40, "candidatesTokenCount": 7,
            "totalTokenCount": 52, "cachedContentTokenCount": 30, "thoughtsTokenCount": 5,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 40}]}}),
    ]);
    let server = ScriptServer::start([Reply::sse(body)]);
    let p = provider(Wire::Gemini, &server.url());
    let out = ask(&p, hello()).await;
    assert_eq!(out.error, None);
    let want = ["think Hm. false", "text I look.", "call fn1 read_file {\"path\":\"a\"}"];
    assert_eq!(kinds(&out.reply.blocks), want);
    assert_eq!(out.reply.stop, Some(StopReason::ToolUse));
    let usage =
        Usage { input: 10, output: 12, cache_read: 30, cache_write: 0, reasoning: 5, ..Usage::default() };
    assert_eq!(out.reply.usage, usage);
    // The signature is sent back on the part with which it arrived.
    let messages = vec![
        user("hello"),
        ChatMessage::Assistant { blocks: out.reply.blocks, model: ModelRef("p/model-1".into()) },
    ];
    let body: Value = serde_json::from_slice(&p.body(&request(messages))).unwrap();
    let parts = body["contents"][1]["parts"].as_array().unwrap();
    assert_eq!(parts.last().unwrap()["thoughtSignature"], "CpQB");
    assert_eq!(parts.last().unwrap()["functionCall"]["id"], "fn1");
}

fn google(message: &str, quotas: &[&str], delay: Option<&str>) -> Value {
    let violations: Vec<Value> = quotas
        .iter()
        .map(|q| json!({"quotaMetric": "generativelanguage.googleapis.com/requests", "quotaId": q}))
        .collect();
    let mut details = vec![
        json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": violations}),
        json!({"@type": "type.googleapis.com/google.rpc.Help", "links": []}),
    ];
    details
        .extend(delay.map(|d| json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": d})));
    json!({"error": {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details}})
}

/// Transient refusals are retried, others are reported, by the vendors' words and details.
#[tokio::test]
async fn refusals_in_the_vendors_words() {
    let anthropic = |kind: &str, text: &str| json!({"type": "error", "error": {"type": kind, "message": text}, "request_id": "req_1"});
    let openai = |kind: &str, code: &str, text: &str| json!({"error": {"message": text, "type": kind, "param": null, "code": code}});
    let quota = "You exceeded your current quota, please check your plan and billing details.";
    let minute = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier";
    let day = "GenerateRequestsPerDayPerProjectPerModel-FreeTier";
    let table = [
        (Wire::Anthropic, 529, anthropic("overloaded_error", "Overloaded"), "wait"),
        (Wire::Anthropic, 429, anthropic("rate_limit_error", "This would exceed your rate limit"), "wait"),
        (
            Wire::Anthropic,
            400,
            anthropic("invalid_request_error", "prompt is too long: 9 > 8 maximum"),
            "long",
        ),
        (Wire::Anthropic, 413, anthropic("request_too_large", "Request exceeds the maximum size"), "large"),
        (Wire::Anthropic, 401, anthropic("authentication_error", "invalid x-api-key"), "auth"),
        (
            Wire::Anthropic,
            400,
            anthropic("invalid_request_error", "Your credit balance is too low to access the API."),
            "rejected",
        ),
        (
            Wire::OpenaiResponses,
            429,
            openai(
                "tokens",
                "rate_limit_exceeded",
                "Rate limit reached on tokens per min (TPM). Try again in 1.2s.",
            ),
            "wait",
        ),
        (Wire::OpenaiResponses, 429, openai("insufficient_quota", "insufficient_quota", quota), "rejected"),
        (
            Wire::OpenaiChat,
            400,
            openai(
                "invalid_request_error",
                "context_length_exceeded",
                "Your input exceeds the context window.",
            ),
            "long",
        ),
        (
            Wire::OpenaiChat,
            404,
            openai("invalid_request_error", "model_not_found", "The model `x` does not exist."),
            "rejected",
        ),
        (Wire::Gemini, 429, google(quota, &[minute], Some("26s")), "wait 26"),
        (Wire::Gemini, 429, google(quota, &[minute], None), "wait"),
        (Wire::Gemini, 429, google(quota, &[minute, day], Some("26s")), "rejected"),
        (Wire::Gemini, 429, google(&format!("{quota}\n* limit: 0, model: x"), &[], Some("20s")), "rejected"),
        (
            Wire::Gemini,
            400,
            json!({"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.",
                "status": "INVALID_ARGUMENT"}}),
            "auth",
        ),
        (
            Wire::Gemini,
            503,
            json!({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}),
            "wait",
        ),
    ];
    for (wire, status, body, want) in table {
        let server = ScriptServer::start([Reply::status(status).json(&body)]);
        let error = ask(&provider(wire, &server.url()), hello()).await.error.unwrap();
        let class = match &error {
            ProviderError::Wait { after: Some(d), .. } => format!("wait {}", d.as_secs()),
            ProviderError::Wait { after: None, .. } => "wait".into(),
            ProviderError::TooLong(_) => "long".into(),
            ProviderError::TooLarge(_) => "large".into(),
            ProviderError::Auth(_) => "auth".into(),
            ProviderError::Rejected(_) => "rejected".into(),
            ProviderError::Network(_) => "network".into(),
            ProviderError::Unanswered(_) => "unanswered".into(),
        };
        assert_eq!(class, want, "{wire:?} {status} {body}: {error}");
    }
}
