//! One notice at a start says what waits for the user across sessions, and where.

use serde_json::json;
use tiller_testkit::{Script, Wire};

use crate::common::{Place, run};
use crate::scenario::Model;
use crate::screen::{quit, words};

fn waiting(cols: u16, rows: u16) {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    let mut term = place.term(&[], cols, rows);
    term.wait_text("Type what you want done");
    assert!(!words(&term.screen()).contains("aiting for you"), "nothing waits: {}", term.screen());
    assert_eq!(quit(&mut term), 0);

    // One of each kind, made by a run without a person.
    place.file("notes.txt", "The port is 8080.");
    let proposal = json!({"text": "Be dry.", "why": "shorter answers"});
    model.push(Script::new().call(
        "p1",
        "use_tool",
        json!({"name": "propose_change", "arguments": proposal}),
    ));
    model.push(Script::new().call("r1", "read_file", json!({"path": "notes.txt"})));
    model.push(Script::new().call("m1", "memory", json!({"action": "append", "text": "the port is 8080"})));
    model.push(Script::new().text("Done."));
    place.ok(&["exec", "--profile", "full", "go"]);
    let learning = json!({"pattern": "cargo test fails", "error_type": "", "fix": "use nextest"});
    let out = run(place.tiller(&["learnings", "import", "-"]), format!("{learning}\n").as_bytes());
    assert_eq!(out.code, Some(0), "{out:?}");

    let want = "aiting for you: 1 in /personality, 1 in /memory, 1 in /learnings";
    // Once for each start.
    for _ in 0..2 {
        let mut term = place.term(&[], cols, rows);
        term.wait("what waits", |s| words(s).contains(want) && s.contains("Type what you want done"));
        assert!(!term.showed(0, |s| words(s).matches("aiting for you").count() > 1), "{}", term.screen());
        assert_eq!(quit(&mut term), 0);
    }
}

#[test]
fn a_start_says_what_waits_and_where_at_118x25() {
    waiting(118, 25);
}

#[test]
fn a_start_says_what_waits_and_where_at_80x24() {
    waiting(80, 24);
}
