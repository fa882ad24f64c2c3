//! Questions to the person: permissions and the model's own.

use serde_json::{Value, json};
use tiller_testkit::ScriptServer;

use super::client::Client;
use crate::common::{Place, calls, says, shell};

fn option_kinds(asked: &Value) -> Vec<&str> {
    asked["params"]["options"].as_array().unwrap().iter().map(|o| o["kind"].as_str().unwrap()).collect()
}

#[test]
fn a_yes_runs_it_and_a_no_does_not() {
    let server =
        ScriptServer::start([shell("c1", "touch yes.txt"), shell("c2", "touch no.txt"), says("One of two.")]);
    let place = Place::anthropic(&server);
    let mut client = Client::ready(&place, &["--profile", "ask"]);
    let session = client.session(&place);
    let id = client.say(&session, "make both");
    let asked = client.decide("allow_once");
    let call = &asked["params"]["toolCall"];
    assert_eq!((&call["toolCallId"], &call["kind"]), (&json!("c1"), &json!("execute")));
    assert!(call["content"].to_string().contains("touch yes.txt"), "{call}");
    client.decide("reject_once");
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert!(place.work.join("yes.txt").exists() && !place.work.join("no.txt").exists());
    let state = |call: &str| -> Vec<String> {
        let updates = client.updates(&session);
        let of = updates.iter().filter(|u| u["toolCallId"] == call);
        of.filter_map(|u| u["status"].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(state("c1"), ["in_progress", "in_progress", "completed"]);
    assert_eq!(state("c2"), ["in_progress", "failed"]);
}

#[test]
fn always_is_offered_only_where_a_rule_says_exactly_what_it_allows() {
    let server = ScriptServer::start([
        shell("c1", "make check"),
        shell("c2", "make check"),
        shell("c3", "echo $(date) | sh"),
        says("Enough."),
    ]);
    let place = Place::anthropic(&server);
    place.file("Makefile", "check:\n\techo checked >> log\n");
    let mut client = Client::ready(&place, &["--profile", "ask"]);
    let session = client.session(&place);
    let id = client.say(&session, "check twice");
    let asked = client.until(|m| m["method"] == "session/request_permission");
    assert!(option_kinds(&asked).contains(&"allow_always"), "{asked}");
    let options = asked["params"]["options"].as_array().unwrap();
    let in_session = options.iter().find(|o| o["optionId"] == "session").unwrap();
    assert!(in_session["name"].as_str().unwrap().contains("make check"), "the rule is shown: {asked}");
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "session"}});
    client.send(json!({"id": asked["id"], "result": outcome}));
    // The second one is allowed by the rule; for the third there is no correct rule, and it begins with "no".
    let risky = client.until(|m| m["method"] == "session/request_permission");
    let options = risky["params"]["options"].as_array().unwrap();
    // "Outside" stands there only where the machine can confine.
    let offered = options.iter().map(|o| o["optionId"].as_str().unwrap()).filter(|id| *id != "outside");
    assert_eq!(offered.collect::<Vec<_>>(), ["no", "once"], "{risky}");
    assert!(!option_kinds(&risky).contains(&"allow_always"), "{risky}");
    assert_eq!(risky["params"]["toolCall"]["toolCallId"], "c3");
    // An option that was never offered does not count as a yes.
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "always"}});
    client.send(json!({"id": risky["id"], "result": outcome}));
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(place.read("log"), "checked\nchecked\n");
    let told = server.bodies()[3].to_string();
    assert!(told.contains("The user denied this call."), "{told}");
}

#[test]
fn an_answer_that_is_none_is_no() {
    for answer in [
        json!({"result": {"outcome": {"outcome": "cancelled"}}}),
        json!({"result": {"outcome": 7}}),
        json!({"result": null}),
        json!({"error": {"code": -32601, "message": "no such method"}}),
    ] {
        let server = ScriptServer::start([shell("c1", "touch made.txt"), says("No.")]);
        let place = Place::anthropic(&server);
        let mut client = Client::ready(&place, &["--profile", "ask"]);
        let session = client.session(&place);
        let id = client.say(&session, "make it");
        let asked = client.until(|m| m["method"] == "session/request_permission");
        let mut message = answer.clone();
        message["id"] = asked["id"].clone();
        client.send(message);
        assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn", "{answer}");
        assert!(!place.work.join("made.txt").exists(), "{answer}");
    }
}

#[test]
fn a_question_with_choices_is_a_choice() {
    let ask = json!({"question": "Which colour?", "choices": ["red", "blue"], "allow_freetext": false});
    let server = ScriptServer::start([calls("c1", "clarify", ask), says("Blue it is.")]);
    let place = Place::anthropic(&server);
    let mut client = Client::ready(&place, &[]);
    let session = client.session(&place);
    let id = client.say(&session, "paint");
    let asked = client.until(|m| m["method"] == "session/request_permission");
    let options = asked["params"]["options"].as_array().unwrap();
    let names: Vec<&str> = options.iter().map(|o| o["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["red", "blue", "No answer"]);
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": options[1]["optionId"]}});
    client.send(json!({"id": asked["id"], "result": outcome}));
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert!(server.bodies()[1].to_string().contains("the user answered: blue"));
}

#[test]
fn a_question_without_choices_is_answered_by_the_next_prompt() {
    let server = ScriptServer::start([
        calls("c1", "clarify", json!({"question": "What shall it be called?"})),
        says("It is called Ada."),
    ]);
    let place = Place::anthropic(&server);
    let mut client = Client::ready(&place, &[]);
    let session = client.session(&place);
    assert_eq!(client.turn(&session, "make one"), "end_turn");
    assert!(client.text(&session, "agent_message_chunk").ends_with("What shall it be called?"));
    assert_eq!(server.count(), 1);
    assert_eq!(client.turn(&session, "Ada"), "end_turn");
    assert!(server.bodies()[1].to_string().contains("the user answered: Ada"));
    assert!(client.text(&session, "agent_message_chunk").ends_with("It is called Ada."));
}

#[test]
fn a_client_with_forms_gets_one() {
    let ask = |id| calls(id, "clarify", json!({"question": "Which?", "choices": ["a", "b"]}));
    let server = ScriptServer::start([ask("c1"), ask("c2"), says("Good.")]);
    let place = Place::anthropic(&server);
    let mut client = Client::start(&place, &[]);
    let forms = json!({"elicitation": {"form": {}}});
    client.ask("initialize", json!({"protocolVersion": 1, "clientCapabilities": forms}));
    let session = client.session(&place);
    let id = client.say(&session, "go");
    let form = client.until(|m| m["method"] == "elicitation/create");
    assert_eq!(form["params"]["requestedSchema"]["properties"]["choice"]["enum"], json!(["a", "b"]));
    let accepted = json!({"action": "accept", "content": {"answer": "neither of them"}});
    client.send(json!({"id": form["id"], "result": accepted}));
    let form = client.until(|m| m["method"] == "elicitation/create");
    client.send(json!({"id": form["id"], "result": {"action": "decline"}}));
    assert_eq!(client.answer(id)["result"]["stopReason"], "end_turn");
    assert!(server.bodies()[1].to_string().contains("the user answered: neither of them"));
    assert!(server.bodies()[2].to_string().contains("declined to answer"));
}
