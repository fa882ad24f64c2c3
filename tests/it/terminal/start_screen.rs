//! The start screen: the last sessions of the folder, and the keys that open them.

use tiller_testkit::{Recorded, ScriptServer};

use crate::common::{Place, says};
use crate::screen::{idle, quit, say};

fn answered(columns: u16, rows: u16) {
    let server = ScriptServer::with(|request: &Recorded, _| match request.text() {
        text if text.contains("walnut") => says("A walnut is a nut."),
        _ => says("Nothing else."),
    });
    let place = Place::anthropic(&server);
    for prompt in ["what is a walnut?", "anything else?"] {
        let mut term = place.term(&[], columns, rows);
        term.wait_text("Type what you want done");
        say(&mut term, prompt);
        term.wait_text(if prompt.contains("walnut") { "A walnut is a nut." } else { "Nothing else." });
        idle(&term);
        assert_eq!(quit(&mut term), 0);
    }

    let mut term = place.term(&[], columns, rows);
    // A session is called by its first message until the model has found a title.
    let screen =
        term.wait("the sessions", |s| s.contains("Down 1") && s.contains("walnut") && s.contains(" else"));
    let row = |text: &str| screen.lines().position(|l| l.contains(text));
    assert!(row(" else") < row("walnut"), "the last one stands first: {screen}");
    // A digit begins a message.
    term.keys("2 nuts");
    term.wait("the draft", |s| s.contains("▌ 2 nuts"));
    term.keys("\x15");
    term.wait_gone("2 nuts");
    term.keys("\x1b[B");
    term.wait("the selected session", |s| s.contains("Enter open"));
    term.keys("2");
    term.wait_text("A walnut is a nut.");
    say(&mut term, "and its colour?");
    term.wait("the answer in that session", |s| s.matches("A walnut is a nut.").count() > 1);
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn a_session_of_the_start_screen_is_continued_at_118x25() {
    answered(118, 25);
}

#[test]
fn a_session_of_the_start_screen_is_continued_at_80x24() {
    answered(80, 24);
}
