//! Every wire format reads the same scripted reply as the same blocks, sends what it must, and never changes messages
//! that it has sent.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod common;

use common::{KEY, ask, hello, provider, request, user, with_entry};
use serde_json::{Value, json};
use tiller_protocol::{Block, ModelRef, Part, StopReason, Usage};
use tiller_provider::{ChatMessage, Effort};
use tiller_testkit::{Counts, Reply, Script, ScriptServer, Stop, Wire};

fn full() -> Script {
    Script::new()
        .thinking("I think, füße.", "sig-1")
        .text("I look — at two files.")
        .call("call_a", "read_file", json!({"path": "a", "n": [1, 2.5, null]}))
        .call("call_b", "list_dir", json!({}))
        .counts(Counts { input: 100, output: 50, cache_read: 30, cache_write: 0, reasoning: 20 })
        .pieces_of(3)
}

#[tokio::test]
async fn every_wire_reads_text_thoughts_calls_and_usage() {
    for wire in Wire::ALL {
        let server = ScriptServer::start([Reply::script(wire, &full())]);
        let out = ask(&provider(wire, &server.url()), hello()).await;
        assert_eq!(out.error, None, "{wire:?}");
        let kinds: Vec<String> = out
            .reply
            .blocks
            .iter()
            .filter_map(|b| match b {
                Block::Thinking { text, .. } if text.is_empty() => None,
                Block::Thinking { text, .. } => Some(format!("think {text}")),
                Block::Text { text } => Some(format!("text {text}")),
                Block::ToolCall(c) => Some(format!("{} {} {}", c.id, c.name, c.arguments)),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            kinds,
            [
                "think I think, füße.",
                "text I look — at two files.",
                "call_a read_file {\"path\":\"a\",\"n\":[1,2.5,null]}",
                "call_b list_dir {}",
            ],
            "{wire:?}"
        );
        assert_eq!(out.reply.stop, Some(StopReason::ToolUse), "{wire:?}");
        let reasoning = if wire == Wire::Anthropic { 0 } else { 20 };
        assert_eq!(
            out.reply.usage,
            Usage { input: 100, output: 50, cache_read: 30, cache_write: 0, reasoning, ..Usage::default() },
            "{wire:?}"
        );
    }
}

#[tokio::test]
async fn every_wire_sends_its_key_path_and_stream_flag() {
    let table = [
        (Wire::Anthropic, "/v1/messages", "x-api-key", KEY.to_owned()),
        (Wire::OpenaiChat, "/v1/chat/completions", "authorization", format!("Bearer {KEY}")),
        (Wire::OpenaiResponses, "/v1/responses", "authorization", format!("Bearer {KEY}")),
        (
            Wire::Gemini,
            "/v1beta/models/model-1:streamGenerateContent?alt=sse",
            "x-goog-api-key",
            KEY.to_owned(),
        ),
    ];
    for (wire, path, header, value) in table {
        let server = ScriptServer::start([Reply::script(wire, &Script::new().text("hi"))]);
        let mut entry = common::entry(wire, &server.url());
        entry.headers.insert("x-own".into(), "yes".into());
        let p = with_entry(entry);
        let out = ask(&p, hello()).await;
        assert_eq!((out.text().as_str(), &out.reply.stop), ("hi", &Some(StopReason::EndTurn)), "{wire:?}");
        let sent = &server.requests()[0];
        assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", path));
        assert_eq!(sent.header(header), Some(value.as_str()));
        assert_eq!(sent.header("x-own"), Some("yes"));
        assert_eq!(sent.body, p.body(&hello()), "`body` is what is sent");
        if wire != Wire::Gemini {
            assert_eq!(sent.json()["stream"], true);
            assert_eq!(sent.json()["model"], "model-1");
        }
    }
}

/// A conversation with every kind of block, as the engine would store it.
async fn conversation(wire: Wire) -> Vec<ChatMessage> {
    let server =
        ScriptServer::start([Reply::script(wire, &full()), Reply::script(wire, &Script::new().text("So."))]);
    let p = provider(wire, &server.url());
    let mut messages = vec![user("look")];
    for turn in 0..2 {
        let out = ask(&p, request(messages.clone())).await;
        messages.push(ChatMessage::Assistant {
            blocks: out.reply.blocks.clone(),
            model: ModelRef("p/model-1".into()),
        });
        for (n, call) in out.reply.calls().enumerate() {
            let mut content = vec![Part::Text { text: format!("result {n}") }];
            if n == 1 {
                content.push(Part::Image { media_type: "image/png".into(), data: "aWNvbg==".into() });
            }
            messages.push(ChatMessage::ToolResult {
                call_id: call.id.clone(),
                name: call.name.clone(),
                ok: n == 0,
                content,
            });
        }
        if turn == 0 {
            messages.push(user("and a steering word"));
        }
    }
    messages.push(ChatMessage::User {
        content: vec![
            Part::Text { text: "see".into() },
            Part::Image { media_type: "image/jpeg".into(), data: "AAAA".into() },
        ],
    });
    messages
}

/// The messages of a body, cache marks removed.
fn messages_of(wire: Wire, body: &[u8]) -> (Vec<Value>, Value) {
    let mut value: Value = serde_json::from_slice(body).unwrap();
    let key = match wire {
        Wire::Anthropic | Wire::OpenaiChat => "messages",
        Wire::OpenaiResponses => "input",
        Wire::Gemini => "contents",
    };
    let mut list = value[key].take().as_array().unwrap().clone();
    fn unmark(v: &mut Value) {
        match v {
            Value::Object(map) => {
                map.shift_remove("cache_control");
                map.values_mut().for_each(unmark);
            }
            Value::Array(list) => list.iter_mut().for_each(unmark),
            _ => {}
        }
    }
    list.iter_mut().for_each(unmark);
    (list, value)
}

/// True for a list of messages that continues another one. Its last message may have more at its end: it is joined with a
/// following one of the same role.
fn continues(old: &[Value], new: &[Value]) -> bool {
    let Some((last, before)) = old.split_last() else { return true };
    let text = last.to_string();
    let text = text.trim_end_matches(['}', ']', '"']);
    new.starts_with(before) && new.get(before.len()).is_some_and(|m| m.to_string().starts_with(text))
}

#[tokio::test]
async fn a_longer_request_is_the_shorter_one_plus_more() {
    for wire in Wire::ALL {
        let all = conversation(wire).await;
        let p = provider(wire, "http://127.0.0.1:9");
        let mut before: Option<(Vec<Value>, Value, Vec<u8>)> = None;
        // A request never ends between the results of one reply. A request that ends with a reply gets an additional
        // text at its end, which is kept only when the model answers it.
        let ends = (1..=all.len())
            .filter(|n| !matches!(all.get(*n), Some(ChatMessage::ToolResult { .. })))
            .filter(|n| !matches!(all[n - 1], ChatMessage::Assistant { .. }));
        for n in ends {
            let body = p.body(&request(all[..n].to_vec()));
            assert_eq!(body, p.body(&request(all[..n].to_vec())), "equal requests, equal bytes");
            let (list, rest) = messages_of(wire, &body);
            if let Some((old_list, old_rest, old_body)) = before {
                assert!(continues(&old_list, &list), "{wire:?}: {old_list:?}\n{list:?}");
                assert_eq!(rest, old_rest, "{wire:?}: tools, system and settings stay");
                // Byte for byte up to the closing brackets, cache marks aside.
                if wire != Wire::Anthropic {
                    let common = old_body.iter().zip(&body).take_while(|(a, b)| a == b).count();
                    assert!(common + 5 >= old_body.len(), "{wire:?}: {common} of {}", old_body.len());
                } else {
                    let head = |b: &[u8]| {
                        String::from_utf8_lossy(b).split("\"messages\"").next().unwrap().to_owned()
                    };
                    assert_eq!(head(&old_body), head(&body));
                }
            }
            before = Some((list, rest, body));
        }
    }
}

/// A chat template refuses two messages of one role in a row: after an interrupted turn, a summary, or steering.
#[tokio::test]
async fn p17_no_two_messages_of_one_role_stand_in_a_row() {
    for wire in Wire::ALL {
        let mut all = conversation(wire).await;
        all.splice(0..0, [user("an interrupted turn"), user("and another")]);
        all.push(user("the last word"));
        // A reply of nothing that can be sent stands between two messages.
        let model = ModelRef("p/model-1".into());
        all.push(ChatMessage::Assistant {
            blocks: vec![Block::Thinking { text: "t".into(), signature: None }],
            model,
        });
        all.push(user("go on"));
        let body = provider(wire, "http://127.0.0.1:9").body(&request(all));
        let (list, _) = messages_of(wire, &body);
        let roles: Vec<&str> = list.iter().map(|m| m["role"].as_str().unwrap_or("item")).collect();
        let twice = roles.windows(2).any(|two| two[0] == two[1] && !matches!(two[0], "tool" | "item"));
        assert!(!twice, "{wire:?}: {roles:?}");
        let text = serde_json::to_string(&list).unwrap();
        let words = ["an interrupted turn", "and another", "look", "steering word", "the last word", "go on"];
        let at: Vec<usize> = words.iter().map(|w| text.find(w).unwrap()).collect();
        assert!(at.is_sorted(), "{wire:?}: {text}");
    }
}

#[tokio::test]
async fn anthropic_sends_thoughts_results_marks_and_images() {
    let all = conversation(Wire::Anthropic).await;
    let p = provider(Wire::Anthropic, "http://127.0.0.1:9");
    let body: Value = serde_json::from_slice(&p.body(&request(all))).unwrap();
    let mark = json!({"type": "ephemeral"});
    assert_eq!(body["system"], json!([{"type": "text", "text": "You are a test.", "cache_control": mark}]));
    assert_eq!(body["tools"][2]["cache_control"], mark);
    assert!(body["tools"][0].get("cache_control").is_none());
    let m = &body["messages"];
    assert_eq!(
        m[1]["content"][0],
        json!({"type": "thinking", "thinking": "I think, füße.", "signature": "sig-1"})
    );
    assert_eq!(
        m[1]["content"][2],
        json!({"type": "tool_use", "id": "call_a", "name": "read_file", "input": {"path": "a", "n": [1, 2.5, null]}})
    );
    assert_eq!(m[2]["role"], "user");
    assert_eq!(
        m[2]["content"][0],
        json!({"type": "tool_result", "tool_use_id": "call_a", "content": [{"type": "text", "text": "result 0"}]})
    );
    assert_eq!(m[2]["content"][1]["is_error"], true);
    // Images only in results of successful calls: see vendors.rs.
    assert_eq!(m[2]["content"][1]["content"][1]["type"], "text");
    // The steering word is of the same role, and stands behind the results.
    assert_eq!(m[2]["content"][2]["text"], "and a steering word");
    assert_eq!(m[2]["content"].as_array().unwrap().len(), 3, "the results of one reply stand together");
    let marks = body.to_string().matches("ephemeral").count();
    assert_eq!(marks, 4, "the vendor allows four");
    assert_eq!(m.as_array().unwrap().last().unwrap()["content"][1]["cache_control"], mark);
}

#[tokio::test]
async fn openai_chat_sends_results_and_images_apart() {
    let all = conversation(Wire::OpenaiChat).await;
    let p = provider(Wire::OpenaiChat, "http://127.0.0.1:9");
    let body: Value = serde_json::from_slice(&p.body(&request(all))).unwrap();
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
    assert_eq!(body["messages"][0], json!({"role": "system", "content": "You are a test."}));
    let m = &body["messages"];
    assert_eq!(m[2]["reasoning_content"], "I think, füße.", "goes back with the calls it led to");
    assert_eq!(m[2]["tool_calls"][0]["function"]["arguments"], "{\"path\":\"a\",\"n\":[1,2.5,null]}");
    assert_eq!(m[3], json!({"role": "tool", "tool_call_id": "call_a", "content": "result 0"}));
    assert_eq!(m[4]["content"], "error: result 1\n[image: in the next message]");
    assert_eq!(m[5]["content"][1]["image_url"]["url"], "data:image/png;base64,aWNvbg==");
    assert_eq!(m[5]["content"][2], json!({"type": "text", "text": "and a steering word"}), "no two in a row");
}

#[tokio::test]
async fn responses_returns_items_unchanged() {
    let all = conversation(Wire::OpenaiResponses).await;
    let p = provider(Wire::OpenaiResponses, "http://127.0.0.1:9");
    let body: Value = serde_json::from_slice(&p.body(&request(all))).unwrap();
    assert_eq!(body["store"], false);
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(body["prompt_cache_key"], "session-1");
    assert_eq!(body["instructions"], "You are a test.");
    let input = &body["input"];
    assert_eq!(
        input[1],
        json!({"id": "rs_0", "type": "reasoning", "encrypted_content": "sig-1",
            "summary": [{"type": "summary_text", "text": "I think, füße."}]})
    );
    assert_eq!(
        input[3],
        json!({"type": "function_call", "id": "fc_2", "call_id": "call_a", "name": "read_file",
            "arguments": "{\"path\":\"a\",\"n\":[1,2.5,null]}"})
    );
    assert_eq!(input[5], json!({"type": "function_call_output", "call_id": "call_a", "output": "result 0"}));
    assert_eq!(input[6]["output"][1]["image_url"], "data:image/png;base64,aWNvbg==");
}

#[tokio::test]
async fn gemini_returns_signatures_and_results() {
    let all = conversation(Wire::Gemini).await;
    let p = provider(Wire::Gemini, "http://127.0.0.1:9");
    let body: Value = serde_json::from_slice(&p.body(&request(all))).unwrap();
    assert_eq!(body["systemInstruction"], json!({"parts": [{"text": "You are a test."}]}));
    let c = &body["contents"];
    assert_eq!(c[1]["role"], "model");
    let signatures = c[1].to_string().matches("sig-1").count();
    assert_eq!(signatures, 1, "{}", c[1]);
    assert!(!c[1].to_string().contains("I think"));
    assert_eq!(
        c[2]["parts"][0],
        json!({"functionResponse": {"id": "call_a", "name": "read_file", "response": {"output": "result 0"}}})
    );
    assert_eq!(
        c[2]["parts"][1]["functionResponse"]["response"]["error"],
        "result 1\n[image: in the next message]"
    );
    assert_eq!(c[2]["parts"][2], json!({"inlineData": {"mimeType": "image/png", "data": "aWNvbg=="}}));
}

#[tokio::test]
async fn thoughts_never_go_to_another_model_or_vendor() {
    for wire in Wire::ALL {
        let mut all = conversation(wire).await;
        for other in ["p/model-2", "q/model-1"] {
            for message in &mut all {
                if let ChatMessage::Assistant { model, blocks } = message {
                    *model = ModelRef(other.into());
                    blocks.push(Block::Unknown { provider: "q".into(), raw: json!({"type": "secret-kind"}) });
                }
            }
            let body =
                String::from_utf8(provider(wire, "http://127.0.0.1:9").body(&request(all.clone()))).unwrap();
            for bad in ["sig-1", "I think", "secret-kind", "rs_0"] {
                assert!(!body.contains(bad), "{wire:?} {other} {bad}: {body}");
            }
            assert!(body.contains("read_file"), "the call itself does");
        }
    }
}

#[tokio::test]
async fn strange_identifiers_and_empty_messages_are_made_fit() {
    let long = "x".repeat(80);
    for wire in Wire::ALL {
        for id in ["a|b:c/ü", long.as_str(), ""] {
            let call = tiller_protocol::ToolCall {
                id: id.into(),
                name: "read_file".into(),
                arguments: json!({}),
                malformed: Some("{".into()),
                vendor: None,
            };
            let messages = vec![
                user("x"),
                ChatMessage::Assistant { blocks: vec![], model: ModelRef("p/model-1".into()) },
                ChatMessage::Assistant {
                    blocks: vec![
                        Block::Text { text: String::new() },
                        Block::ToolCall(call),
                        Block::Thinking { text: "t".into(), signature: Some("{}".into()) },
                    ],
                    model: ModelRef("p/model-1".into()),
                },
                ChatMessage::ToolResult {
                    call_id: id.into(),
                    name: "read_file".into(),
                    ok: false,
                    content: vec![],
                },
            ];
            let body = provider(wire, "http://127.0.0.1:9").body(&request(messages));
            let (list, _) = messages_of(wire, &body);
            let text = Value::Array(list).to_string();
            if wire == Wire::Gemini {
                continue; // Without a vendor's id results are matched by name.
            }
            let ids: Vec<&str> = text
                .split("_id\":\"")
                .skip(1)
                .chain(text.split("\"id\":\"").skip(1))
                .map(|rest| rest.split('"').next().unwrap())
                .collect();
            assert!(ids.len() >= 2, "{wire:?} {text}");
            assert!(ids.iter().all(|i| *i == ids[0] && !i.is_empty() && i.len() <= 64), "{wire:?} {ids:?}");
        }
    }
}

/// The body of a request to `model` with this effort.
fn with_effort(wire: Wire, model: &str, effort: Effort) -> Value {
    let mut r = hello();
    r.model = model.into();
    r.effort = effort;
    serde_json::from_slice(&provider(wire, "http://127.0.0.1:9").body(&r)).unwrap()
}

#[tokio::test]
async fn effort_is_told_in_each_vendors_way() {
    use Effort::{Default, High, Low, Max, Medium, Off};
    let adaptive = || json!({"type": "adaptive", "display": "summarized"});
    let budget = |n: u64| json!({"type": "enabled", "budget_tokens": n});
    let table = [
        // (model, effort, thinking, effort's word)
        ("claude-opus-5-5", Default, adaptive(), Value::Null),
        ("claude-opus-5-5", High, adaptive(), json!("high")),
        ("claude-opus-5-5", Max, adaptive(), json!("max")),
        // It cannot turn thinking off.
        ("claude-opus-5-5", Off, adaptive(), json!("low")),
        ("claude-opus-5", Off, json!({"type": "disabled"}), Value::Null),
        ("claude-sonnet-5", Default, adaptive(), Value::Null),
        // Models below 5.0 think too.
        ("claude-opus-4-8", Default, adaptive(), Value::Null),
        ("claude-opus-4-6", Default, adaptive(), Value::Null),
        ("claude-opus-4-6", Medium, adaptive(), json!("medium")),
        ("claude-opus-4-6", Max, adaptive(), json!("max")),
        ("claude-opus-4-6", Off, Value::Null, Value::Null),
        ("claude-sonnet-4-5-20250929", Default, budget(8_192), Value::Null),
        ("claude-sonnet-4-5-20250929", High, budget(32_768), Value::Null),
        ("claude-sonnet-4-5-20250929", Off, Value::Null, Value::Null),
        ("claude-3-7-sonnet-20250219", Low, budget(4_096), Value::Null),
        // This one does not think.
        ("claude-3-5-haiku-20241022", High, Value::Null, Value::Null),
        // Unknown: it thinks when the person chooses an effort.
        ("model-1", Default, Value::Null, Value::Null),
        ("model-1", Low, budget(4_096), Value::Null),
    ];
    for (model, effort, thinking, word) in table {
        let body = with_effort(Wire::Anthropic, model, effort);
        assert_eq!(
            (&body["thinking"], &body["output_config"]["effort"]),
            (&thinking, &word),
            "{model} {effort:?}"
        );
    }
    let table = [
        ("m", Default, Value::Null),
        ("m", Off, json!("none")),
        ("m", Max, json!("high")),
        ("gpt-6.1-sol", Off, json!("low")),
        ("gpt-6-sol", Max, json!("max")),
        ("gpt-5.5", Max, json!("xhigh")),
        ("gpt-5.5", Off, json!("none")),
        ("gpt-5", Medium, json!("medium")),
        ("gpt-4.1", High, Value::Null),
    ];
    for (model, effort, word) in table {
        let body = with_effort(Wire::OpenaiChat, model, effort);
        assert_eq!(body["reasoning_effort"], word, "{model} {effort:?}");
        let body = with_effort(Wire::OpenaiResponses, model, effort);
        assert_eq!(body["reasoning"]["effort"], word, "{model} {effort:?}");
    }
    assert_eq!(with_effort(Wire::OpenaiResponses, "gpt-4.1", High).get("reasoning"), None);
    let table = [
        ("gemini-3.1-pro-preview", High, json!({"includeThoughts": true, "thinkingLevel": "high"})),
        ("gemini-3.8-flash", Default, json!({"includeThoughts": true})),
        ("gemini-3.8-flash", Off, json!({"includeThoughts": true, "thinkingLevel": "low"})),
        ("gemini-3.8-flash", Max, json!({"includeThoughts": true, "thinkingLevel": "high"})),
        ("gemini-2.5-flash", Off, json!({"includeThoughts": true, "thinkingBudget": 0})),
        ("gemini-2.5-pro", Off, json!({"includeThoughts": true, "thinkingBudget": 1_024})),
        ("gemini-2.5-flash", Max, json!({"includeThoughts": true, "thinkingBudget": 24_576})),
    ];
    for (model, effort, want) in table {
        let body = with_effort(Wire::Gemini, model, effort);
        assert_eq!(body["generationConfig"]["thinkingConfig"], want, "{model} {effort:?}");
    }
}

/// The prefix rule: system prompt, tools and messages are the same bytes for every effort.
#[tokio::test]
async fn an_effort_changes_no_byte_of_the_prefix() {
    let models = [
        (Wire::Anthropic, "claude-opus-5-5"),
        (Wire::Anthropic, "claude-sonnet-4-5"),
        (Wire::OpenaiChat, "gpt-5.5"),
        (Wire::OpenaiResponses, "gpt-6-sol"),
        (Wire::Gemini, "gemini-3.8-flash"),
    ];
    for (wire, model) in models {
        let bytes = |effort| {
            let mut r = hello();
            (r.model, r.effort) = (model.into(), effort);
            String::from_utf8(provider(wire, "http://127.0.0.1:9").body(&r)).unwrap()
        };
        let keys = match wire {
            Wire::Anthropic => ["\"tools\":", "\"system\":", "\"messages\":"],
            Wire::OpenaiChat => ["\"tools\":", "\"messages\":", "\"role\":\"system\""],
            Wire::OpenaiResponses => ["\"instructions\":", "\"tools\":", "\"input\":"],
            Wire::Gemini => ["\"systemInstruction\":", "\"tools\":", "\"contents\":"],
        };
        // The first of them comes before all others, and the settings before it.
        let prefix = |body: &str| body[body.find(keys[0]).unwrap()..].to_owned();
        let plain = prefix(&bytes(Effort::Default));
        assert!(keys.iter().all(|k| plain.contains(k)), "{wire:?} {plain}");
        for effort in Effort::ALL {
            assert_eq!(prefix(&bytes(effort)), plain, "{wire:?} {effort:?}");
        }
    }
}

/// A thinking budget is rejected in the middle of a turn that began without a thought.
#[tokio::test]
async fn a_turn_that_began_without_a_thought_is_not_told_to_think_in_its_middle() {
    let call = |thought: bool| {
        let mut blocks = Vec::new();
        if thought {
            blocks.push(Block::Thinking { text: "hm".into(), signature: Some("s".into()) });
        }
        blocks.push(Block::ToolCall(tiller_protocol::ToolCall {
            id: "c1".into(),
            name: "read_file".into(),
            arguments: json!({}),
            malformed: None,
            vendor: None,
        }));
        ChatMessage::Assistant { blocks, model: ModelRef("p/claude-sonnet-4-5".into()) }
    };
    let result = ChatMessage::ToolResult {
        call_id: "c1".into(),
        name: "read_file".into(),
        ok: true,
        content: vec![Part::Text { text: "r".into() }],
    };
    for (thought, later, thinks) in [(true, false, true), (false, false, false), (false, true, true)] {
        let mut messages = vec![user("x"), call(thought), result.clone()];
        if later {
            let blocks = vec![Block::Text { text: "Done.".into() }];
            messages.push(ChatMessage::Assistant { blocks, model: ModelRef("p/claude-sonnet-4-5".into()) });
            messages.push(user("y"));
        }
        let mut r = request(messages);
        r.model = "claude-sonnet-4-5".into();
        let body: Value =
            serde_json::from_slice(&provider(Wire::Anthropic, "http://127.0.0.1:9").body(&r)).unwrap();
        assert_eq!(body["thinking"].is_object(), thinks, "{thought} {later}");
    }
}

#[tokio::test]
async fn p10_length_refusal_empty_and_thought_only() {
    for wire in Wire::ALL {
        let server = ScriptServer::start([
            Reply::script(wire, &Script::new().text("cut of").stop(Stop::MaxTokens)),
            Reply::script(wire, &Script::new().stop(Stop::Refusal)),
            Reply::script(wire, &Script::new()),
            Reply::script(wire, &Script::new().thinking("only this", "s")),
            Reply::script(wire, &Script::new().call_raw("c", "t", "{\"a\": 1").stop(Stop::MaxTokens)),
        ]);
        let p = provider(wire, &server.url());
        let long = ask(&p, hello()).await;
        assert_eq!(
            (long.text().as_str(), long.reply.stop),
            ("cut of", Some(StopReason::MaxTokens)),
            "{wire:?}"
        );
        let refused = ask(&p, hello()).await;
        assert!(matches!(refused.reply.stop, Some(StopReason::Refusal(_))), "{wire:?} {:?}", refused.reply);
        let empty = ask(&p, hello()).await;
        assert_eq!((empty.error, empty.reply.blocks.len()), (None, 0), "{wire:?}");
        assert_eq!(empty.reply.stop, Some(StopReason::EndTurn));
        let thought = ask(&p, hello()).await;
        assert_eq!(thought.reply.stop, Some(StopReason::EndTurn));
        assert!(matches!(&thought.reply.blocks[0], Block::Thinking { text, .. } if text == "only this"));
        // Such a reply must leave a history that the vendor accepts.
        let history = vec![
            user("x"),
            ChatMessage::Assistant { blocks: thought.reply.blocks, model: ModelRef("p/model-1".into()) },
            user("y"),
        ];
        let (list, _) = messages_of(wire, &p.body(&request(history)));
        let assistants = list
            .iter()
            .filter(|m| m["role"] == "assistant" || m["role"] == "model" || m["type"] == "reasoning");
        assert_eq!(assistants.count(), 0, "{wire:?}: a message of nothing but a thought is refused");
        if wire != Wire::Gemini {
            let cut = ask(&p, hello()).await;
            assert_eq!(cut.reply.dropped, ["t"], "{wire:?}");
            assert_eq!(cut.reply.calls().count(), 0);
        }
    }
}

#[tokio::test]
async fn anthropic_keeps_redacted_and_unknown_blocks() {
    let raw = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1}});
    let events = [
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"q\":"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "1}"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "a"}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta", "citation": {"x": 1}}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "b"}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "brand_new", "delta": "of another shape"}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "redacted_thinking", "data": "enc"}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "t", "name": "n", "input": {"whole": true}}}),
        json!({"type": "content_block_stop", "index": 3}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        json!({"type": "message_stop"}),
    ];
    let body: String = events.iter().map(|e| tiller_testkit::sse("", e)).collect();
    let server = ScriptServer::start([Reply::sse(body)]);
    let p = provider(Wire::Anthropic, &server.url());
    let out = ask(&p, hello()).await;
    assert_eq!(out.error, None);
    assert_eq!(out.reply.blocks[0], Block::Unknown { provider: "p".into(), raw: raw.clone() });
    assert_eq!(out.reply.blocks[1], Block::Text { text: "ab".into() });
    assert_eq!(out.reply.blocks[2], Block::Redacted { data: "enc".into() });
    assert_eq!(out.reply.calls().next().unwrap().arguments, json!({"whole": true}));
    let history = vec![
        user("x"),
        ChatMessage::Assistant { blocks: out.reply.blocks, model: ModelRef("p/model-1".into()) },
    ];
    let (list, _) = messages_of(Wire::Anthropic, &p.body(&request(history)));
    assert_eq!(list[1]["content"][0], raw);
    assert_eq!(list[1]["content"][2], json!({"type": "redacted_thinking", "data": "enc"}));
}

#[tokio::test]
async fn compatible_servers_are_read_tolerantly() {
    let done = "data: [DONE]\n\n";
    let chunk = |delta: Value, finish: Value| {
        tiller_testkit::sse(
            "",
            &json!({"choices": [{"delta": delta, "finish_reason": finish}], "created": "soon", "model": null}),
        )
    };
    let calls = |list: Value| chunk(json!({"tool_calls": list}), Value::Null);
    let stop = chunk(json!({}), json!("stop"));
    let call =
        |id: &str, args: Value| json!({"index": 0, "id": id, "function": {"name": "t", "arguments": args}});
    // (what, body, text, calls)
    let table: Vec<(&str, String, &str, Vec<&str>)> = vec![
        (
            "no index",
            calls(
                json!([{"id": "a", "function": {"name": "t", "arguments": "{\"x\":1}"}}, {"id": "b", "function": {"name": "t", "arguments": "{\"x\":2}"}}]),
            ) + &stop,
            "",
            vec!["a {\"x\":1}", "b {\"x\":2}"],
        ),
        (
            "one index for all",
            calls(json!([call("a", json!("{\"x\":1}"))]))
                + &calls(json!([call("b", json!("{\"x\":2}"))]))
                + &stop,
            "",
            vec!["a {\"x\":1}", "b {\"x\":2}"],
        ),
        (
            "id repeated in every piece",
            calls(json!([call("a", json!("{\"x\""))])) + &calls(json!([call("a", json!(":1}"))])) + &stop,
            "",
            vec!["a {\"x\":1}"],
        ),
        ("arguments as object", calls(json!([call("a", json!({"x": 1}))])) + &stop, "", vec!["a {\"x\":1}"]),
        (
            "no id",
            calls(json!([{"index": 0, "function": {"name": "t", "arguments": "{}"}}])) + &stop,
            "",
            vec!["call_1_1 {}"],
        ),
        (
            "parts",
            chunk(
                json!({"content": [{"type": "text", "text": "he"}, {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "y"}]}),
                json!("stop"),
            ),
            "hey",
            vec![],
        ),
        (
            "nulls",
            chunk(json!({"content": null, "tool_calls": null, "reasoning": null, "role": null}), Value::Null)
                + &chunk(json!({"content": "x"}), json!("stop")),
            "x",
            vec![],
        ),
        ("no finish, but done", chunk(json!({"content": "x"}), Value::Null), "x", vec![]),
        (
            "comments",
            format!(": OPENROUTER PROCESSING\n\n{}", chunk(json!({"content": "x"}), json!("stop"))),
            "x",
            vec![],
        ),
        (
            "two choices",
            tiller_testkit::sse(
                "",
                &json!({"choices": [{"delta": {"content": "x"}}, {"delta": {"content": "y"}}]}),
            ) + &stop,
            "x",
            vec![],
        ),
    ];
    for (what, body, text, calls) in table {
        let server = ScriptServer::start([Reply::sse(body + done)]);
        let out = ask(&provider(Wire::OpenaiChat, &server.url()), hello()).await;
        assert_eq!(out.error, None, "{what}");
        assert_eq!(out.text(), text, "{what}");
        let got: Vec<String> = out.reply.calls().map(|c| format!("{} {}", c.id, c.arguments)).collect();
        assert_eq!(got, calls, "{what}");
    }
    let whole = json!({"choices": [{"message": {"role": "assistant", "content": "not streamed"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
    let server = ScriptServer::start([Reply::status(200).json(&whole)]);
    let out = ask(&provider(Wire::OpenaiChat, &server.url()), hello()).await;
    assert_eq!((out.text().as_str(), out.reply.usage.input), ("not streamed", 3));
}

#[tokio::test]
async fn lists_of_models_are_read() {
    let table = [
        (Wire::Anthropic, json!({"data": [{"id": "b"}, {"id": "a"}]}), "/v1/models?limit=1000"),
        (Wire::OpenaiChat, json!({"data": [{"id": "b"}, {"id": "a"}]}), "/v1/models"),
        (Wire::OpenaiResponses, json!({"data": [{"id": "b"}, {"id": "a"}, {"id": "a"}]}), "/v1/models"),
        (
            Wire::Gemini,
            json!({"models": [{"name": "models/b"}, {"name": "models/a"}]}),
            "/v1beta/models?pageSize=1000",
        ),
    ];
    for (wire, body, path) in table {
        let server = ScriptServer::start([Reply::status(200).json(&body), Reply::status(401)]);
        let p = provider(wire, &server.url());
        assert_eq!(p.models().await.unwrap(), ["a", "b"]);
        assert_eq!(server.requests()[0].path, path);
        assert!(matches!(p.models().await, Err(tiller_provider::ProviderError::Auth(_))));
    }
}
