//! Cancelled turns, and the end of the program: nothing hangs, and no process is left.

use rustix::process::Signal;
use serde_json::json;
use tiller_testkit::{Reply, Script, ScriptServer, Wire};

use super::client::Client;
use crate::common::{Place, TIMEOUT, at_work, poll, says, shell, signal, wait};

/// A reply that stops in the middle and stays open.
fn hangs(text: &str) -> Reply {
    let body = Script::new().text(text).body(Wire::Anthropic);
    let body = String::from_utf8(body).unwrap();
    let cut = body.split("event: content_block_stop").next().unwrap().to_owned();
    Reply::sse(cut).hang()
}

#[test]
fn a_turn_is_cancelled_in_mid_stream_and_the_next_one_works() {
    let server = ScriptServer::start([hangs("half of it"), says("All of it.")]);
    let place = Place::anthropic(&server);
    let mut client = Client::ready(&place, &[]);
    let session = client.session(&place);
    let id = client.say(&session, "go");
    client.until(|m| m["params"]["update"]["content"]["text"].as_str().is_some_and(|t| t.contains("half")));
    let busy = client
        .call("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": "x"}]}));
    assert_eq!(busy["error"]["code"], -32600, "one prompt at a time: {busy}");
    client.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
    assert_eq!(client.turn(&session, "again"), "end_turn");
    assert!(server.bodies()[1].to_string().contains("half of it"), "what had come is kept");
}

#[test]
fn a_request_that_is_taken_back_is_cancelled_too() {
    let server = ScriptServer::start([hangs("half")]);
    let place = Place::anthropic(&server);
    let mut client = Client::ready(&place, &[]);
    let session = client.session(&place);
    let id = client.say(&session, "go");
    wait("the request", || server.count() == 1);
    client.notify("$/cancel_request", json!({"requestId": id}));
    assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
}

#[test]
fn a_turn_is_cancelled_while_it_asks_and_while_it_runs() {
    let server = ScriptServer::start([
        shell("c1", "touch never.txt"),
        shell("c2", "touch begun; sleep 600"),
        says("Then not."),
    ]);
    let place = Place::anthropic(&server);
    let mut client = Client::ready(&place, &["--profile", "ask"]);
    let session = client.session(&place);
    let id = client.say(&session, "one");
    let asked = client.until(|m| m["method"] == "session/request_permission");
    client.notify("session/cancel", json!({"sessionId": session}));
    client.send(json!({"id": asked["id"], "result": {"outcome": {"outcome": "cancelled"}}}));
    assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
    assert!(!place.work.join("never.txt").exists());
    client.ask("session/set_mode", json!({"sessionId": session, "modeId": "full"}));
    let id = client.say(&session, "two");
    wait("the command", || place.work.join("begun").exists());
    client.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
    let own = client.child.id();
    wait("no process but ours", || at_work(&place).iter().all(|(pid, _)| *pid == own));
    assert_eq!(client.turn(&session, "three"), "end_turn");
}

#[test]
fn x12_closed_input_ends_everything_also_what_asks_and_what_runs() {
    let server = ScriptServer::with(|request, _| {
        let asks = request.json().to_string().contains("ask me");
        if asks { shell("c1", "touch never.txt") } else { shell("c2", "touch begun; sleep 600") }
    });
    let place = Place::anthropic(&server);
    let mut client = Client::ready(&place, &["--profile", "ask"]);
    let (asking, running) = (client.session(&place), client.session(&place));
    client.ask("session/set_mode", json!({"sessionId": running, "modeId": "full"}));
    client.say(&running, "run");
    client.say(&asking, "ask me");
    client.until(|m| m["method"] == "session/request_permission");
    wait("the command", || place.work.join("begun").exists());
    assert!(client.close().success());
    wait("no process", || at_work(&place).is_empty());
    // The question ended with its client: the session continues without it.
    let shown = place.ok(&["sessions", "show", &asking]);
    assert!(shown.contains("touch never.txt"), "{shown}");
    assert!(!place.work.join("never.txt").exists(), "X12: nobody said yes");
    let rows = place.lines(&["audit", "--json"]);
    let row = rows.iter().find(|r| r["what"].to_string().contains("never.txt")).unwrap();
    assert_eq!((&row["decision"], &row["outcome"]), (&json!("none"), &json!("interrupted")), "X12: {row}");
}

#[test]
fn signals_end_it_in_order() {
    for sent in [Signal::TERM, Signal::INT, Signal::HUP] {
        let server = ScriptServer::start([shell("c1", "touch begun; sleep 600")]);
        let place = Place::anthropic(&server);
        let mut client = Client::ready(&place, &["--profile", "full"]);
        let session = client.session(&place);
        let id = client.say(&session, "run");
        wait("the command", || place.work.join("begun").exists());
        signal(client.child.id(), sent);
        assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
        let status = poll(TIMEOUT, || client.child.try_wait().unwrap()).unwrap();
        assert_eq!(status.code(), Some(130));
        wait("no process", || at_work(&place).is_empty());
    }
}

#[test]
fn a_client_that_does_not_read_cannot_keep_it() {
    use std::io::Write;
    use std::process::Stdio;
    // More than the pipe and every queue can hold.
    let flood = Script::new().text(&"x".repeat(4 << 20)).pieces_of(20_000).body(Wire::Anthropic);
    let server = ScriptServer::start([Reply::sse(flood)]);
    let place = Place::anthropic(&server);
    let mut child = place
        .tiller(&["acp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut say = |m: serde_json::Value| writeln!(input, "{m}").unwrap();
    say(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}));
    say(
        json!({"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": place.work, "mcpServers": []}}),
    );
    let session = {
        use std::io::{BufRead, BufReader};
        let mut lines = BufReader::with_capacity(64, child.stdout.as_mut().unwrap()).lines();
        let made = lines.by_ref().map(|l| l.unwrap()).find(|l| l.contains("\"id\":2")).unwrap();
        let made: serde_json::Value = serde_json::from_str(&made).unwrap();
        made["result"]["sessionId"].as_str().unwrap().to_owned()
    };
    let text = [json!({"type": "text", "text": "go"})];
    say(
        json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {"sessionId": session, "prompt": text}}),
    );
    wait("the request", || server.count() == 1);
    drop(input);
    let status = poll(TIMEOUT, || child.try_wait().unwrap());
    if status.is_none() {
        child.kill().unwrap();
    }
    assert!(status.is_some_and(|s| s.success()), "it ends: {status:?}");
}
