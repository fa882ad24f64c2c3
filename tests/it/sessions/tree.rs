//! The tree browser: reading, filtering, branching, restoring, and going to an entry of another session.

use serde_json::json;
use tiller_testkit::{Script, Term, Wire};

use crate::common::Place;
use crate::scenario::Model;
use crate::screen::{idle, say};

/// A turn that writes one word into a file.
fn writes(model: &Model, term: &mut Term, word: &str) {
    model.push(Script::new().call(
        word,
        "write_file",
        json!({"path": "a.txt", "content": format!("{word}\n")}),
    ));
    model.push(Script::new().text(&format!("The file says {word}.")));
    say(term, &format!("write {word}"));
    term.wait_text(&format!("The file says {word}."));
    idle(term);
}

/// Opens it, and waits until the text of this row is shown: it is loaded after the nodes.
fn tree(term: &mut Term, row: &str) -> String {
    say(term, "/tree");
    term.wait("the tree", |s| s.contains("Tree of this project,") && s.contains(row))
}

/// The message at the restored point is in the composer; removes it.
fn drafted(term: &mut Term, words: &str) {
    let sends = |s: &str| s.lines().last().is_some_and(|l| l.contains("Enter send"));
    term.wait("the draft", |s| sends(s) && s.contains(words) && !s.contains("Tree of this project"));
    term.keys("\x15");
    idle(term);
}

/// Rows of the tree, without the columns beside them.
fn rows(screen: &str) -> Vec<String> {
    // Header, title and names of the columns stand above; what follows two blanks is another column.
    let row = |l: &str| l.trim_start().split("  ").next().unwrap_or_default().trim_end().to_owned();
    // Below the last one stands at most the preview.
    let is_row = |l: &&str| l.find(|c: char| c != ' ').is_some_and(|at| at < 6);
    screen.lines().skip(3).take_while(is_row).map(row).collect()
}

fn browse(cols: u16, lines: u16) {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    place.config("[ui]\nbranch_summary = \"never\"\n");
    let mut term = place.term(&["--profile", "full"], cols, lines);
    term.wait_text("Type what you want done");
    writes(&model, &mut term, "one");
    writes(&model, &mut term, "two");

    // Messages only, each with the files that its turn changed; the last one is selected.
    tree(&mut term, "● write two now");
    let screen = term.wait("the measures", |s| {
        s.lines().any(|l| l.contains("● write two now") && l.trim_end_matches('│').contains(" 1"))
    });
    assert_eq!(rows(&screen)[1..], ["● write one", "● write two now"], "{screen}");
    if cols < 100 {
        assert!(!screen.contains("+  two") && !screen.contains("1 file changed"), "no room: {screen}");
        term.keys("p");
    }
    term.wait("the preview", |s| {
        s.contains("1 file changed") && s.contains("−  one") && s.contains("+  two")
    });
    if cols < 100 {
        term.keys("p");
        term.wait_gone("1 file changed");
    }
    // The calls, folded again by the same key.
    term.keys("t");
    term.wait_text("write   a.txt");
    term.keys("t");
    term.wait_gone("write   a.txt");
    // Words, as one types.
    term.keys("/");
    term.keys("says one");
    term.wait("what was found alone", |s| {
        s.contains("1 found")
            && s.contains("· The file says one.")
            && !s.contains("○ write two")
            && !s.contains("● write two")
    });
    term.keys("\r");
    term.keys("\x1b");
    // Its row: the preview may show its words already.
    term.wait_text("● write two");

    // A branch before the second message.
    term.keys("G");
    term.keys("f");
    drafted(&mut term, "write two");
    writes(&model, &mut term, "three");
    tree(&mut term, "● write three  branch  now");
    // The texts of the other rows may arrive later.
    let all = ["● write one", "├─○ write two", "● write three"];
    term.wait("all rows", |s| rows(s).get(1..).is_some_and(|rows| rows == all));
    // Back to before it, conversation and files.
    assert_eq!(place.read("a.txt"), "three\n");
    term.keys("R");
    term.wait("what would change", |s| s.contains("Restore?") && s.contains("a.txt"));
    crate::common::let_deafness_pass();
    term.keys("\r");
    term.wait_gone("Restore?");
    crate::common::wait("the file as it was", || place.read("a.txt") == "two\n");
    drafted(&mut term, "write three");

    // The branch that was left is continued from its row.
    idle(&term);
    say(&mut term, "/tree");
    term.wait("the branches", |s| s.contains("write two  main") && s.contains("branch  now"));
    // Walks through the names: the open branch's first.
    term.keys("gnn");
    term.wait("its row", |s| s.lines().last().is_some_and(|l| l.contains("continue it")));
    let before = place.read("a.txt");
    term.keys("\r");
    // The preview comes first: the files are as that branch left them, though its row is an earlier message.
    term.wait("the question", |s| s.contains("Open the branch main?") && s.contains("none differs"));
    assert_eq!(place.read("a.txt"), before, "nothing moved yet");
    crate::common::let_deafness_pass();
    term.keys("\r");
    term.wait_gone("Tree of this project");
    term.wait_text("The file says two.");
    term.wait_text("/undo reverts it");
    assert_eq!(place.read("a.txt"), before, "the files stay");

    // From a new session to an entry of the first one, which is in the trash first and is restored.
    say(&mut term, "/new");
    term.wait_gone("The file says two.");
    model.push(Script::new().text("Good day."));
    say(&mut term, "hello");
    term.wait_text("Good day.");
    idle(&term);
    let opened = term.written();
    tree(&mut term, "● hello now");
    term.wait_text("2 sessions");
    let listed = |place: &Place| place.lines(&["sessions", "list", "--exec", "--json"]).len();
    term.keys("G");
    crate::common::let_deafness_pass();
    term.keys("x");
    term.wait("the trash", |s| s.contains("  in the trash") && s.contains("x restore"));
    crate::common::wait("one less", || listed(&place) == 1);
    term.keys("x");
    term.wait("it is back", |s| s.contains("x delete"));
    crate::common::wait("both again", || listed(&place) == 2);
    assert!(!term.showed(opened, |s| s.contains("write one")), "the other session is folded");
    term.keys("\x1b[C");
    term.wait_text("write one");
    term.keys("j");
    term.wait("its row", |s| s.lines().last().is_some_and(|l| l.contains("open in terminal")));
    term.keys("R");
    term.wait("what would change there", |s| {
        s.contains("Restore?") && s.contains("before the message write one")
    });
    term.keys("\x1b");
    term.wait_gone("Restore?");
    term.keys("q");
    term.wait_text("The file says two.");
    idle(&term);
    assert_eq!(place.read("a.txt"), "two\n", "only looked at");
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}

#[test]
fn the_tree_at_118x25() {
    browse(118, 25);
}

#[test]
fn the_tree_at_80x24() {
    browse(80, 24);
}

/// A session is exported from its row, in the format of the name's extension.
#[test]
fn a_session_is_exported_from_the_tree() {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    let mut term = place.term(&["--profile", "full"], 80, 24);
    term.wait_text("Type what you want done");
    writes(&model, &mut term, "one");
    tree(&mut term, "● write one now");
    // The proposed name is made of the title, which arrives after the reply.
    term.wait_text("Mend the sum");
    for (ending, holds) in [("md", "write one"), ("html", "<html"), ("jsonl", "{\"tiller\":\"session\"")] {
        term.keys("E");
        term.wait_text("mend-the-sum.md");
        term.keys("\x15");
        term.wait_gone("mend-the-sum.md");
        let name = format!("out.{ending}");
        say(&mut term, &name);
        crate::common::wait("the file", || {
            std::fs::read_to_string(place.work.join(&name))
                .is_ok_and(|t| t.contains(holds) && t.contains("says one"))
        });
        term.wait("the tree", |s| s.lines().last().is_some_and(|l| l.contains("fork here")));
    }
    // An existing file is not overwritten.
    term.keys("E");
    term.wait_text("mend-the-sum.md");
    term.keys("\x15");
    term.wait_gone("mend-the-sum.md");
    let before = place.read("out.md");
    say(&mut term, "out.md");
    term.wait("why not", |s| s.contains("out.md") && s.contains("already"));
    assert_eq!(place.read("out.md"), before);
    // The exported file can be imported.
    let mut other = Place::new();
    other.set("HOME", &place.user.display().to_string());
    assert!(
        other
            .ok(&["sessions", "import", place.work.join("out.jsonl").to_str().unwrap()])
            .contains("Imported")
    );
    term.keys("q");
    idle(&term);
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}

/// Agents are attached where they were started; one is opened from there, and left again.
fn agents(cols: u16, lines: u16) {
    let place = Place::new();
    place.file("walnut.txt", "brown\n");
    let mut term = place.term(&["-m", "demo/demo", "--profile", "full"], cols, lines);
    idle(&term);
    say(&mut term, "delegate: read walnut.txt; run echo shell");
    term.wait_text("All agents have ended");
    idle(&term);
    say(&mut term, "/tree");
    // The panel of agents names them too.
    let rows = |s: &str| {
        s.contains("Tree of this project")
            && s.contains("✓ a1 read walnut.txt")
            && s.contains("✓ a2 run echo shell")
    };
    // The mark of the open place comes with the tree of its session.
    term.wait("the agents", |s| rows(s) && s.matches(" now").count() == 1);
    // The first one's calls, in the tree.
    term.keys("j");
    term.wait("its row", |s| s.lines().last().is_some_and(|l| l.contains("Enter open ")));
    term.keys("\x1b[C");
    term.wait_text("● read walnut.txt");
    term.keys("j\x1b[C");
    term.wait_text("read    walnut.txt");
    term.keys("\r");
    term.wait("its conversation", |s| {
        !s.contains("Tree of this project") && s.contains("It begins: \"brown\"")
    });
    term.keys("\x1b");
    term.wait_text("Esc back to main");
    // From there: its place within the whole.
    term.keys("\x18T");
    term.wait("the tree around it, with the place of the agent", |s| {
        s.contains("delegate: read") && s.lines().any(|l| l.contains(" now") && !l.contains("delegate:"))
    });
    term.keys("q");
    term.wait_text("Esc back to main");
    term.keys("\x1b");
    term.wait_text("All agents have ended");
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}

#[test]
fn agents_in_the_tree_at_118x25() {
    agents(118, 25);
}

#[test]
fn agents_in_the_tree_at_80x24() {
    agents(80, 24);
}

#[test]
fn a_hit_on_a_branch_that_was_left_is_shown_in_the_tree() {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    place.config("[ui]\nbranch_summary = \"never\"\n");
    let mut term = place.term(&["--profile", "full"], 80, 24);
    term.wait_text("Type what you want done");
    writes(&model, &mut term, "one");
    writes(&model, &mut term, "two");
    tree(&mut term, "● write two now");
    term.keys("f");
    drafted(&mut term, "write two");
    writes(&model, &mut term, "three");
    term.keys("\x18F");
    term.wait_text("Find in");
    term.keys("says two");
    term.wait_text("1 of 1");
    term.keys("\r");
    term.wait("the tree", |s| {
        s.contains("Tree of this project")
            && s.contains("says two.  main")
            && s.contains("● write three  branch  now")
    });
    // One more key branches there.
    term.keys("f");
    term.wait_gone("Tree of this project");
    term.wait_text("The file says two.");
    idle(&term);
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}
