//! Going back by parts: some hunks of a file, in the dialog, as a person does.

use serde_json::json;
use tiller_testkit::{Script, Wire};

use crate::common::{Place, wait};
use crate::screen::{idle, say};
use crate::story::Model;

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
    term.wait_text("Say what you want done");
    let now = twenty("SECOND", "LAST");
    let edit = "sed -i 's/second/SECOND/; s/last/LAST/' a.txt";
    model.push(Script::new().call("c", "terminal", json!({"command": edit})));
    model.push(Script::new().text("Both are loud."));
    say(&mut term, "make them loud");
    term.wait_text("Both are loud.");
    idle(&term);
    assert_eq!(place.read("a.txt"), now);

    say(&mut term, "/tree");
    term.wait("the tree", |s| s.contains("tree of this") && s.contains("> make them loud now"));
    term.keys("R");
    term.wait("what would change", |s| s.contains("go back?") && s.contains("[x] M a.txt"));
    // The first hunk stays as it is.
    term.keys("x");
    term.wait("a part", |s| s.contains("[~] M a.txt") && s.contains("1 of 2 hunks"));
    term.keys("f");
    term.wait_text("a.txt is partly as it was");
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
