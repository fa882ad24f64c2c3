//! A person edits files while a confined command of the agent runs.

use serde_json::json;
use tiller_testkit::{Script, Wire};

use crate::common::{Place, let_deafness_pass, wait};
use crate::scenario::Model;
use crate::screen::{idle, say};

/// The undo takes back what the command did and nothing else; the restore shows what stays. Where commands are not confined, the
/// command is too short for anyone to edit a file.
#[test]
fn w19_what_the_person_edits_while_a_command_runs_stays_theirs() {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    if place.run(&["doctor"]).stdout.contains("no sandbox")
        || !tiller_sandbox::Confinement::find().notification
    {
        return eprintln!("skipped: nothing sees the changes of a command here");
    }
    for name in ["a.txt", "b.txt", "both.txt", "in place.txt"] {
        place.file(name, "before\n");
    }
    let mut term = place.term(&["--profile", "full"], 118, 32);
    term.wait_text("Type what you want done");
    let command = "echo agent > a.txt; echo agent > new.txt; echo agent > 'in place.txt'; touch began; until [ -e go ]; do sleep 0.05; done; rm go began; \
                   echo agent >> both.txt";
    model.push(Script::new().call("c", "terminal", json!({"command": command})));
    model.push(Script::new().text("Both are written."));
    say(&mut term, "write them");
    wait("the command", || place.work.join("began").exists());
    place.file("b.txt", "mine\n");
    place.file("mine.txt", "mine\n");
    place.file("both.txt", "mine\n");
    place.file("in place.txt", "mine\n");
    place.file("go", "");
    term.wait_text("Both are written.");
    idle(&term);
    assert_eq!(place.read("both.txt"), "mine\nagent\n");

    // Changes tells them apart as the undo does.
    term.keys("\x1b4");
    term.wait("whose each change is", |s| {
        let at = |text: &str| s.lines().position(|line| line.contains(text));
        let of_person = |file: &str| {
            let (row, mine, theirs) = (at(file)?, at("You and other")?, at("Commands of")?);
            Some(row > mine && (row < theirs || theirs < mine))
        };
        let is = |file: &str, mine: bool| of_person(file) == Some(mine);
        is("M b.txt", true) && is("A mine.txt", true) && is("M a.txt", false) && is("A new.txt", false)
    });
    term.keys("\x1b");
    idle(&term);

    say(&mut term, "/undo");
    term.wait_text("both.txt.kept-1");
    wait("the undo", || place.read("a.txt") == "before\n");
    idle(&term);
    assert!(!place.work.join("new.txt").exists());
    for (name, text) in [
        ("b.txt", "mine\n"),
        ("mine.txt", "mine\n"),
        ("both.txt", "before\n"),
        ("both.txt.kept-1", "mine\nagent\n"),
        ("in place.txt", "before\n"),
        ("in place.txt.kept-1", "mine\n"),
    ] {
        assert_eq!(place.read(name), text, "{name}");
    }
    say(&mut term, "/redo");
    wait("the redo", || place.read("a.txt") == "agent\n");
    idle(&term);
    assert!(!place.work.join("both.txt.kept-1").exists());

    say(&mut term, "/tree");
    term.wait("the tree", |s| s.contains("Tree of this") && s.contains("● write them now"));
    term.keys("R");
    term.wait("what stays", |s| {
        let row = |name: &str, mark: &str| s.lines().any(|line| line.contains(name) && line.contains(mark));
        s.contains("Restore?") && row("M a.txt", "✓") && !row("M b.txt", "✓") && s.contains("kept-1")
    });
    let_deafness_pass();
    term.keys("f");
    wait("the restore", || place.read("a.txt") == "before\n");
    idle(&term);
    assert_eq!((place.read("b.txt").as_str(), place.read("mine.txt").as_str()), ("mine\n", "mine\n"));
    assert_eq!(place.read("both.txt.kept-1"), "mine\nagent\n");
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}
