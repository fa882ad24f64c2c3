//! Restoring parts, and the summary that is offered when a branch is left.

use serde_json::json;
use tiller_testkit::{Script, Wire};

use crate::common::{Place, wait};
use crate::scenario::Model;
use crate::screen::{drafted, idle, say};

fn twenty(second: &str, last: &str) -> String {
    let line = |n: usize| match n {
        2 => second.to_owned(),
        19 => last.to_owned(),
        n => format!("line {n}"),
    };
    (1..=20).map(|n| line(n) + "\n").collect()
}

fn by_hunk(cols: u16, lines: u16) {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    std::fs::write(place.work.join("a.txt"), twenty("second", "last")).unwrap();
    let mut term = place.term(&["--profile", "full"], cols, lines);
    term.wait_text("Type what you want done");
    let now = twenty("SECOND", "LAST");
    let edit = "sed -i 's/second/SECOND/; s/last/LAST/' a.txt";
    model.push(Script::new().call("c", "terminal", json!({"command": edit})));
    model.push(Script::new().text("Both are loud."));
    say(&mut term, "make them loud");
    term.wait_text("Both are loud.");
    idle(&term);
    assert_eq!(place.read("a.txt"), now);

    say(&mut term, "/tree");
    term.wait("the tree", |s| s.contains("Tree of this") && s.contains("● make them loud now"));
    term.keys("R");
    term.wait("what would change", |s| s.contains("Restore?") && s.contains("✓ M a.txt"));
    crate::common::let_deafness_pass();
    // The first hunk is left as it is.
    term.keys("x");
    term.wait("a part", |s| s.contains("◐ M a.txt") && s.contains("1 of 2 hunks"));
    term.keys("f");
    term.wait_text("a.txt was partly restored");
    wait("one hunk of it", || place.read("a.txt") == twenty("SECOND", "last"));
    idle(&term);
    say(&mut term, "/ops");
    term.wait("its row", |s| s.contains("a.txt (partly)"));
    term.keys("\x1b");
    term.wait_gone("a.txt (partly)");
    say(&mut term, "/undo");
    wait("all of it again", || place.read("a.txt") == now);
    idle(&term);
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}

#[test]
fn some_hunks_at_118x25() {
    by_hunk(118, 25);
}

#[test]
fn some_hunks_at_80x24() {
    by_hunk(80, 24);
}

fn leave(cols: u16, lines: u16) {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    let mut term = place.term(&["--profile", "full"], cols, lines);
    term.wait_text("Type what you want done");
    for (ask, answer) in [("first", "One."), ("second", "The library is too old.")] {
        model.push(Script::new().text(answer));
        say(&mut term, ask);
        term.wait_text(answer);
        idle(&term);
    }
    let fork = |term: &mut tiller_testkit::Term, row: &str| {
        say(term, "/tree");
        term.wait("the tree", |s| s.contains("Tree of this") && s.contains(row));
        term.keys("f");
        term.wait("the question", |s| {
            s.contains("Summarize the branch that you left?")
                && s.contains("[no summary]")
                && !s.contains("Tree of this")
        });
    };
    // That branch was left before; Enter means no summary, and the message can be sent again.
    fork(&mut term, "● second now");
    term.keys("\r");
    term.wait_gone("Summarize the branch");
    drafted(&term, "second");
    assert_eq!(model.left(), 0);
    model.push(Script::new().text("Done by hand."));
    term.keys("\r");
    term.wait_text("Done by hand.");
    idle(&term);
    // With instructions: the request contains them, and the summary is on the new branch.
    fork(&mut term, "● second  branch  now");
    crate::common::let_deafness_pass();
    term.keys("\t");
    term.wait_text("[summary]");
    term.keys("\t");
    term.wait_text("[with instructions]");
    crate::common::let_deafness_pass();
    term.keys("\r");
    term.wait_text("what to keep:");
    let before = model.server.requests().len();
    say(&mut term, "the versions");
    term.wait_text("The summary of that branch was added.");
    let asked = model.server.requests()[before..].iter().any(|r| r.text().contains("the versions"));
    assert!(asked, "the instructions go to the summariser");
    drafted(&term, "second");
    term.keys("\x15");
    idle(&term);
    let exported = place.ok(&["sessions", "export", "last"]);
    assert!(exported.contains("branch_summary") && exported.contains("the versions"), "{exported}");
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}

#[test]
fn a_summary_of_what_is_left_is_offered_at_118x25() {
    leave(118, 25);
}

#[test]
fn a_summary_of_what_is_left_is_offered_at_80x24() {
    leave(80, 24);
}
