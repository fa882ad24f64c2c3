//! Keys at a real terminal: those of the queue, and a key that the person binds to an action.

use serde_json::json;
use tiller_testkit::{Script, Wire};

use crate::common::{Place, poll, wait};
use crate::scenario::Model;
use crate::screen::{idle, say, shell_runs, type_in};

#[test]
fn messages_that_wait_are_moved_changed_and_sent_in_their_order() {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(model.wire, &model.server);
    let until = json!({"command": "until [ -e go ]; do sleep 0.1; done", "timeout": 300});
    model.push(Script::new().call("c1", "terminal", until));
    for said in ["It came.", "The third is done.", "The second is done."] {
        model.push(Script::new().text(said));
    }
    let mut term = place.term(&["--profile", "full"], 118, 25);
    term.wait_text("Type what you want done");
    say(&mut term, "wait for it");
    term.wait("a running command", shell_runs);
    for (n, text) in ["second thing", "third thing"].into_iter().enumerate() {
        type_in(&mut term, text);
        term.keys("\t");
        term.wait_text(&format!("queue {}: {text}", n + 1));
    }
    // The list: the first is selected; it moves one down, and is edited.
    term.keys("\x18j");
    term.wait("the list", |s| s.lines().last().is_some_and(|l| l.contains("J move down")));
    term.keys("J");
    term.wait("the new order", |s| {
        s.contains("1  queue  third thing") && s.contains("2  queue  second thing")
    });
    term.keys("e");
    term.wait("the field", |s| s.lines().last().is_some_and(|l| l.contains("keep")));
    term.keys(" and more");
    term.wait_text("second thing and more");
    term.keys("\r");
    term.wait_text("2  queue  second thing and more");
    term.keys("\x1b");
    term.wait("the end of the list", |s| s.lines().last().is_some_and(|l| !l.contains("J move down")));
    place.file("go", "");
    term.wait_text("The second is done.");
    idle(&term);
    let asked: Vec<String> = model.asked().iter().map(|r| r["messages"].to_string()).collect();
    assert_eq!(asked.len(), 4);
    assert!(!asked[1].contains("thing"), "they wait for the end of the turn: {}", asked[1]);
    assert!(asked[2].contains("third thing") && !asked[2].contains("second thing"), "{}", asked[2]);
    assert_eq!(asked[3].matches("second thing").count(), 1, "sent once, as it was changed: {}", asked[3]);
    assert!(asked[3].contains("second thing and more"));
    model.assert_only_grows();
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}

#[test]
fn a_key_that_is_recorded_works_at_once_and_at_the_next_start() {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(model.wire, &model.server);
    let mut term = place.term(&[], 118, 25);
    term.wait_text("Type what you want done");
    term.keys("\x18K");
    term.wait("the list", |s| s.lines().last().is_some_and(|l| l.contains("Esc close")));
    say(&mut term, "help.open");
    term.wait_text("Press the key");
    // F9.
    term.keys("\x1b[20~");
    term.wait_text("This key is free");
    crate::common::let_deafness_pass();
    term.keys("y");
    let file = place.home.join("config/keys.toml");
    wait("the file", || std::fs::read_to_string(&file).is_ok_and(|t| t.contains("f9 = \"help.open\"")));
    // The key file is read again automatically; until then the key does nothing. Pressed twice before the screen is drawn, it
    // would open the help again after it was closed.
    wait("the key", || {
        term.keys("\x1b[20~");
        let open = || term.screen().contains("Type to search all keys").then_some(());
        poll(std::time::Duration::from_secs(15), open).is_some()
    });
    term.keys("\x1b");
    idle(&term);
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
    let mut term = place.term(&[], 118, 25);
    term.wait_text("Type what you want done");
    term.keys("\x1b[20~");
    term.wait_text("Type to search all keys");
    term.keys("\x1b");
    idle(&term);
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}

#[test]
fn what_waits_after_a_stop_goes_out_by_an_enter_alone() {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(model.wire, &model.server);
    model.push(Script::new().call("c1", "terminal", json!({"command": "sleep 1000", "timeout": 2000})));
    model.push(Script::new().text("It is brown."));
    let mut term = place.term(&["--profile", "full"], 118, 25);
    term.wait_text("Type what you want done");
    say(&mut term, "wait for it");
    term.wait("a running command", shell_runs);
    type_in(&mut term, "which colour?");
    term.keys("\t");
    term.wait_text("queue 1: which colour?");
    term.keys("\x1b");
    // It waits for the person, and the hints say how to send it.
    term.wait("the hint", |s| {
        s.lines().last().is_some_and(|l| l.trim_start().starts_with("Enter send queued"))
    });
    assert_eq!(model.asked().len(), 1);
    term.keys("\r");
    term.wait_text("It is brown.");
    idle(&term);
    assert!(model.asked()[1]["messages"].to_string().contains("which colour?"));
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}
