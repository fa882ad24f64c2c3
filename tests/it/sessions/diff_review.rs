//! The diff review of binary files, and of what commands changed.

use serde_json::json;
use tiller_testkit::{Script, Wire};

use crate::common::{Place, wait};
use crate::scenario::Model;
use crate::screen::{idle, say};

fn binary(cols: u16, lines: u16) {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    let (file, bytes) = (place.work.join("logo.bin"), [0u8, 159, 146, 150, 10, 0, 255]);
    std::fs::write(&file, bytes).unwrap();
    let mut term = place.term(&["--profile", "full"], cols, lines);
    term.wait_text("Type what you want done");
    let patch = "*** Begin Patch\n*** Delete File: logo.bin\n*** End Patch";
    // The first call fails because the file was not read, and is repeated.
    for id in ["c1", "c2"] {
        model.push(Script::new().call(id, "patch", json!({ "patch": patch })));
    }
    model.push(Script::new().text("The logo is gone."));
    say(&mut term, "delete the logo");
    term.wait_text("The logo is gone.");
    idle(&term);
    assert!(!file.exists());

    term.keys("\x18d");
    term.wait("the reason", |s| {
        crate::screen::words(s).contains("Empty, not text, or too large: only the whole file can be reverted")
    });
    crate::common::let_deafness_pass();
    term.keys("R");
    wait("the file as it was", || std::fs::read(&file).is_ok_and(|b| b == bytes));
    term.wait("that it can be undone", |s| {
        s.contains("No changes of this turn are left") && s.contains("z undo")
    });
    term.keys("z");
    wait("the file is gone again", || !file.exists());
    term.wait("the reason", |s| {
        crate::screen::words(s).contains("Empty, not text, or too large: only the whole file can be reverted")
    });
    term.keys("\x1b");
    term.wait_gone("Empty, not text");
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}

#[test]
fn a_deleted_binary_file_comes_back_at_118x25() {
    binary(118, 25);
}

#[test]
fn a_deleted_binary_file_comes_back_at_80x24() {
    binary(80, 24);
}

/// A line of the screen that holds all of these, whatever stands between them.
fn line_with(screen: &str, parts: &[&str]) -> bool {
    let holds = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let line = words.join(" ") + " ";
        parts.iter().all(|part| line.contains(&format!("{part} ")))
    };
    screen.lines().any(holds)
}

/// A command changes two files: the end of the turn, the review, `/diff`, the changes and the log say the same of it, and one
/// `/undo` takes both back.
fn by_command(cols: u16, lines: u16) {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    std::fs::write(place.work.join("a.txt"), "one\ntwo\nthree\n").unwrap();
    std::fs::write(place.work.join("b.txt"), "1\n").unwrap();
    let mut term = place.term(&["--profile", "full"], cols, lines);
    term.wait_text("Type what you want done");
    let line = "sed -i s/two/TWO/ a.txt; for n in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $n >> b.txt; done";
    model.push(Script::new().call("c", "terminal", json!({ "command": line })));
    model.push(Script::new().text("Both are changed."));
    say(&mut term, "change both");
    term.wait_text("Both are changed.");
    term.wait("the end of the turn", |s| line_with(s, &["2 files", "+13 −1"]));
    idle(&term);

    term.keys("\x18d");
    let both =
        |s: &str| line_with(s, &["a.txt", "+1 −1"]) && (cols < 100 || line_with(s, &["b.txt", "+12 −0"]));
    term.wait("the review", both);
    term.keys("\x1b");
    term.wait("the conversation", |s| line_with(s, &["2 files", "+13 −1"]));
    idle(&term);
    say(&mut term, "/diff");
    term.wait("the diff", both);
    term.keys("\x1b1");
    term.wait("the conversation again", |s| line_with(s, &["2 files", "+13 −1"]));
    term.keys("\x1b");
    idle(&term);
    term.keys("\x1b4");
    term.wait("the changes", |s| {
        line_with(s, &["Commands of", "2 +13 −1"])
            && line_with(s, &["M a.txt", "+1 −1"])
            && line_with(s, &["M b.txt", "+12"])
    });
    term.keys("\x1b");
    idle(&term);
    say(&mut term, "/undo");
    term.wait("which files", |s| {
        let said = crate::screen::words(s);
        said.contains("Undone: turn: change both; 2 files were restored: a.txt, b.txt")
    });
    assert_eq!((place.read("a.txt"), place.read("b.txt")), ("one\ntwo\nthree\n".into(), "1\n".into()));
    idle(&term);
    say(&mut term, "/redo");
    term.wait("that they changed again", |s| crate::screen::words(s).contains("Redone: turn: change both"));
    wait("both changed again", || place.read("a.txt").contains("TWO") && place.read("b.txt").len() > 20);
    idle(&term);
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
    // A later window has the same figures, and takes them back.
    let mut term = place.term(&["--profile", "full", "--continue"], cols, lines);
    term.wait("the stored figures", |s| line_with(s, &["2 files", "+13 −1"]));
    idle(&term);
    say(&mut term, "/undo");
    term.wait("which files", |s| crate::screen::words(s).contains("Undone: turn: change both; 2 files"));
    wait("both as they were", || place.read("a.txt") == "one\ntwo\nthree\n" && place.read("b.txt") == "1\n");
    idle(&term);
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}

#[test]
fn files_that_a_command_changed_are_told_and_undone_at_118x25() {
    by_command(118, 25);
}

#[test]
fn files_that_a_command_changed_are_told_and_undone_at_80x24() {
    by_command(80, 24);
}
