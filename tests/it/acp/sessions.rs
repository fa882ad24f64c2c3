//! Sessions: several at once, stored ones, and the choices in them.

use rustix::process::Signal;
use serde_json::{Value, json};
use tiller_testkit::{Reply, Script, ScriptServer, Wire};

use super::client::Client;
use crate::common::{Place, at_work, calls, says, shell, signal, wait};

fn kinds(updates: &[Value]) -> Vec<&str> {
    updates.iter().map(|u| u["sessionUpdate"].as_str().unwrap()).collect()
}

#[test]
fn two_sessions_in_two_folders_run_at_once() {
    let server = ScriptServer::with(|request, _| {
        let body = request.json().to_string();
        if body.contains("tool_result") {
            return says("Written.");
        }
        let name = if body.contains("make left") { "left" } else { "right" };
        shell("c1", &format!("sleep 0.3; touch {name}.txt"))
    });
    let place = Place::anthropic(&server);
    let folder = |name: &str| {
        let dir = place.work.join(name);
        std::fs::create_dir(&dir).unwrap();
        json!({"cwd": dir, "mcpServers": []})
    };
    let mut client = Client::ready(&place, &["--profile", "full"]);
    let (a, b) = (folder("a"), folder("b"));
    let left = client.ask("session/new", a)["sessionId"].as_str().unwrap().to_owned();
    let right = client.ask("session/new", b)["sessionId"].as_str().unwrap().to_owned();
    assert_ne!(left, right);
    let (one, two) = (client.say(&left, "make left"), client.say(&right, "make right"));
    let mut open = vec![one, two];
    while !open.is_empty() {
        let end = client.until(|m| m["result"]["stopReason"].is_string());
        assert_eq!(end["result"]["stopReason"], "end_turn");
        open.retain(|id| end["id"] != *id);
    }
    assert!(place.work.join("a/left.txt").exists() && place.work.join("b/right.txt").exists());
    for session in [&left, &right] {
        assert!(client.text(session, "agent_message_chunk").ends_with("Written."));
    }
    assert_eq!(client.ask("session/close", json!({"sessionId": left})), json!({}));
    let gone = client.call("session/prompt", json!({"sessionId": left, "prompt": []}));
    assert_eq!(gone["error"]["code"], -32002, "{gone}");
    let again = json!({"sessionId": left, "cwd": place.work.join("a"), "mcpServers": []});
    client.ask("session/load", again);
}

#[test]
fn a_session_comes_back_with_all_that_was_said_and_goes_on() {
    let server = ScriptServer::start([
        Reply::script(
            Wire::Anthropic,
            &Script::new().thinking("Hm.", "s").text("I look.").call("c1", "list_dir", json!({"path": "."})),
        ),
        says("One file."),
        says("And on."),
    ]);
    let place = Place::anthropic(&server);
    place.file("a.txt", "A\n");
    let mut client = Client::ready(&place, &[]);
    let session = client.session(&place);
    client.turn(&session, "what is here?");
    assert!(client.close().success());

    let mut client = Client::ready(&place, &[]);
    let list = client.ask("session/list", json!({"cwd": place.work}));
    let row = &list["sessions"][0];
    assert_eq!((&row["sessionId"], &row["cwd"]), (&json!(session), &json!(place.work)));
    assert_eq!(row["title"], "what is here?");
    assert!(list.get("nextCursor").is_none());
    let at = json!({"sessionId": session, "cwd": place.work, "mcpServers": []});
    let loaded = client.ask("session/load", at.clone());
    assert!(loaded["modes"]["currentModeId"].is_string(), "{loaded}");
    let told = client.updates(&session);
    assert_eq!(
        kinds(&told),
        [
            "user_message_chunk",
            "agent_thought_chunk",
            "agent_message_chunk",
            "tool_call",
            "tool_call_update",
            "agent_message_chunk"
        ]
    );
    assert_eq!(told[0]["content"]["text"], "what is here?");
    assert!(told[4]["content"].to_string().contains("a.txt"), "{}", told[4]);
    assert_eq!(client.turn(&session, "go on"), "end_turn");
    assert!(server.bodies()[2].to_string().contains("One file."), "the model knows it, too");
    // Loading an open session again sends its history again, and it stays open.
    client.seen.clear();
    client.ask("session/load", at.clone());
    assert!(client.text(&session, "agent_message_chunk").contains("And on."));
    client.seen.clear();
    client.ask("session/resume", at);
    assert_eq!(client.updates(&session).len(), 0, "resuming tells nothing again");
}

#[test]
fn a_session_that_is_not_there_or_elsewhere_is_refused() {
    let server = ScriptServer::start([says("Hi."), says("Hi again.")]);
    let place = Place::anthropic(&server);
    std::fs::create_dir(place.work.join("sub")).unwrap();
    let mut first = Client::ready(&place, &[]);
    let session = first.session(&place);
    first.turn(&session, "hello");
    let mut client = Client::ready(&place, &[]);
    let mut refused = |session: &str, cwd: Value, code: i64, want: &str| {
        let params = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
        let answer = client.call("session/load", params);
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(want), "{answer}");
    };
    refused("no such", json!(place.work), -32002, "no such");
    refused("01900000-0000-7000-8000-000000000001", json!(place.work), -32002, "there is no session");
    refused(&session, json!(place.work.join("sub")), -32602, "another folder");
    refused(&session, json!("relative"), -32602, "absolute");
    refused(&session, json!(place.work.join("gone")), -32603, "not an accessible folder");
    refused(&session, json!(place.work), -32600, "open in process");
    assert!(first.close().success());
    let at = json!({"sessionId": session, "cwd": place.work, "mcpServers": []});
    client.ask("session/load", at);
    assert_eq!(client.turn(&session, "again"), "end_turn");
}

#[test]
fn what_was_killed_comes_back_and_leaves_no_process() {
    let server = ScriptServer::start([shell("c1", "touch begun; sleep 600"), says("Then not.")]);
    let place = Place::anthropic(&server);
    let mut client = Client::ready(&place, &["--profile", "full"]);
    let session = client.session(&place);
    client.say(&session, "wait long");
    wait("the command", || place.work.join("begun").exists());
    signal(client.child.id(), Signal::KILL);
    drop(client);
    wait("no process", || at_work(&place).is_empty());
    let mut client = Client::ready(&place, &["--profile", "full"]);
    client.ask("session/load", json!({"sessionId": session, "cwd": place.work, "mcpServers": []}));
    let updates = client.updates(&session);
    let failed = updates.iter().find(|u| u["toolCallId"] == "c1" && u["status"] == "failed");
    assert!(failed.is_some_and(|u| u.to_string().contains("Interrupted")), "{updates:#?}");
    assert_eq!(client.turn(&session, "and now?"), "end_turn");
}

#[test]
fn a_permission_that_was_open_at_a_kill_is_asked_again() {
    let server = ScriptServer::start([shell("c1", "touch made.txt"), says("Made.")]);
    let place = Place::anthropic(&server);
    let mut client = Client::ready(&place, &["--profile", "ask"]);
    let session = client.session(&place);
    client.say(&session, "make it");
    client.until(|m| m["method"] == "session/request_permission");
    // It is stored before it can be answered, but the write may be in progress.
    wait("the question on disk", || place.rows("asks").is_some_and(|n| n > 0));
    signal(client.child.id(), Signal::KILL);
    drop(client);
    let mut client = Client::ready(&place, &["--profile", "ask"]);
    client.ask("session/load", json!({"sessionId": session, "cwd": place.work, "mcpServers": []}));
    client.decide("allow_once");
    client.until(|m| m["params"]["update"]["content"]["text"] == "Made.");
    assert!(place.work.join("made.txt").exists());
}

#[test]
fn modes_and_models_can_be_chosen_at_any_time() {
    let server =
        ScriptServer::start([calls("c1", "write_file", json!({"path": "x", "content": "1"})), says("Ok.")]);
    let place = Place::anthropic(&server);
    place.config("[tiers]\nfast = \"anthropic/claude-haiku-4-5\"\n");
    let mut client = Client::ready(&place, &["--profile", "ask"]);
    let made = client.ask("session/new", json!({"cwd": place.work, "mcpServers": []}));
    let session = made["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(made["modes"]["currentModeId"], "ask");
    let ids: Vec<&str> = made["modes"]["availableModes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["read-only", "plan", "ask", "auto-edit", "full"]);
    let mode = |id: &str| json!({"sessionId": session, "modeId": id});
    assert_eq!(client.ask("session/set_mode", mode("auto-edit")), json!({}));
    assert_eq!(client.ask("session/set_mode", mode("auto-edit")), json!({}), "the same once more");
    let wrong = client.call("session/set_mode", mode("yolo"));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    assert!(client.updates(&session).iter().any(|u| u["currentModeId"] == "auto-edit"));
    assert_eq!(client.turn(&session, "write"), "end_turn");
    assert_eq!(place.read("x"), "1", "nobody was asked");
    let option =
        |config: &str, value: Value| json!({"sessionId": session, "configId": config, "value": value});
    let fast = json!("anthropic/claude-haiku-4-5");
    let state = client.ask("session/set_config_option", option("model", fast.clone()));
    assert_eq!(state["configOptions"][1]["currentValue"], fast, "{state}");
    let state = client.ask("session/set_config_option", option("mode", json!("read-only")));
    assert_eq!(state["configOptions"][0]["currentValue"], "read-only", "{state}");
    for (config, value) in [("model", json!("nobody/x")), ("mode", json!(true)), ("size", json!("x"))] {
        let wrong = client.call("session/set_config_option", option(config, value));
        assert!(wrong["error"]["code"].is_number(), "{wrong}");
    }
    let model = json!({"sessionId": session, "modelId": "anthropic/claude-sonnet-4-5"});
    assert_eq!(client.ask("session/set_model", model), json!({}));
}

#[test]
fn long_lists_come_in_pages() {
    let server = ScriptServer::start([says("Hi."), says("Hi."), says("Hi.")]);
    let place = Place::anthropic(&server);
    let mut client = Client::ready(&place, &[]);
    for _ in 0..3 {
        let made = client.ask("session/new", json!({"cwd": place.work, "mcpServers": []}));
        client.turn(made["sessionId"].as_str().unwrap(), "hello");
    }
    drop(client);
    // A run without a screen is not listed for a person.
    let out = place.run(&["exec", "-m", "demo/demo", "hello"]);
    assert_eq!(out.code, Some(0), "{out:?}");
    let mut client = Client::ready(&place, &[]);
    let all = client.ask("session/list", json!({}));
    assert_eq!(all["sessions"].as_array().unwrap().len(), 3);
    let rest = client.ask("session/list", json!({"cursor": "2"}));
    assert_eq!(rest["sessions"], json!([all["sessions"][2]]));
    let none = client.ask("session/list", json!({"cwd": place.user}));
    assert_eq!(none, json!({"sessions": []}));
    assert_eq!(client.call("session/list", json!({"cursor": "x"}))["error"]["code"], -32602);
}
