//! The person's own shell lines (`!`) on the screen: live, ended by Escape, and never blocking the agent.

use serde_json::json;
use tiller_testkit::{Script, Wire};

use crate::common::Place;
use crate::scenario::Model;
use crate::screen::say;

/// Prints something at once, and then nothing for longer than the test waits.
const LONG: &str = "!echo out-$((40+2)); read -t 600 x < <(sleep 600)";

fn lives(cols: u16, lines: u16) {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    let mut term = place.term(&["--profile", "full"], cols, lines);
    term.wait_text("Type what you want done");
    say(&mut term, LONG);
    term.wait("its row, with what it says", |s| s.contains("running") && s.contains("out-42"));
    term.wait("what Escape does", |s| s.lines().last().is_some_and(|l| l.contains("Esc end command")));
    say(&mut term, "!echo later-$((40+3))");
    term.wait("the one that waits", |s| s.contains("waiting for the previous command"));
    // The agent's command ends while the person's runs.
    model.push(Script::new().call("c1", "terminal", json!({"command": "echo agent > made.txt"})));
    model.push(Script::new().text("It is made."));
    say(&mut term, "make it");
    term.wait_text("It is made.");
    assert_eq!(place.read("made.txt"), "agent\n");
    term.wait("still there", |s| s.lines().last().is_some_and(|l| l.contains("Esc end command")));
    term.keys("\x1b");
    term.wait("the next one runs and ends", |s| {
        s.contains("later-43") && !s.contains("waiting for the previous command") && !s.contains("running")
    });
    // Ctrl-C does the same. The text is another one, so that it is not seen before it is typed.
    say(&mut term, &LONG.replace("600)", "601)"));
    term.wait("another one", |s| s.lines().last().is_some_and(|l| l.contains("Esc end command")));
    term.keys("\x03");
    term.wait("its end", |s| s.lines().last().is_some_and(|l| !l.contains("end command")));
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}

#[test]
fn a_line_is_live_and_ends_at_118x25() {
    lives(118, 25);
}

#[test]
fn a_line_is_live_and_ends_at_80x24() {
    lives(80, 24);
}
