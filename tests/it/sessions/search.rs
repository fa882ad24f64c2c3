//! One search over sessions, memory, learnings and skills: the command, the screen and the model's tool.

use serde_json::{Value, json};
use tiller_testkit::{Recorded, Reply, Script, ScriptServer, Wire};

use crate::common::{Place, run, wait};
use crate::scenario::Model;
use crate::screen::{press_until, quit};

fn place(model: &Model) -> Place {
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    place
}

/// The rows of a search that are no entries, as their kind and title.
fn documents(place: &Place, words: &[&str]) -> Vec<(String, String)> {
    let rows = place.lines(&[&["sessions", "search", "--json"], words].concat());
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    rows.iter().filter(|r| r["kind"].is_string()).map(|r| (text(r, "kind"), text(r, "title"))).collect()
}

fn learning_is_found(cols: u16, rows: u16) {
    let model = Model::new(Wire::Anthropic);
    let place = place(&model);
    let line = json!({
        "pattern": "`make deploy`", "fix": "open the tunnel to bastion-2 first", "error_type": "connection refused",
        "tool": "terminal", "subject": "make deploy",
    });
    let out = run(place.tiller(&["learnings", "import", "-"]), line.to_string().as_bytes());
    assert_eq!(out.code, Some(0), "{out:?}");
    assert_eq!(documents(&place, &["bastion"]), [], "it waits for the person");
    place.ok(&["learnings", "accept", "1"]);
    assert_eq!(documents(&place, &["bastion"]), [("learning".into(), "1: make deploy".into())]);
    assert!(place.ok(&["sessions", "search", "tunnels"]).contains("open the [tunnel] to bastion-2"));
    let nowhere = place.run(&["sessions", "search", "tunnels", "--project", "/nope"]);
    assert!(nowhere.code != Some(0) && nowhere.stderr.contains("There is no folder /nope"), "{nowhere:?}");
    let filtered = place.ok(&["sessions", "search", "walnut", "--role", "tool"]);
    assert!(filtered.contains("Nothing found with these filters"), "{filtered}");

    model.push(Script::new().call("c1", "session_search", json!({"query": "deploy tunnel"})));
    model.push(Script::new().text("Through the tunnel."));
    place.ok(&["exec", "how is it shipped"]);
    let said = model.asked()[1]["messages"].to_string();
    assert!(said.contains("learning 1: make deploy") && said.contains("connection refused"), "{said}");

    let mut term = place.term(&[], cols, rows);
    term.wait_text("Type what you want done");
    term.keys("\x18F");
    term.wait_text("Find in this folder");
    // Letter by letter: a search whose place a later one takes says nothing.
    for letter in ["r", "e", "f", "u", "s", "e", "d"] {
        term.keys(letter);
    }
    term.wait("the learning", |s| s.contains("learning") && s.contains("connection refused"));
    assert!(!term.screen().contains("cancelled"), "{}", term.screen());
    // What is retired is found no more: the next letters are another search.
    place.ok(&["learnings", "retire", "1"]);
    term.keys("\x7f");
    term.wait("no learning", |s| !s.lines().any(|l| l.contains("learning") && l.contains("refuse")));
    press_until(&mut term, "\x1b", |s| !s.contains("Find in"));
    assert_eq!(quit(&mut term), 0);
    assert_eq!(documents(&place, &["bastion"]), []);
}

#[test]
fn a_learning_is_found_by_command_tool_and_screen_until_it_is_retired_at_118x25() {
    learning_is_found(118, 25);
}

#[test]
fn a_learning_is_found_by_command_tool_and_screen_until_it_is_retired_at_80x24() {
    learning_is_found(80, 24);
}

/// A server for vectors that knows that two words mean the same.
fn vectors() -> ScriptServer {
    let vector = |text: &Value| {
        let text = text.as_str().unwrap_or_default();
        let same = ["chestnut", "marron"].iter().any(|word| text.contains(word));
        json!({"embedding": if same { [1.0, 0.1] } else { [0.0, 1.0] }})
    };
    ScriptServer::with(move |request: &Recorded, _| {
        let texts = request.json()["input"].as_array().cloned().unwrap_or_default();
        Reply::status(200).json(&json!({"data": texts.iter().map(vector).collect::<Vec<_>>()}))
    })
}

#[test]
fn an_import_is_found_by_meaning_after_a_start_without_a_turn() {
    let (model, vectors) = (Model::new(Wire::Anthropic), vectors());
    let place = place(&model);
    place.config(&format!("[embeddings]\nurl = \"{}/v1\"\nmodel = \"m\"\n", vectors.url()));
    let from = concat!(env!("CARGO_MANIFEST_DIR"), "/src/commands/transcript/import/fixtures/pi.jsonl");
    place.file("old/pi.jsonl", &std::fs::read_to_string(from).unwrap());
    place.ok(&["sessions", "import", "old/pi.jsonl"]);
    let found = || place.run(&["sessions", "search", "marron", "--all"]);
    let before = found();
    assert!(before.stdout.contains("Nothing found"), "{before:?}");
    assert!(before.stderr.contains("Searched by keywords only."), "{before:?}");
    let mut term = place.term(&[], 100, 30);
    term.wait_text("Type what you want done");
    wait("the vectors", || found().stdout.contains("chestnut"));
    let after = found();
    assert!(!after.stderr.contains("keywords"), "{after:?}");
    assert_eq!(quit(&mut term), 0);
    assert!(model.asked().is_empty(), "without a turn");
}
