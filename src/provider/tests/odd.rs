//! Rows P13 and P14: unusual replies never cause a next request that the vendor rejects, and an answer that is not a
//! stream is understood or reported.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod common;

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use common::{KEY, ask, entry, hello, provider, request, user, with_env};
use serde_json::{Value, json};
use tiller_protocol::{Block, ModelRef, Part, StopReason};
use tiller_provider::{ChatMessage, ProviderError};
use tiller_testkit::{Counts, Dice, Reply, Script, ScriptServer, Stop, Wire, strict};

const NAMES: &[&str] = &[
    "read_file",
    "functions.read_file",
    "",
    " ",
    "read file",
    "读文件",
    "../../etc/passwd",
    "read_file<|channel|>commentary",
    "9lives",
    "-x",
    "a\"b\\c\n",
    "\u{0}",
    "mcp__server__tool:0",
    "READ_FILE",
    "LONG",
];
const IDS: &[&str] =
    &["", "call_1", "call_1", "toolu_01", "functions.read_file:0", "a b", "ü", "\n", "LONG", "LONG2"];
const ARGUMENTS: &[&str] = &[
    "{}",
    "{\"path\":\"a\"}",
    "",
    " ",
    "[]",
    "null",
    "\"text\"",
    "7",
    "{\"a\":",
    "{\"a\":1}{\"b\":2}",
    "{ \"spaced\" : [1, 2.50, null] }",
    "{\"\":{\"\\u0000\":\"\\ud83d\\ude00\"}}",
];
const TEXTS: &[&str] =
    &["", " ", "\n\n", "I look.", "ends in a blank ", "<think>", "\u{feff}", "\u{0}", "😀"];

fn long(word: &str) -> String {
    match word {
        "LONG" => "x".repeat(300),
        "LONG2" => format!("{}y", "x".repeat(299)),
        word => word.to_owned(),
    }
}

/// The header of a PNG of this width, in base64.
fn png(width: u32) -> String {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(10_u32.to_be_bytes());
    bytes.extend([8, 2, 0, 0, 0]);
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn odd(dice: &mut Dice) -> Script {
    let mut script = Script::new().pieces_of(1 + dice.below(40));
    let parts = match dice.below(40) {
        0 => 140,
        1 => 0,
        n => n % 6,
    };
    for _ in 0..parts {
        script = match dice.below(if parts > 100 { 2 } else { 5 }) {
            0..=2 => script.call_raw(&long(dice.of(IDS)), &long(dice.of(NAMES)), dice.of(ARGUMENTS)),
            3 => script.text(dice.of(TEXTS)),
            _ => script.thinking(dice.of(TEXTS), dice.of(&["", "sig", "{\"type\":\"x\"}"])),
        };
    }
    let stop = match dice.below(8) {
        0 => Stop::MaxTokens,
        1 => Stop::Refusal,
        _ => Stop::Natural,
    };
    script.stop(stop).counts(Counts { input: 1, output: 1, ..Counts::default() })
}

/// Stores a reply as the engine does, and sometimes as a crash or an imported transcript leaves it.
fn keep(history: &mut Vec<ChatMessage>, blocks: Vec<Block>, dice: &mut Dice) {
    let calls: Vec<(String, String)> = blocks
        .iter()
        .filter_map(|b| if let Block::ToolCall(c) = b { Some((c.id.clone(), c.name.clone())) } else { None })
        .collect();
    let model = if dice.below(5) == 0 { "q/other" } else { "p/model-1" };
    history.push(ChatMessage::Assistant { blocks, model: ModelRef(model.into()) });
    let damage = dice.below(10);
    let mut results: Vec<ChatMessage> = calls
        .into_iter()
        .map(|(call_id, name)| {
            let mut content = vec![Part::Text { text: dice.of(TEXTS).into() }];
            if dice.below(9) == 0 {
                let media_type = dice.of(&["image/png", "image/bmp", "image/svg+xml", ""]).into();
                let data = match dice.below(4) {
                    0 => String::new(),
                    1 => "aWNvbg==".into(),
                    _ => png([10, 2400, 9000][dice.below(3)]),
                };
                content.push(Part::Image { media_type, data });
            }
            ChatMessage::ToolResult { call_id, name, ok: dice.below(2) == 0, content }
        })
        .collect();
    match damage {
        0 => drop(results.pop()),
        1 => results.reverse(),
        2 => results.extend(results.first().cloned()),
        3 => results.clear(),
        _ => {}
    }
    history.append(&mut results);
    if dice.below(3) > 0 {
        history.push(user(dice.of(&["go on", "", " ", "x"])));
    }
}

/// Sends `n` requests, each with the unusual replies before it. Returns what the server rejected.
async fn drive(wire: Wire, n: usize, seed: u64) -> Vec<String> {
    let refused = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&refused);
    let mut replies = Dice(seed);
    let server = ScriptServer::with(move |request, _| match strict::refusal(wire, &request.json()) {
        Some(why) => {
            seen.lock().unwrap().push(why.clone());
            Reply::status(400).json(&json!({"error": {"type": "invalid_request_error", "message": why}}))
        }
        None => Reply::script(wire, &odd(&mut replies)),
    });
    let p = provider(wire, &server.url());
    let mut dice = Dice(seed ^ 0xabcd);
    let mut history = Vec::new();
    for k in 0..n {
        if k % 15 == 0 {
            history = vec![user("look")];
            if dice.below(6) == 0 {
                history.clear();
            }
        }
        let out = ask(&p, request(history.clone())).await;
        keep(&mut history, out.reply.blocks, &mut dice);
    }
    drop(server);
    std::mem::take(&mut *refused.lock().unwrap())
}

async fn none_wedged(wire: Wire, n: usize) {
    // Other replies on each wire.
    let seed = 0x9e37_79b9_7f4a_7c15_u64.rotate_left(wire as u32);
    let refused = drive(wire, n, seed).await;
    assert!(refused.is_empty(), "{wire:?}: {} of {n} refused, first: {}", refused.len(), refused[0]);
}

/// The 10,000 unusual replies of P13, a quarter on each wire.
const QUARTER: usize = 2_500;

#[tokio::test]
async fn p13_odd_replies_never_wedge_a_session_of_anthropic() {
    none_wedged(Wire::Anthropic, QUARTER).await;
}

#[tokio::test]
async fn p13_odd_replies_never_wedge_a_session_of_chat() {
    none_wedged(Wire::OpenaiChat, QUARTER).await;
}

#[tokio::test]
async fn p13_odd_replies_never_wedge_a_session_of_responses() {
    none_wedged(Wire::OpenaiResponses, QUARTER).await;
}

#[tokio::test]
async fn p13_odd_replies_never_wedge_a_session_of_gemini() {
    none_wedged(Wire::Gemini, QUARTER).await;
}

#[tokio::test]
#[ignore = "a minute: the whole of P13, 10,000 odd replies on each wire"]
async fn p13_whole_ten_thousand_odd_replies_on_each_wire() {
    for wire in Wire::ALL {
        none_wedged(wire, 10_000).await;
    }
}

/// A session that was stored before names were mapped, and that every vendor rejected since.
#[tokio::test]
async fn p13_a_session_that_was_wedged_is_freed() {
    let call = |id: &str, name: &str, arguments| {
        Block::ToolCall(tiller_protocol::ToolCall {
            id: id.into(),
            name: name.into(),
            arguments,
            malformed: None,
            vendor: None,
        })
    };
    let result = |id: &str, name: &str| ChatMessage::ToolResult {
        call_id: id.into(),
        name: name.into(),
        ok: false,
        content: vec![Part::Text { text: "There is no such tool.".into() }],
    };
    for wire in Wire::ALL {
        for name in ["functions.read_file", "", " ", "读", &"n".repeat(300)] {
            let stored = vec![
                user("look"),
                ChatMessage::Assistant {
                    blocks: vec![call("c1", name, json!({})), call("c1", name, json!([1]))],
                    model: ModelRef("p/model-1".into()),
                },
                result("c1", "read_file"),
                result("c1", name),
                ChatMessage::Assistant {
                    blocks: vec![Block::Text { text: "Half a rep".into() }],
                    model: ModelRef("p/model-1".into()),
                },
            ];
            let body = provider(wire, "http://127.0.0.1:9").body(&request(stored));
            let body = serde_json::from_slice(&body).unwrap();
            assert_eq!(strict::refusal(wire, &body), None, "{wire:?} {name:?} {body}");
        }
    }
}

/// The strict server of these tests must reject invalid requests.
#[test]
fn the_strict_server_refuses_what_vendors_refuse() {
    let names = |name: &str| {
        let call = json!({"type": "tool_use", "id": "a", "name": name, "input": {}});
        json!({"model": "m", "max_tokens": 10, "messages": [
            {"role": "user", "content": [{"type": "text", "text": "x"}]},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}]})
    };
    assert_eq!(strict::refusal(Wire::Anthropic, &names("read_file")), None);
    for name in ["functions.read_file", "", " ", "读"] {
        assert!(strict::refusal(Wire::Anthropic, &names(name)).is_some(), "{name}");
    }
    let chat = |id: &str, arguments: &str| {
        json!({"messages": [{"role": "user", "content": "x"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function",
                "function": {"name": "t", "arguments": arguments}}]},
            {"role": "tool", "tool_call_id": id, "content": "r"}]})
    };
    assert_eq!(strict::refusal(Wire::OpenaiChat, &chat("a", "{}")), None);
    assert!(strict::refusal(Wire::OpenaiChat, &chat(&"a".repeat(41), "{}")).is_some());
    assert!(strict::refusal(Wire::OpenaiChat, &chat("a", "[]")).is_some());
    let left = json!({"input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
        {"type": "reasoning", "id": "rs_1"}, {"type": "reasoning", "id": "rs_2"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "y"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}]});
    assert!(strict::refusal(Wire::OpenaiResponses, &left).unwrap().contains("required following item"));
    let gemini = json!({"contents": [{"role": "user", "parts": [{"text": "x"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "t", "args": {}}}]},
        {"role": "user", "parts": [{"text": "no response"}]}]});
    assert!(strict::refusal(Wire::Gemini, &gemini).is_some());
}

/// A complete reply as the vendor sends it to requests without streaming.
fn whole(wire: Wire) -> Value {
    match wire {
        Wire::Anthropic => json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "a"}}],
            "stop_reason": "tool_use", "stop_sequence": null, "usage": {"input_tokens": 7, "output_tokens": 3}}),
        Wire::OpenaiChat => json!({"id": "x", "object": "chat.completion", "choices": [{"index": 0,
            "message": {"role": "assistant", "content": "I look.", "reasoning_content": "Hm.", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"a\"}"}}]},
            "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}),
        Wire::OpenaiResponses => {
            json!({"id": "resp_1", "object": "response", "status": "completed", "error": null,
            "incomplete_details": null, "output": [
                {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}],
                    "encrypted_content": "e"},
                {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": "I look.", "annotations": []}]},
                {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read_file",
                    "arguments": "{\"path\":\"a\"}", "status": "completed"}],
            "usage": {"input_tokens": 7, "output_tokens": 3}})
        }
        Wire::Gemini => json!([
            {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hm.", "thought": true}]}}]},
            {"candidates": [{"content": {"role": "model", "parts": [{"text": "I look."},
                {"functionCall": {"id": "c1", "name": "read_file", "args": {"path": "a"}}}]}, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3}}]),
    }
}

#[tokio::test]
async fn p14_a_json_answer_to_a_streaming_request_is_a_reply() {
    for wire in Wire::ALL {
        let body = whole(wire).to_string();
        // Under every content type, and in pieces.
        for kind in ["application/json", "application/json; charset=utf-8", "text/event-stream", "text/plain"]
        {
            let reply =
                Reply::status(200).header("content-type", kind).bytes(format!("\n {body}\n")).dribble(9, 0);
            let server = ScriptServer::start([reply]);
            let out = ask(&provider(wire, &server.url()), hello()).await;
            assert_eq!(out.error, None, "{wire:?} {kind}");
            assert_eq!(out.text(), "I look.", "{wire:?} {kind}");
            assert!(
                matches!(&out.reply.blocks[0], Block::Thinking { text, .. } if text == "Hm."),
                "{wire:?} {:?}",
                out.reply.blocks
            );
            let calls: Vec<String> =
                out.reply.calls().map(|c| format!("{} {} {}", c.id, c.name, c.arguments)).collect();
            assert_eq!(calls, ["c1 read_file {\"path\":\"a\"}"], "{wire:?}");
            assert_eq!(out.reply.stop, Some(StopReason::ToolUse), "{wire:?}");
            assert_eq!((out.reply.usage.input, out.reply.usage.output), (7, 3), "{wire:?}");
        }
    }
}

/// A document is complete: each call of its list is one, and no end event is needed.
#[tokio::test]
async fn p14_a_json_answer_is_whole_without_identifiers_and_reasons() {
    let body = json!({"object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": null,
        "tool_calls": [
            {"type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"a\"}"}},
            {"type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"b\"}"}}]},
        "finish_reason": null}]});
    let server = ScriptServer::start([Reply::status(200).json(&body)]);
    let out = ask(&provider(Wire::OpenaiChat, &server.url()), hello()).await;
    assert_eq!((out.error, out.reply.stop.clone()), (None, Some(StopReason::ToolUse)));
    let paths: Vec<&Value> = out.reply.calls().map(|c| &c.arguments["path"]).collect();
    assert_eq!(paths, ["a", "b"]);
    for (wire, body) in [
        (Wire::OpenaiChat, json!({"choices": [{"message": {"content": "whole"}}]})),
        (
            Wire::Anthropic,
            json!({"type": "message", "content": [{"type": "text", "text": "whole"}], "stop_reason": null}),
        ),
    ] {
        let server = ScriptServer::start([Reply::status(200).json(&body)]);
        let out = ask(&provider(wire, &server.url()), hello()).await;
        assert_eq!((out.error.clone(), out.text().as_str()), (None, "whole"), "{wire:?}");
    }
}

#[tokio::test]
async fn p14_what_is_no_reply_is_named_and_not_tried_again() {
    let page = "<!DOCTYPE html>\n<html><head><title>Sign in to\n Example</title></head><body>x</body></html>";
    let table = [
        ("text/html", page.to_owned(), "web page (\"Sign in to  Example\")"),
        ("text/event-stream", page.to_owned(), "web page"),
        ("text/html", format!("<html>{}", "x".repeat(100_000)), "web page"),
        (
            "application/json",
            "{\"detail\": \"Not Found\"}".to_owned(),
            "not a model reply: {\"detail\": \"Not Found\"}",
        ),
        ("application/json", "{\"a\" 1}".to_owned(), "not a model reply"),
        ("application/json", "[]".to_owned(), "not a model reply"),
        ("text/plain", "upstream is asleep".to_owned(), "not a model reply: upstream is asleep"),
        ("text/plain", format!("your key {KEY}"), "your key [key]"),
        (
            "application/json",
            json!({"error": {"message": "model not loaded", "type": "invalid_request_error"}}).to_string(),
            "model not loaded",
        ),
    ];
    for wire in Wire::ALL {
        for (kind, body, want) in &table {
            let reply = Reply::status(200).header("content-type", kind).bytes(body.clone());
            let server = ScriptServer::start([reply]);
            let out = ask(&provider(wire, &server.url()), hello()).await;
            assert!(
                matches!(&out.error, Some(ProviderError::Rejected(_))),
                "{wire:?} {body:.60} {:?}",
                out.error
            );
            assert!(out.message().contains(want), "{wire:?} {}", out.message());
        }
        // The same page with a status that usually means a refused key.
        let reply = Reply::status(403).header("content-type", "text/html").bytes(page);
        let server = ScriptServer::start([reply]);
        let out = ask(&provider(wire, &server.url()), hello()).await;
        assert!(matches!(&out.error, Some(ProviderError::Rejected(_))), "{wire:?} {:?}", out.error);
        assert!(out.message().contains("web page (\"Sign in to  Example\") (403)"), "{}", out.message());
        // Cut in the middle: transient.
        let reply =
            Reply::status(200).json(&whole(wire)).framing(tiller_testkit::Framing::UntilClose).cut_at(80);
        let server = ScriptServer::start([reply]);
        let out = ask(&provider(wire, &server.url()), hello()).await;
        assert!(matches!(&out.error, Some(ProviderError::Network(_))), "{wire:?} {:?}", out.error);
    }
}

#[tokio::test]
async fn p14_the_output_limit_inside_of_an_open_block_is_a_cut_reply() {
    let begin =
        |k: u64, block: Value| json!({"type": "content_block_start", "index": k, "content_block": block});
    let delta = |k: u64, delta: Value| json!({"type": "content_block_delta", "index": k, "delta": delta});
    let text = vec![
        begin(0, json!({"type": "text", "text": ""})),
        delta(0, json!({"type": "text_delta", "text": "half a wo"})),
    ];
    let call = vec![
        begin(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        begin(1, json!({"type": "tool_use", "id": "c", "name": "read_file", "input": {}})),
        delta(1, json!({"type": "input_json_delta", "partial_json": "{\"path\": \"a"})),
    ];
    for (mut events, dropped) in [(text, &[][..]), (call, &["read_file"][..])] {
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 9}}));
        for end in [true, false] {
            let mut events = events.clone();
            if end {
                events.push(json!({"type": "message_stop"}));
            }
            let body: String = events.iter().map(|e| tiller_testkit::sse("", e)).collect();
            let server = ScriptServer::start([Reply::sse(body)]);
            let out = ask(&provider(Wire::Anthropic, &server.url()), hello()).await;
            assert_eq!(out.error, None, "{end}");
            assert_eq!(out.reply.stop, Some(StopReason::MaxTokens));
            assert_eq!(out.reply.dropped, dropped);
            assert_eq!((out.reply.calls().count(), out.reply.usage.output), (0, 9));
        }
    }
    // Text left open by a stream that ends with a reason.
    let events = [
        begin(0, json!({"type": "text", "text": ""})),
        delta(0, json!({"type": "text_delta", "text": "all of it"})),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
    ];
    let body: String = events.iter().map(|e| tiller_testkit::sse("", e)).collect();
    let server = ScriptServer::start([Reply::sse(body)]);
    let out = ask(&provider(Wire::Anthropic, &server.url()), hello()).await;
    assert_eq!((out.error.clone(), out.text().as_str()), (None, "all of it"));
    // A server that ends its reply without ending its blocks.
    let events = [
        begin(0, json!({"type": "tool_use", "id": "c", "name": "read_file", "input": {}})),
        delta(0, json!({"type": "input_json_delta", "partial_json": "{\"path\": \"a\"}"})),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        json!({"type": "message_stop"}),
    ];
    let body: String = events.iter().map(|e| tiller_testkit::sse("", e)).collect();
    let server = ScriptServer::start([Reply::sse(body)]);
    let out = ask(&provider(Wire::Anthropic, &server.url()), hello()).await;
    assert_eq!((out.error, out.reply.calls().count()), (None, 1));
}

/// Answers each connection with these bytes.
fn raw_server(answer: &'static str) -> String {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://user:secretword@{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

#[tokio::test]
async fn p12_a_proxys_407_is_named_as_the_proxys() {
    let proxy = raw_server(
        "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    );
    for url in ["https://api.example.invalid", "http://api.example.invalid"] {
        let of = proxy.clone();
        let env = move |name: &str| matches!(name, "HTTPS_PROXY" | "http_proxy").then(|| of.clone());
        let out = ask(&with_env(entry(Wire::Anthropic, url), &env), hello()).await;
        let Some(ProviderError::Rejected(text)) = &out.error else { panic!("{url} {:?}", out.error) };
        assert!(text.contains("the proxy 127.0.0.1:") && text.contains("(407)"), "{text}");
        assert!(!text.contains("secretword"), "{text}");
    }
}

#[tokio::test]
async fn p3_thoughts_of_chat_servers_are_no_text() {
    let script = Script::new().text("<think>\nI look.\n</think>\n\nUse `<think>` so.").pieces_of(3);
    let server = ScriptServer::start([
        Reply::script(Wire::OpenaiChat, &script),
        Reply::script(Wire::OpenaiChat, &Script::new().text("<thinking>never closed").pieces_of(4)),
        Reply::script(Wire::OpenaiChat, &Script::new().text("I look.\n</think>\n\nHello.").pieces_of(2)),
    ]);
    let p = provider(Wire::OpenaiChat, &server.url());
    let shape = |blocks: &[Block]| -> Vec<String> {
        blocks
            .iter()
            .map(|b| match b {
                Block::Thinking { text, signature: None } => format!("thought {text}"),
                Block::Text { text } => format!("text {text}"),
                other => panic!("{other:?}"),
            })
            .collect()
    };
    let one = ask(&p, hello()).await;
    assert_eq!(shape(&one.reply.blocks), ["thought I look.", "text Use `<think>` so."]);
    assert_eq!(shape(&ask(&p, hello()).await.reply.blocks), ["thought never closed"]);
    assert_eq!(shape(&ask(&p, hello()).await.reply.blocks), ["thought I look.\n", "text Hello."]);
    // They are not sent back.
    let history = vec![
        user("x"),
        ChatMessage::Assistant { blocks: one.reply.blocks, model: ModelRef("p/model-1".into()) },
        user("y"),
    ];
    let body = String::from_utf8(p.body(&request(history))).unwrap();
    assert!(!body.contains("I look") && body.contains("Use `<think>` so."), "{body}");
}

/// One refusal of thoughts or of an effort does not end the session.
#[tokio::test]
async fn p13_thoughts_that_a_server_refuses_are_left_out() {
    let words = [
        (
            Wire::Anthropic,
            "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
        ),
        (Wire::OpenaiResponses, "The encrypted content for item rs_0 could not be verified."),
    ];
    for (wire, said) in words {
        let server = ScriptServer::start([
            Reply::script(wire, &Script::new().thinking("Hm.", "sig-1").text("a")),
            Reply::status(400).json(&json!({"error": {"type": "invalid_request_error", "message": said}})),
            Reply::script(wire, &Script::new().text("b")),
        ]);
        let p = provider(wire, &server.url());
        let first = ask(&p, hello()).await;
        let history = vec![
            user("x"),
            ChatMessage::Assistant { blocks: first.reply.blocks, model: ModelRef("p/model-1".into()) },
            user("y"),
        ];
        let out = ask(&p, request(history.clone())).await;
        assert!(matches!(&out.error, Some(ProviderError::Wait { .. })), "{wire:?} {:?}", out.error);
        assert_eq!(ask(&p, request(history)).await.text(), "b");
        let bodies = server.bodies();
        assert!(
            bodies[1].to_string().contains("sig-1") && !bodies[2].to_string().contains("sig-1"),
            "{wire:?}"
        );
    }
}

/// The images of a whole conversation count together, and an image that the server cannot read does not end a session.
#[tokio::test]
async fn p13_images_do_not_wedge_a_session() {
    let image = |data: String| Part::Image { media_type: "image/png".into(), data };
    let shots: Vec<ChatMessage> = (0..25)
        .flat_map(|n| {
            let shot = ChatMessage::User { content: vec![image(png(2400))] };
            let said = vec![Block::Text { text: format!("seen {n}") }];
            [shot, ChatMessage::Assistant { blocks: said, model: ModelRef("p/model-1".into()) }]
        })
        .chain([ChatMessage::User { content: vec![image(png(9000)), image(png(10))] }])
        .collect();
    for wire in Wire::ALL {
        let body = provider(wire, "http://127.0.0.1:9").body(&request(shots.clone()));
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(strict::refusal(wire, &body), None, "{wire:?}");
        assert!(body.to_string().contains(&png(10)), "the newest goes out");
    }
    let words = [
        (Wire::Anthropic, "messages.0.content.1.image.source.base64.data: Could not process image"),
        (Wire::OpenaiChat, "You uploaded an unsupported image. Please make sure your image is valid."),
        (Wire::OpenaiResponses, "The image data you provided does not represent a valid image."),
        (Wire::Gemini, "Unable to process input image. Please retry or report."),
    ];
    for (wire, said) in words {
        let server = ScriptServer::start([
            Reply::status(400).json(&json!({"error": {"type": "invalid_request_error", "message": said}})),
            Reply::script(wire, &Script::new().text("b")),
            Reply::script(wire, &Script::new().text("c")),
            Reply::status(400).json(&json!({"error": {"type": "invalid_request_error", "message": said}})),
            Reply::status(400).json(&json!({"error": {"type": "invalid_request_error", "message": said}})),
        ]);
        let p = provider(wire, &server.url());
        let mut history = vec![ChatMessage::User { content: vec![image(png(11))] }];
        let out = ask(&p, request(history.clone())).await;
        assert!(matches!(&out.error, Some(ProviderError::Wait { .. })), "{wire:?} {:?}", out.error);
        assert_eq!(ask(&p, request(history.clone())).await.text(), "b", "{wire:?}");
        // A later image is sent.
        history.push(ChatMessage::User { content: vec![image(png(12))] });
        assert_eq!(ask(&p, request(history.clone())).await.text(), "c", "{wire:?}");
        let bodies: Vec<String> = server.bodies().iter().map(Value::to_string).collect();
        assert!(bodies[0].contains(&png(11)) && !bodies[1].contains(&png(11)), "{wire:?}");
        assert!(!bodies[2].contains(&png(11)) && bodies[2].contains(&png(12)), "{wire:?}");
        // A server that keeps refusing is reported.
        assert!(matches!(&ask(&p, request(history.clone())).await.error, Some(ProviderError::Wait { .. })));
        let out = ask(&p, request(history)).await;
        assert!(matches!(&out.error, Some(ProviderError::Rejected(_))), "{wire:?} {:?}", out.error);
    }
}

/// A block of an unknown kind is sent back unchanged, to a proxy that rejects its own blocks.
#[tokio::test]
async fn p13_unknown_blocks_that_a_server_refuses_are_left_out() {
    let words = [
        (
            Wire::Anthropic,
            "messages.1.content.0: Input tag 'novel_block' found using 'type' does not match any of the expected tags",
        ),
        (
            Wire::OpenaiResponses,
            "Item with id 'x_1' not found. Items are not persisted when `store` is set to false.",
        ),
    ];
    for (wire, said) in words {
        let server = ScriptServer::start([
            Reply::status(400).json(&json!({"error": {"type": "invalid_request_error", "message": said}})),
            Reply::script(wire, &Script::new().text("b")),
        ]);
        let p = provider(wire, &server.url());
        let raw = json!({"type": "novel_block", "id": "x_1"});
        let blocks = vec![Block::Unknown { provider: "p".into(), raw }, Block::Text { text: "a".into() }];
        let model = ModelRef("p/model-1".into());
        let history = vec![user("x"), ChatMessage::Assistant { blocks, model }, user("y")];
        let out = ask(&p, request(history.clone())).await;
        assert!(matches!(&out.error, Some(ProviderError::Wait { .. })), "{wire:?} {:?}", out.error);
        assert_eq!(ask(&p, request(history)).await.text(), "b");
        let bodies: Vec<String> = server.bodies().iter().map(Value::to_string).collect();
        assert!(bodies[0].contains("novel_block") && !bodies[1].contains("novel_block"), "{wire:?}");
    }
}

/// A server with an unsigned certificate. Its key stands in the repository and protects nothing.
fn unsigned_server() -> (String, Arc<Mutex<usize>>) {
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
    tiller_http::install_crypto();
    let cert = CertificateDer::from(include_bytes!("fixtures/self_signed_cert.der").to_vec());
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(
        include_bytes!("fixtures/self_signed_key.der").to_vec(),
    ));
    let config =
        rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(vec![cert], key).unwrap();
    let config = Arc::new(config);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}", listener.local_addr().unwrap());
    let count = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            *counted.lock().unwrap() += 1;
            let mut tls = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            while tls.is_handshaking() && tls.complete_io(&mut stream).is_ok() {}
        }
    });
    (address, count)
}

#[tokio::test]
async fn p12_a_certificate_that_is_refused_is_told_at_once() {
    let (url, count) = unsigned_server();
    let out = ask(&provider(Wire::Anthropic, &url), hello()).await;
    let Some(ProviderError::Rejected(text)) = &out.error else { panic!("{:?}", out.error) };
    assert!(text.contains("its certificate was not accepted") && text.contains("SSL_CERT_FILE"), "{text}");
    assert_eq!(*count.lock().unwrap(), 1);
}

#[tokio::test]
async fn an_effort_that_a_model_refuses_is_left_out() {
    let refused = |text: &str| Reply::status(400).json(&json!({"error": {"message": text}}));
    let server = ScriptServer::start([
        refused("Unsupported value: 'high' is not supported with this model. (reasoning_effort)"),
        refused("Function tools with reasoning_effort are not supported. Set reasoning_effort to 'none'."),
        Reply::script(Wire::OpenaiChat, &Script::new().text("ok")),
    ]);
    let p = provider(Wire::OpenaiChat, &server.url());
    let mut r = hello();
    r.effort = tiller_provider::Effort::High;
    for _ in 0..2 {
        let out = ask(&p, r.clone()).await;
        assert!(
            matches!(&out.error, Some(ProviderError::Wait { after: Some(wait), .. }) if wait.is_zero()),
            "{:?}",
            out.error
        );
    }
    assert_eq!(ask(&p, r).await.text(), "ok");
    let told: Vec<Value> = server.bodies().iter().map(|b| b["reasoning_effort"].clone()).collect();
    assert_eq!(told, [json!("high"), Value::Null, json!("none")]);
}
