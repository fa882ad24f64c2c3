//! Agents that the main one starts, as a client sees them.

use serde_json::json;
use tiller_testkit::ScriptServer;

use super::client::Client;
use crate::common::{Place, calls, says, shell};

#[test]
fn calls_of_an_agent_are_told_and_its_end_is_not_the_end_of_the_prompt() {
    let server = ScriptServer::start([
        // The agent's call has the same id as the call that started it.
        calls("c1", "delegate_task", json!({"tasks": [{"goal": "make a file", "label": "maker"}]})),
        shell("c1", "touch made.txt"),
        says("It is made."),
        says("All of it is done."),
    ]);
    let place = Place::anthropic(&server);
    let mut client = Client::ready(&place, &["--profile", "ask"]);
    let session = client.session(&place);
    let id = client.say(&session, "have it made");
    let asked = client.decide("allow_once");
    let call = &asked["params"]["toolCall"];
    assert_eq!(call["toolCallId"], "a1:c1", "{asked}");
    assert!(call["title"].as_str().unwrap().starts_with("a1: "), "{asked}");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert!(place.work.join("made.txt").exists());
    let text = client.text(&session, "agent_message_chunk");
    assert!(text.contains("All of it is done.") && !text.contains("It is made."), "{text}");
    let updates = client.updates(&session);
    let state = |call: &str| -> Vec<&str> {
        let of = updates.iter().filter(|u| u["toolCallId"] == call);
        of.filter_map(|u| u["status"].as_str()).collect()
    };
    assert_eq!(state("c1"), ["in_progress", "completed"], "{updates:#?}");
    assert_eq!(state("a1:c1"), ["in_progress", "in_progress", "completed"], "{updates:#?}");
    assert!(client.close().success());
}

#[test]
fn a_cancel_ends_the_agents_too_and_their_calls_are_told_as_failed() {
    let server = ScriptServer::start([
        calls("c1", "delegate_task", json!({"tasks": [{"goal": "wait long", "label": "waiter"}]})),
        shell("c2", "echo begun > begun.txt; sleep 3000"),
        says("Never said."),
    ]);
    let place = Place::anthropic(&server);
    let mut client = Client::ready(&place, &["--profile", "full"]);
    let session = client.session(&place);
    let id = client.say(&session, "have it wait");
    client.until(|m| {
        let update = &m["params"]["update"];
        update["toolCallId"] == "a1:c2" && update["status"] == "in_progress"
    });
    client.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(client.answer(id)["result"]["stopReason"], "cancelled");
    client.until(|m| {
        let update = &m["params"]["update"];
        update["toolCallId"] == "a1:c2" && update["status"] == "failed"
    });
    assert!(client.close().success());
}
