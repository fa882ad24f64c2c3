//! One search over sessions, memory, learnings and skills: the command, the screen and the model's tool.

use serde_json::{Value, json};
use tiller_testkit::{Script, Wire};

use crate::common::{Place, run};
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
