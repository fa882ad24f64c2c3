//! Prompts and their results.

use serde_json::{Value, json};
use tiller_testkit::{Reply, Script, ScriptServer, Stop, Wire, file_url};

use super::client::Client;
use crate::common::{Place, calls, says};

/// A PNG of one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// One message on each line; ids and times that differ between runs are replaced by names.
fn pinned(place: &Place, session: &str, messages: &[Value]) -> String {
    let line = |m: &Value| {
        let mut m = m.clone();
        for (place, name) in [("/params/update/updatedAt", "TIME"), ("/result/agentInfo/version", "VERSION")]
        {
            if let Some(value) = m.pointer_mut(place) {
                *value = name.into();
            }
        }
        m.to_string()
    };
    // How text is split into pieces does not matter.
    let mut joined: Vec<Value> = Vec::new();
    for m in messages {
        let words = "/params/update/content/text";
        let same = |last: &Value| {
            let kind = "/params/update/sessionUpdate";
            m.pointer(words).is_some() && last.pointer(kind) == m.pointer(kind)
        };
        match joined.last_mut() {
            Some(last) if same(last) => {
                let more = m.pointer(words).and_then(Value::as_str).unwrap();
                let text = last.pointer_mut(words).unwrap();
                *text = format!("{}{more}", text.as_str().unwrap()).into();
            }
            _ => joined.push(m.clone()),
        }
    }
    let text: Vec<String> = joined.iter().map(line).collect();
    text.join("\n").replace(session, "SESSION").replace(&place.work.display().to_string(), "/work")
}

#[test]
fn a_whole_session_is_told_in_the_protocols_words() {
    let edit = json!({"path": "a.txt", "old_string": "two", "new_string": "2"});
    let todos = json!({"todos": [
        {"id": "1", "content": "Change it", "status": "in_progress"},
        {"id": "2", "content": "Look again", "status": "pending"},
    ], "merge": false});
    let server = ScriptServer::start([
        Reply::script(
            Wire::Anthropic,
            &Script::new().thinking("Hm.", "sig").text("I plan.").call("c1", "todo_write", todos),
        ),
        calls("c2", "read_file", json!({"path": "a.txt"})),
        calls("c3", "edit_file", edit),
        says("Done."),
    ]);
    let place = Place::anthropic(&server);
    place.file("a.txt", "one\ntwo\nthree\n");
    let mut client = Client::start(&place, &["--profile", "ask"]);
    client.ask("initialize", json!({"protocolVersion": 1, "clientInfo": {"name": "t", "version": "0"}}));
    let session = client.session(&place);
    let id = client.say(&session, "change two to 2");
    client.decide("allow_once");
    let end = client.answer(id);
    assert_eq!(end["result"]["stopReason"], "end_turn");
    assert_eq!(place.read("a.txt"), "one\n2\nthree\n");
    insta::assert_snapshot!(pinned(&place, &session, &client.seen));
    assert!(client.close().success());
}

#[test]
fn the_demo_model_works_without_a_key() {
    let place = Place::new();
    place.file("hello.txt", "hello\n");
    let mut client = Client::ready(&place, &["-m", "demo/demo"]);
    let session = client.session(&place);
    assert_eq!(client.turn(&session, "what files are here?"), "end_turn");
    let updates = client.updates(&session);
    assert!(updates.iter().any(|u| u["sessionUpdate"] == "tool_call"), "{updates:#?}");
    assert!(client.text(&session, "agent_message_chunk").len() > 20);
}

#[test]
fn a_command_from_a_file_is_listed_and_sent_as_the_file_is_now() {
    let server = ScriptServer::start([says("First."), says("Second.")]);
    let place = Place::anthropic(&server);
    let mut client = Client::ready(&place, &[]);
    let session = client.session(&place);
    let file = place.home.join("config/commands/deploy.md");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "Deploy it to $ARGUMENTS.").unwrap();
    assert_eq!(client.turn(&session, "/deploy staging"), "end_turn");
    let lists = |m: &Value| {
        let all = m["params"]["update"]["availableCommands"].as_array();
        all.is_some_and(|all| all.iter().any(|c| c["name"] == "deploy"))
    };
    if !client.seen.iter().any(lists) {
        client.until(lists);
    }
    std::fs::write(&file, "Roll $ARGUMENTS back.").unwrap();
    assert_eq!(client.turn(&session, "/deploy staging"), "end_turn");
    let bodies = server.bodies();
    assert!(bodies[0].to_string().contains("Deploy it to staging."), "{}", bodies[0]);
    assert!(bodies[1].to_string().contains("Roll staging back."), "{}", bodies[1]);
    assert!(client.close().success());
}

#[test]
fn pictures_links_and_resources_reach_the_model() {
    let server = ScriptServer::start([says("Seen.")]);
    let place = Place::anthropic(&server);
    place.file("src/a b.txt", "first\nsecond\nthird\n");
    let uri = format!("{}/src/a%20b.txt#L2:3", file_url(&place.work));
    let mut client = Client::ready(&place, &[]);
    let session = client.session(&place);
    let params = json!({"sessionId": session, "prompt": [
        {"type": "text", "text": "look at "},
        {"type": "resource_link", "uri": uri, "name": "a b.txt"},
        {"type": "text", "text": " and "},
        {"type": "resource", "resource": {"uri": "zed:///x", "text": "EMBEDDED", "mimeType": "text/plain"}},
        {"type": "image", "mimeType": "image/png", "data": PIXEL},
        {"type": "resource_link", "uri": "https://example.invalid/d", "name": "far"},
    ]});
    assert_eq!(client.ask("session/prompt", params)["stopReason"], "end_turn");
    let body = &server.bodies()[0]["messages"][0];
    let text = body.to_string();
    for want in ["second", "third", "EMBEDDED", "zed:///x", "[far](https://example.invalid/d)", "image/png"] {
        assert!(text.contains(want), "{want}: {text}");
    }
    assert!(!text.contains("first"), "only the lines that were named: {text}");
}

#[test]
fn parts_of_a_prompt_that_cannot_be_sent_are_refused_and_nothing_goes_out() {
    let server = ScriptServer::start([says("Hi.")]);
    let place = Place::anthropic(&server);
    let mut client = Client::ready(&place, &[]);
    let session = client.session(&place);
    let gone = format!("{}/gone.txt", file_url(&place.work));
    for (part, want) in [
        (json!({"type": "audio", "data": "", "mimeType": "audio/wav"}), "audio"),
        (json!({"type": "image", "data": "!!", "mimeType": "image/png"}), "base64"),
        (json!({"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}), "PNG"),
        (json!({"type": "resource", "resource": {"uri": "x", "blob": "aGVsbG8="}}), "neither text"),
        (json!({"type": "resource", "resource": {"uri": "x"}}), "text or a blob"),
        (json!({"type": "text", "text": "  "}), "empty"),
        (json!({"type": "wish"}), "cannot be read"),
        (json!(7), "cannot be read"),
        (json!({"type": "resource_link", "uri": gone, "name": "gone.txt"}), "gone.txt"),
    ] {
        let answer = client.call("session/prompt", json!({"sessionId": session, "prompt": [part]}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(want), "{want}: {answer}");
    }
    assert_eq!(server.count(), 0);
    assert_eq!(client.turn(&session, "hello"), "end_turn");
}

#[test]
fn the_end_of_a_turn_says_why() {
    let stop = |stop| Reply::script(Wire::Anthropic, &Script::new().text("Half").stop(stop));
    let no = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no such thing"}});
    let look = |id| calls(id, "list_dir", json!({"path": "."}));
    let server = ScriptServer::start([
        stop(Stop::Refusal),
        Reply::status(400).json(&no),
        look("c1"),
        look("c2"),
        says("Never said."),
    ]);
    let place = Place::anthropic(&server);
    place.config("[limits]\nturns = 2\n");
    let mut client = Client::ready(&place, &[]);
    let session = client.session(&place);
    assert_eq!(client.turn(&session, "one"), "refusal");
    let id = client.say(&session, "two");
    let failed = client.answer(id);
    assert_eq!(failed["error"]["code"], -32603, "{failed}");
    assert!(failed["error"]["message"].as_str().unwrap().contains("no such thing"), "{failed}");
    assert_eq!(client.turn(&session, "three"), "max_turn_requests");
    assert!(client.text(&session, "agent_message_chunk").contains("limit"), "{:#?}", client.seen);
}

#[test]
fn a_reply_that_was_cut_at_its_limit_says_so() {
    let cut = || Reply::script(Wire::Anthropic, &Script::new().text("Half").stop(Stop::MaxTokens));
    let server = ScriptServer::with(move |_, _| cut());
    let place = Place::anthropic(&server);
    let mut client = Client::ready(&place, &[]);
    let session = client.session(&place);
    assert_eq!(client.turn(&session, "one"), "max_tokens");
}

/// Seen: the answer to `/compact` never came.
#[test]
fn compacting_returns_when_it_is_done_and_when_there_is_nothing_to_do() {
    let server = ScriptServer::with(move |_, _| says(&"Many words were said about it. ".repeat(40)));
    let place = Place::anthropic(&server);
    let mut client = Client::ready(&place, &[]);
    let session = client.session(&place);
    assert_eq!(client.turn(&session, "/compact"), "end_turn", "nothing was said yet");
    for n in 0..6 {
        assert_eq!(
            client.turn(&session, &format!("{n} {}", "a question of some length? ".repeat(60))),
            "end_turn"
        );
    }
    assert_eq!(client.turn(&session, "/compact keep the numbers"), "end_turn");
    let thought = client.text(&session, "agent_thought_chunk");
    assert!(thought.contains("The conversation was compacted"), "{thought}");
    assert_eq!(client.turn(&session, "and now?"), "end_turn", "the session goes on");
}

#[test]
fn commands_are_offered_and_work() {
    let server = ScriptServer::start([says("One."), says("It was about one.")]);
    let place = Place::anthropic(&server);
    let mut client = Client::ready(&place, &[]);
    let session = client.session(&place);
    let offered = client.until(|m| m["params"]["update"]["sessionUpdate"] == "available_commands_update");
    let names: Vec<&str> = offered["params"]["update"]["availableCommands"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["checkpoint", "compact", "redo", "undo"]);
    assert_eq!(client.turn(&session, "hi"), "end_turn");
    assert_eq!(client.turn(&session, "/checkpoint before it"), "end_turn");
    assert_eq!(client.turn(&session, "/redo"), "end_turn");
    let said = client.text(&session, "agent_message_chunk");
    assert!(said.contains("before it") && said.contains("there is nothing to redo"), "{said}");
    assert_eq!(server.count(), 1, "none of it went to the model");
}
