//! Row P17: what named servers do differently. Each row is the raw behaviour of one, and the session goes on with the same result.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod common;

use common::{Outcome, ask, hello, provider};
use serde_json::{Value, json};
use tiller_protocol::StopReason;
use tiller_provider::ProviderError;
use tiller_testkit::{Framing, Reply, ScriptServer, Wire};

fn calls(out: &Outcome) -> Vec<String> {
    out.reply
        .calls()
        .map(|c| format!("{} {}", c.name, c.malformed.clone().unwrap_or(c.arguments.to_string())))
        .collect()
}

const A: &str = r#"read_file {"path":"a"}"#;
const B: &str = r#"read_file {"path":"b"}"#;
const LIST: &str = "list_dir {}";

/// An event of Chat Completions with these pieces of calls.
fn pieces(calls: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": null}]})
}

/// One piece: its index, id, name and arguments; null leaves a field out.
fn piece(index: Value, id: Value, name: Value, arguments: Value) -> Value {
    let mut function = json!({"name": name, "arguments": arguments});
    let mut call = json!({"index": index, "id": id, "type": "function"});
    function.as_object_mut().unwrap().retain(|_, v| !v.is_null());
    call.as_object_mut().unwrap().retain(|_, v| !v.is_null());
    call["function"] = function;
    pieces(json!([call]))
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn events(all: &[Value]) -> String {
    all.iter().map(|e| format!("data: {e}\n\n")).collect()
}

/// The behaviours of servers of Chat Completions: who, the events, and the calls that are meant.
fn chat_streams() -> Vec<(&'static str, Vec<Value>, Vec<&'static str>)> {
    let none = || Value::Null;
    let whole = r#"{"path":"a"}"#;
    let other = r#"{"path":"b"}"#;
    let end = || finish("tool_calls");
    vec![
        (
            "vLLM: an id of its own with each piece",
            vec![
                piece(json!(0), json!("chatcmpl-tool-1"), json!("read_file"), json!("{\"pa")),
                piece(json!(0), json!("chatcmpl-tool-2"), none(), json!("th\":\"a\"}")),
                end(),
            ],
            vec![A],
        ),
        (
            "SGLang: a new id and the name with each piece",
            vec![
                piece(json!(0), json!("call_1"), json!("read_file"), json!("{\"path\"")),
                piece(json!(0), json!("call_2"), json!("read_file"), json!(":\"a\"}")),
                end(),
            ],
            vec![A],
        ),
        (
            "Ollama: all calls at index 0, with ids",
            vec![
                piece(json!(0), json!("call_1"), json!("read_file"), json!(whole)),
                piece(json!(0), json!("call_2"), json!("read_file"), json!(other)),
                end(),
            ],
            vec![A, B],
        ),
        (
            "Ollama: the same without ids",
            vec![
                piece(json!(0), none(), json!("read_file"), json!(whole)),
                piece(json!(0), none(), json!("read_file"), json!(other)),
                end(),
            ],
            vec![A, B],
        ),
        (
            "Gemini-compatible: no index, no ids, in one piece",
            vec![
                pieces(json!([{"function": {"name": "read_file", "arguments": whole}},
                {"function": {"name": "list_dir", "arguments": "{}"}}])),
                finish("stop"),
            ],
            vec![A, LIST],
        ),
        (
            "Gemini-compatible: no index, ids",
            vec![
                piece(none(), json!("a1"), json!("read_file"), json!(whole)),
                piece(none(), json!("a2"), json!("read_file"), json!(other)),
                finish("stop"),
            ],
            vec![A, B],
        ),
        (
            "LM Studio: name first, arguments later, one index for all",
            vec![
                piece(json!(0), none(), json!("read_file"), json!("")),
                piece(json!(0), none(), none(), json!("{\"path\":\"a\"}")),
                piece(json!(0), none(), json!("read_file"), json!("")),
                piece(json!(0), none(), none(), json!("{\"path\":")),
                piece(json!(0), none(), none(), json!("\"b\"}")),
                end(),
            ],
            vec![A, B],
        ),
        (
            "TGI: the name with each piece, no id",
            vec![
                piece(json!(0), none(), json!("read_file"), json!("{\"path\":")),
                piece(json!(0), none(), json!("read_file"), json!("\"a\"}")),
                end(),
            ],
            vec![A],
        ),
        (
            "TGI: the name once more at the end",
            vec![
                piece(json!(0), none(), json!("read_file"), json!(whole)),
                piece(json!(0), none(), json!("read_file"), json!("")),
                end(),
            ],
            vec![A],
        ),
        (
            "DashScope: empty names and ids in later pieces",
            vec![
                piece(json!(0), json!("call_1"), json!("read_file"), json!("{\"path\"")),
                piece(json!(0), json!(""), json!(""), json!(":\"a\"}")),
                end(),
            ],
            vec![A],
        ),
        (
            "Qwen: an empty object before the arguments",
            vec![
                piece(json!(0), json!("call_1"), json!("read_file"), json!("{}")),
                piece(json!(0), none(), none(), json!(whole)),
                end(),
            ],
            vec![A],
        ),
        (
            "Qwen: an empty object with the name, then the name again",
            vec![
                piece(json!(0), none(), json!("read_file"), json!("{}")),
                piece(json!(0), none(), json!("read_file"), json!(whole)),
                end(),
            ],
            vec![A],
        ),
        (
            "Copilot: the whole object once more at the end",
            vec![
                piece(json!(0), json!("c1"), json!("read_file"), json!("{\"path\":")),
                piece(json!(0), none(), none(), json!("\"a\"}")),
                piece(json!(0), json!("c1"), json!("read_file"), json!(whole)),
                end(),
            ],
            vec![A],
        ),
        (
            "z.ai: each piece has all that there was",
            vec![
                piece(json!(0), json!("c1"), json!("read_file"), json!("{\"pa")),
                piece(json!(0), json!("c1"), json!("read_file"), json!("{\"path\":")),
                piece(json!(0), json!("c1"), json!("read_file"), json!(whole)),
                end(),
            ],
            vec![A],
        ),
        (
            "LM Studio, growing copies: several calls at one index, no ids",
            vec![
                piece(json!(0), none(), json!("read_file"), json!("{\"pa")),
                piece(json!(0), none(), json!("read_file"), json!("{\"path\":")),
                piece(json!(0), none(), json!("read_file"), json!(whole)),
                piece(json!(0), none(), json!("read_file"), json!("{\"pa")),
                piece(json!(0), none(), json!("read_file"), json!(other)),
                end(),
            ],
            vec![A, B],
        ),
        (
            "the same, each cut where an object could begin",
            vec![
                piece(json!(0), none(), json!("read_file"), json!("{\"path\":")),
                piece(json!(0), none(), json!("read_file"), json!(whole)),
                piece(json!(0), none(), json!("read_file"), json!("{\"path\":\"")),
                piece(json!(0), none(), json!("read_file"), json!(other)),
                piece(json!(0), none(), json!("read_file"), json!(other)),
                end(),
            ],
            vec![A, B],
        ),
        (
            "the same, the name with the first piece of each alone",
            vec![
                piece(json!(0), none(), json!("read_file"), json!("{")),
                piece(json!(0), none(), none(), json!("{\"path\"")),
                piece(json!(0), none(), none(), json!(whole)),
                piece(json!(0), none(), json!("read_file"), json!("{\"pa")),
                piece(json!(0), none(), none(), json!(other)),
                end(),
            ],
            vec![A, B],
        ),
        (
            "the same, then another tool",
            vec![
                piece(json!(0), none(), json!("read_file"), json!("{\"pa")),
                piece(json!(0), none(), json!("read_file"), json!(whole)),
                piece(json!(0), none(), json!("list_dir"), json!("{}")),
                end(),
            ],
            vec![A, LIST],
        ),
        (
            "copies whose first one was cut may be a nested object that was cut: not guessed",
            vec![
                piece(json!(0), none(), json!("read_file"), json!("{\"path\":")),
                piece(json!(0), none(), json!("read_file"), json!(whole)),
                end(),
            ],
            vec![r#"read_file {"path":{"path":"a"}"#],
        ),
        (
            "a nested object in pieces that look like copies is one call",
            vec![
                piece(json!(0), none(), json!("read_file"), json!("{\"path\":")),
                piece(json!(0), none(), json!("read_file"), json!("{\"path\":\"a\"}")),
                piece(json!(0), none(), json!("read_file"), json!("}")),
                end(),
            ],
            vec![r#"read_file {"path":{"path":"a"}}"#],
        ),
        (
            "DeepSeek: arguments encoded twice",
            vec![piece(json!(0), json!("c1"), json!("read_file"), json!(json!(whole).to_string())), end()],
            vec![A],
        ),
        (
            "LiteLLM: arguments encoded twice, in pieces",
            vec![
                piece(json!(0), json!("c1"), json!("read_file"), json!("\"{\\\"path\\\"")),
                piece(json!(0), none(), none(), json!(":\\\"a\\\"}\"")),
                end(),
            ],
            vec![A],
        ),
        (
            "llama.cpp: arguments as an object",
            vec![piece(json!(0), json!("c1"), json!("read_file"), json!({"path": "a"})), end()],
            vec![A],
        ),
        (
            "llama.cpp: an end mark of the template behind them",
            vec![
                piece(json!(0), json!("c1"), json!("read_file"), json!("{\"path\":\"a\"}</tool_call>")),
                end(),
            ],
            vec![A],
        ),
        (
            "Kimi: arguments in a fence",
            vec![
                piece(
                    json!(0),
                    json!("functions.read_file:0"),
                    json!("read_file"),
                    json!("```json\n{\"path\":\"a\"}\n```"),
                ),
                end(),
            ],
            vec![A],
        ),
        (
            "Mistral: the whole call in one piece, stop as the reason",
            vec![piece(none(), json!("abcdefghi"), json!("read_file"), json!(whole)), finish("stop")],
            vec![A],
        ),
        (
            "Groq: arguments null, no arguments",
            vec![piece(json!(0), json!("c1"), json!("list_dir"), none()), end()],
            vec![LIST],
        ),
        (
            "Cerebras: arguments as the text null",
            vec![
                pieces(json!([{"index": 0, "id": "c1", "function": {"name": "list_dir", "arguments": ""}}])),
                end(),
            ],
            vec![LIST],
        ),
        (
            "Fireworks: the name after the id",
            vec![
                piece(json!(0), json!("c1"), none(), none()),
                piece(json!(0), none(), json!("read_file"), json!("")),
                piece(json!(0), none(), none(), json!(whole)),
                end(),
            ],
            vec![A],
        ),
        (
            "Together: a number as index in a text",
            vec![
                piece(json!("0"), json!("c1"), json!("read_file"), json!(whole)),
                piece(json!("1"), json!("c2"), json!("read_file"), json!(other)),
                end(),
            ],
            vec![A, B],
        ),
        (
            "Azure: an event without choices first",
            vec![
                json!({"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}),
                piece(json!(0), json!("c1"), json!("read_file"), json!(whole)),
                end(),
            ],
            vec![A],
        ),
        (
            "Bedrock gateway: a call that is no list",
            vec![
                pieces(
                    json!({"index": 0, "id": "c1", "function": {"name": "read_file", "arguments": whole}}),
                ),
                end(),
            ],
            vec![A],
        ),
        (
            "older servers: function_call",
            vec![
                json!({"choices": [{"delta": {"function_call": {"name": "read_file", "arguments": ""}}}]}),
                json!({"choices": [{"delta": {"function_call": {"arguments": whole}}}]}),
                finish("function_call"),
            ],
            vec![A],
        ),
        (
            "Cohere: name and arguments beside function",
            vec![
                pieces(json!([{"index": 0, "id": "c1", "name": "read_file", "parameters": {"path": "a"}}])),
                end(),
            ],
            vec![A],
        ),
        (
            "xAI: null content, null calls, then the call",
            vec![
                json!({"choices": [{"delta": {"role": "assistant", "content": null, "tool_calls": null}}]}),
                piece(json!(0), json!("c1"), json!("read_file"), json!(whole)),
                end(),
            ],
            vec![A],
        ),
        (
            "MiniMax: the reason with each piece",
            vec![
                json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c1",
                "function": {"name": "read_file", "arguments": "{\"path\":"}}]}, "finish_reason": "null"}]}),
                json!({"choices": [{"delta": {"tool_calls": [{"index": 0,
                "function": {"arguments": "\"a\"}"}}]}, "finish_reason": "null"}]}),
                end(),
            ],
            vec![A],
        ),
        (
            "OpenRouter: interleaved calls",
            vec![
                piece(json!(0), json!("c1"), json!("read_file"), json!("{\"path\":")),
                piece(json!(1), json!("c2"), json!("read_file"), json!("{\"path\":")),
                piece(json!(0), none(), none(), json!("\"a\"}")),
                piece(json!(1), none(), none(), json!("\"b\"}")),
                end(),
            ],
            vec![A, B],
        ),
        (
            "tabbyAPI: interleaved calls by id, no index",
            vec![
                piece(none(), json!("c1"), json!("read_file"), json!("{\"path\":")),
                piece(none(), json!("c2"), json!("read_file"), json!("{\"path\":")),
                piece(none(), json!("c1"), none(), json!("\"a\"}")),
                piece(none(), json!("c2"), none(), json!("\"b\"}")),
                end(),
            ],
            vec![A, B],
        ),
        (
            "vLLM: two different tools at one index",
            vec![
                piece(json!(0), none(), json!("read_file"), json!(whole)),
                piece(json!(0), none(), json!("list_dir"), json!("{}")),
                end(),
            ],
            vec![A, LIST],
        ),
        (
            "Hugging Face router: complete calls, no reason",
            vec![piece(json!(0), json!("c1"), json!("read_file"), json!(whole))],
            vec![A],
        ),
        (
            "koboldcpp: an odd element among the calls",
            vec![
                pieces(
                    json!([null, {"index": 0, "id": "c1", "function": {"name": "read_file", "arguments": whole}}]),
                ),
                end(),
            ],
            vec![A],
        ),
        (
            "unclear arguments are not guessed",
            vec![
                piece(json!(0), json!("c1"), json!("read_file"), json!("{\"path\":\"a\"}{\"path\":\"b\"}")),
                end(),
            ],
            vec![r#"read_file {"path":"a"}{"path":"b"}"#],
        ),
        (
            "cut before its last brace",
            vec![
                piece(json!(0), json!("c1"), json!("read_file"), json!("{\"path\":{\"path\":\"a\"}")),
                end(),
            ],
            vec![r#"read_file {"path":{"path":"a"}"#],
        ),
        (
            "PHP proxy: an empty list in place of an empty object",
            vec![piece(json!(0), json!("c1"), json!("list_dir"), json!([])), end()],
            vec![LIST],
        ),
        (
            "a list is no object",
            vec![piece(json!(0), json!("c1"), json!("read_file"), json!(["a"])), end()],
            vec![r#"read_file ["a"]"#],
        ),
    ]
}

#[tokio::test]
async fn p17_calls_of_chat_servers_are_read_as_they_were_meant() {
    let rows = chat_streams();
    for (who, all, want) in &rows {
        let server = ScriptServer::start([Reply::sse(format!("{}data: [DONE]\n\n", events(all)))]);
        let out = ask(&provider(Wire::OpenaiChat, &server.url()), hello()).await;
        assert_eq!(out.error, None, "{who}");
        assert_eq!(
            (&calls(&out), out.reply.stop.clone()),
            (&want.iter().map(ToString::to_string).collect(), Some(StopReason::ToolUse)),
            "{who}"
        );
    }
    assert!(rows.len() >= 35, "{}", rows.len());
}

/// Calls of the other formats: who, its format, the events.
fn other_streams() -> Vec<(&'static str, Wire, Vec<Value>, Vec<&'static str>)> {
    let use_of = |index: Value, path: &str| {
        let mut e = json!({"type": "content_block_start", "index": index,
            "content_block": {"type": "tool_use", "id": format!("t{path}"), "name": "read_file", "input": {}}});
        e.as_object_mut().unwrap().retain(|_, v| !v.is_null());
        e
    };
    let input = |more: Value| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": more}});
    let stop = |reason: &str| json!({"type": "message_delta", "delta": {"stop_reason": reason}});
    let over = || json!({"type": "message_stop"});
    let item = |index: Value, path: &str, kind: &str, arguments: Value| {
        let mut e = json!({"type": kind, "output_index": index, "item": {"type": "function_call", "id": format!("fc_{path}"),
            "call_id": format!("c_{path}"), "name": "read_file", "arguments": arguments}});
        e.as_object_mut().unwrap().retain(|_, v| !v.is_null());
        e
    };
    let (added, done) = ("response.output_item.added", "response.output_item.done");
    let more = |id: &str, text: &str| json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": id, "delta": text});
    let completed = || json!({"type": "response.completed", "response": {"status": "completed"}});
    let parts = |all: Value, reason: Value| json!({"candidates": [{"content": {"parts": all, "role": "model"}, "finishReason": reason}]});
    let call = |args: Value| json!({"functionCall": {"name": "read_file", "args": args}});
    vec![
        (
            "Bedrock proxy: all blocks at one index, without an end",
            Wire::Anthropic,
            vec![
                use_of(json!(0), "a"),
                input(json!("{\"path\":\"a\"}")),
                use_of(json!(0), "b"),
                input(json!("{\"path\":\"b\"}")),
                stop("tool_use"),
                over(),
            ],
            vec![A, B],
        ),
        (
            "LiteLLM: no index at all",
            Wire::Anthropic,
            vec![
                use_of(Value::Null, "a"),
                input(json!("{\"path\":\"a\"}")),
                use_of(Value::Null, "b"),
                input(json!("{\"path\":\"b\"}")),
                stop("tool_use"),
                over(),
            ],
            vec![A, B],
        ),
        (
            "Kimi: the input as an object",
            Wire::Anthropic,
            vec![use_of(json!(0), "a"), input(json!({"path": "a"})), stop("tool_use"), over()],
            vec![A],
        ),
        (
            "z.ai: the input encoded twice",
            Wire::Anthropic,
            vec![
                use_of(json!(0), "a"),
                input(json!("\"{\\\"path\\\":\\\"a\\\"}\"")),
                stop("tool_use"),
                over(),
            ],
            vec![A],
        ),
        (
            "DeepSeek: whole input at the start, an empty piece behind it",
            Wire::Anthropic,
            vec![
                json!({"type": "content_block_start", "index": 0, "content_block":
                {"type": "tool_use", "id": "t", "name": "read_file", "input": {"path": "a"}}}),
                input(json!("")),
                stop("end_turn"),
                over(),
            ],
            vec![A],
        ),
        (
            "MiniMax: an empty object before the input",
            Wire::Anthropic,
            vec![
                use_of(json!(0), "a"),
                input(json!("{}")),
                input(json!("{\"path\":\"a\"}")),
                stop("tool_use"),
                over(),
            ],
            vec![A],
        ),
        (
            "a proxy that ends with [DONE]",
            Wire::Anthropic,
            vec![use_of(json!(0), "a"), input(json!("{\"path\":\"a\"}")), json!("[DONE]")],
            vec![A],
        ),
        (
            "LM Studio: the same index for all items",
            Wire::OpenaiResponses,
            vec![
                item(json!(0), "a", added, json!("")),
                item(json!(0), "b", added, json!("")),
                more("fc_a", "{\"path\":\"a\"}"),
                more("fc_b", "{\"path\":\"b\"}"),
                item(json!(0), "a", done, json!("{\"path\":\"a\"}")),
                item(json!(0), "b", done, json!("{\"path\":\"b\"}")),
                completed(),
            ],
            vec![A, B],
        ),
        (
            "vLLM: no index, and no end of items",
            Wire::OpenaiResponses,
            vec![item(Value::Null, "a", added, json!("")), more("fc_a", "{\"path\":\"a\"}"), completed()],
            vec![A],
        ),
        (
            "Ollama: arguments as an object",
            Wire::OpenaiResponses,
            vec![item(json!(0), "a", done, json!({"path": "a"})), completed()],
            vec![A],
        ),
        (
            "OpenRouter: items only in the end event",
            Wire::OpenaiResponses,
            vec![json!({"type": "response.completed", "response": {"status": "completed", "output": [
                {"type": "function_call", "id": "fc_a", "call_id": "c", "name": "read_file", "arguments": "{\"path\":\"a\"}"}]}})],
            vec![A],
        ),
        (
            "Groq: [DONE] in place of the end event",
            Wire::OpenaiResponses,
            vec![item(json!(0), "a", done, json!("{\"path\":\"a\"}")), json!("[DONE]")],
            vec![A],
        ),
        (
            "Vertex proxy: arguments as text",
            Wire::Gemini,
            vec![parts(json!([call(json!("{\"path\":\"a\"}"))]), json!("STOP"))],
            vec![A],
        ),
        (
            "LiteLLM: [DONE] without a reason",
            Wire::Gemini,
            vec![parts(json!([call(json!({"path": "a"}))]), Value::Null), json!("[DONE]")],
            vec![A],
        ),
        (
            "Gemini proxy: a reason in lower case",
            Wire::Gemini,
            vec![parts(json!([call(json!({"path": "a"})), call(json!({"path": "b"}))]), json!("stop"))],
            vec![A, B],
        ),
    ]
}

#[tokio::test]
async fn p17_calls_of_other_formats_are_read_as_they_were_meant() {
    for (who, wire, all, want) in other_streams() {
        let body = events(&all).replace("\"[DONE]\"", "[DONE]");
        let server = ScriptServer::start([Reply::sse(body)]);
        let out = ask(&provider(wire, &server.url()), hello()).await;
        assert_eq!(out.error, None, "{wire:?} {who}");
        assert_eq!(
            (calls(&out).as_slice(), out.reply.stop.clone()),
            (&want.iter().map(ToString::to_string).collect::<Vec<_>>()[..], Some(StopReason::ToolUse)),
            "{wire:?} {who}"
        );
    }
}

/// Without a reason at the end, [DONE] does not make a call whole: the upstream may have been cut.
#[tokio::test]
async fn p17_a_call_that_was_cut_before_the_end_does_not_run() {
    let chat = |args: &str| events(&[piece(json!(0), json!("c1"), json!("read_file"), json!(args))]);
    let start = json!({"type": "content_block_start", "index": 0,
        "content_block": {"type": "tool_use", "id": "t", "name": "read_file", "input": {}}});
    let delta = |args: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": args}});
    for (wire, body) in [
        (Wire::OpenaiChat, chat("")),
        (Wire::OpenaiChat, chat("{\"path\":")),
        (Wire::OpenaiChat, chat("{\"path\":{\"path\":\"a\"}")),
        (Wire::Anthropic, events(std::slice::from_ref(&start))),
        (Wire::Anthropic, events(&[start, delta("{\"path\":{\"path\":\"a\"}")])),
    ] {
        let server = ScriptServer::start([Reply::sse(format!("{body}data: [DONE]\n\n"))]);
        let out = ask(&provider(wire, &server.url()), hello()).await;
        assert!(matches!(out.error, Some(ProviderError::Network(_))), "{wire:?} {body} {:?}", out.error);
    }
}

/// Errors inside of a stream with a success status.
#[tokio::test]
async fn p17_an_error_in_a_stream_is_quoted() {
    for (who, wire, body) in [
        (
            "vLLM",
            Wire::OpenaiChat,
            "data: {\"object\":\"error\",\"message\":\"no room for it\",\"code\":400}\n\n",
        ),
        (
            "llama.cpp",
            Wire::OpenaiChat,
            "error: {\"code\":500}\n\ndata: {\"error\":{\"code\":400,\"message\":\"no room for it\"}}\n\n",
        ),
        ("TGI", Wire::OpenaiChat, "data: {\"error\":\"no room for it\",\"error_type\":\"validation\"}\n\n"),
        ("FastAPI", Wire::OpenaiChat, "data: {\"detail\":\"no room for it\"}\n\n"),
        ("a gateway", Wire::OpenaiChat, "event: error\ndata: {\"message\":\"no room for it\"}\n\n"),
        ("a gateway", Wire::Anthropic, "event: error\ndata: {\"message\":\"no room for it\"}\n\n"),
        (
            "Bedrock",
            Wire::Anthropic,
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":\"no room for it\"}}\n\n",
        ),
        (
            "a gateway",
            Wire::OpenaiResponses,
            "event: error\ndata: {\"type\":\"error\",\"message\":\"no room for it\"}\n\n",
        ),
        ("a gateway", Wire::OpenaiResponses, "data: {\"error\":{\"message\":\"no room for it\"}}\n\n"),
        ("a gateway", Wire::Gemini, "event: error\ndata: {\"message\":\"no room for it\"}\n\n"),
    ] {
        let server = ScriptServer::start([Reply::sse(body)]);
        let out = ask(&provider(wire, &server.url()), hello()).await;
        assert!(
            matches!(&out.error, Some(ProviderError::Rejected(t)) if t.contains("no room for it")),
            "{wire:?} {who}: {:?}",
            out.error
        );
    }
}

/// Texts, thoughts and ends as servers send them.
#[tokio::test]
async fn p17_texts_of_chat_servers_are_read_as_they_were_meant() {
    let text = |t: Value| json!({"choices": [{"index": 0, "delta": {"content": t}, "finish_reason": null}]});
    let done = "data: [DONE]\n\n".to_owned();
    let rows: Vec<(&str, String)> = vec![
        (
            "DeepSeek: comments as keep-alive",
            format!(": keep-alive\n\n{}{done}", events(&[text(json!("So.")), finish("stop")])),
        ),
        (
            "OpenRouter: comments first",
            format!(": OPENROUTER PROCESSING\n\n{}{done}", events(&[text(json!("So.")), finish("stop")])),
        ),
        (
            "Ollama: the reason in the piece of the text",
            events(&[json!({"choices": [{"delta": {"content": "So."}, "finish_reason": "stop"}]})]) + &done,
        ),
        (
            "TGI: no space behind data, returns at line ends",
            events(&[text(json!("So.")), finish("eos_token")])
                .replace("data: ", "data:")
                .replace('\n', "\r\n")
                + &done,
        ),
        (
            "DashScope: null and empty texts",
            events(&[text(Value::Null), text(json!("")), text(json!("So.")), finish("stop")]) + &done,
        ),
        (
            "MiniMax: the reason with each piece",
            events(&[
                json!({"choices": [{"delta": {"content": "S"}, "finish_reason": "stop"}]}),
                json!({"choices": [{"delta": {"content": "o."}, "finish_reason": "stop"}]}),
            ]) + &done,
        ),
        ("Mistral: parts", events(&[text(json!([{"type": "text", "text": "So."}])), finish("stop")]) + &done),
        (
            "koboldcpp: a number as text",
            events(&[text(json!("So")), text(json!(".")), finish("stop")]) + &done,
        ),
        ("Hugging Face router: no reason", events(&[text(json!("So."))]) + &done),
        (
            "LM Studio: a message in place of pieces",
            json!({"choices": [{"message": {"content": "So."}, "finish_reason": "stop"}]}).to_string(),
        ),
    ];
    for (who, body) in rows {
        let server = ScriptServer::start([Reply::sse(body).framing(Framing::Chunked)]);
        let out = ask(&provider(Wire::OpenaiChat, &server.url()), hello()).await;
        assert_eq!((out.error.clone(), out.text().as_str()), (None, "So."), "{who}");
        assert_eq!(out.reply.stop, Some(StopReason::EndTurn), "{who}");
    }
}

/// A server of llama.cpp says how far it has read the prompt.
#[tokio::test]
async fn p17_the_progress_of_the_prompt_is_read() {
    let progress = |n: u64| json!({"choices": [{"delta": {}}], "prompt_progress": {"total": 900, "cache": 0, "processed": n, "time_ms": 5}});
    let text = json!({"choices": [{"delta": {"content": "So."}}]});
    let server = ScriptServer::start([Reply::sse(events(&[progress(300), text, finish("stop")]))]);
    let out = ask(&provider(Wire::OpenaiChat, &server.url()), hello()).await;
    assert_eq!((out.error.clone(), out.text().as_str()), (None, "So."));
    assert!(
        out.chunks.contains(&tiller_provider::Chunk::Progress { done: 300, of: 900 }),
        "{:?}",
        out.chunks
    );
    assert_eq!(server.bodies()[0]["return_progress"], true);
    let far = provider(Wire::OpenaiChat, "https://api.example.com/v1");
    assert!(!String::from_utf8(far.body(&hello())).unwrap().contains("return_progress"));
}
