//! Invalid messages, and methods that the protocol does not have.

use serde_json::{Value, json};
use tiller_testkit::ScriptServer;

use super::client::Client;
use crate::common::{Place, Seed, says};

#[test]
fn garbage_is_refused_line_by_line_and_nothing_breaks() {
    let server = ScriptServer::start([says("Still here.")]);
    let place = Place::anthropic(&server);
    let mut client = Client::ready(&place, &[]);
    let session = client.session(&place);
    for (line, code) in [
        (&b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\n"[..], -32700),
        (b"\xff\xfe\x00\x01\n", -32700),
        (b"[[[[[[[[[[[[[[[[[[[[[[\n", -32700),
        (b"[]\n", -32600),
        (b"\"text\"\n", -32600),
        (b"{}\n", -32600),
        (b"{\"id\": {}, \"method\": \"x\"}\n", -32600),
    ] {
        client.raw(b"\n  \n");
        client.raw(line);
        let answer = client.until(|m| m.get("error").is_some());
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(code)), "{answer}");
    }
    client.raw(&[b"[".repeat(200_000), b"\n".to_vec()].concat());
    assert_eq!(client.until(|m| m.get("error").is_some())["error"]["code"], -32700);
    // Noise is answered or ignored, and the next prompt works.
    let mut seed = Seed(7);
    for _ in 0..200 {
        let len = usize::try_from(seed.next().unwrap() % 60).unwrap();
        let mut line: Vec<u8> = (0..len)
            .map(|_| u8::try_from(seed.next().unwrap() % 256).unwrap())
            .filter(|b| *b != b'\n')
            .collect();
        line.push(b'\n');
        client.raw(&line);
    }
    assert_eq!(client.turn(&session, "hello"), "end_turn");
}

#[test]
fn unknown_methods_are_refused_and_unknown_notifications_passed_over() {
    let server = ScriptServer::start([says("Hi.")]);
    let place = Place::anthropic(&server);
    let mut client = Client::start(&place, &[]);
    let early = client.call("session/new", json!({"cwd": place.work, "mcpServers": []}));
    assert_eq!(early["error"]["code"], -32600, "initialize comes first: {early}");
    let hello = client.ask("initialize", json!({"protocolVersion": 99}));
    assert_eq!(hello["protocolVersion"], 1, "ours, whatever the client asks for");
    assert_eq!(client.ask("authenticate", json!({"methodId": "x"})), json!({}));
    for method in ["session/fly", "_vendor/thing", "fs/read_text_file", ""] {
        let answer = client.call(method, json!({}));
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
    let session = client.session(&place);
    client.notify("_vendor/news", json!({"a": [1, 2]}));
    client.notify("session/cancel", json!({"sessionId": "nobody"}));
    client.notify("session/cancel", json!(7));
    client.notify("session/cancel", json!({"sessionId": session}));
    client.notify("$/cancel_request", json!({"requestId": 4711}));
    // Answers that no request waits for.
    client.send(json!({"id": format!("{session}/99"), "result": {}}));
    client.send(json!({"id": 5, "result": {"outcome": {"outcome": "selected", "optionId": "once"}}}));
    for (method, params) in [
        ("session/new", json!({"mcpServers": []})),
        ("session/new", json!({"cwd": "relative", "mcpServers": []})),
        ("session/prompt", json!({"sessionId": session})),
        ("session/prompt", json!({"sessionId": session, "prompt": "text"})),
        ("session/set_mode", json!({"sessionId": session})),
    ] {
        let answer = client.call(method, params);
        assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}");
    }
    for method in ["session/prompt", "session/close", "session/set_mode"] {
        let params = json!({"sessionId": "nobody", "prompt": [], "modeId": "ask"});
        assert_eq!(client.call(method, params)["error"]["code"], -32002, "{method}");
    }
    assert_eq!(client.turn(&session, "hello"), "end_turn");
}

#[test]
fn without_a_model_a_session_says_what_to_do() {
    let place = Place::new();
    let mut client = Client::ready(&place, &[]);
    let answer = client.call("session/new", json!({"cwd": place.work, "mcpServers": []}));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("No model is configured") && message.contains("ANTHROPIC_API_KEY"), "{answer}");
    place.config("[ui]\nthem = \"x\"\n");
    let answer = client.call("session/new", json!({"cwd": place.work, "mcpServers": []}));
    assert!(answer["error"]["message"].as_str().unwrap().contains("theme"), "{answer}");
}
