//! Two solutions of one task: try one, go back, try the other, compare both, and keep the best parts.

use serde_json::json;
use tiller_testkit::{Script, Wire};

use crate::common::{Place, wait};
use crate::scenario::Model;
use crate::screen::{drafted, idle, say};

const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

/// The head other than `main`, from the export.
fn branch(place: &Place) -> String {
    let exported = place.ok(&["sessions", "export", "last"]);
    let at = exported.find("branch-").unwrap();
    exported[at..at + "branch-00000000".len()].to_owned()
}

/// A turn that writes a file and changes a line of another.
fn way(model: &Model, name: &str, sed: &str) {
    let write = json!({"path": format!("{name}.txt"), "content": format!("way {name}\n")});
    model.push(Script::new().call(&format!("w{name}"), "write_file", write));
    let change = json!({"command": format!("sed -i {sed} shared.txt")});
    model.push(Script::new().call(&format!("s{name}"), "terminal", change));
    model.push(Script::new().text(&format!("Way {name} is done.")));
}

/// A repository with a submodule and a nested repository that is not registered, both with uncommitted changes.
fn crowded(place: &Place) {
    let other = place.home.join("other");
    let at = other.display().to_string();
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join("part.txt"), "a part\n").unwrap();
    for args in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "part"]] {
        place.git(&[&["-C", &at], args].concat());
    }
    place.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &at, "sub"]);
    place.git(&["commit", "-qm", "with a part"]);
    place.file("nested/inner.txt", "inner\n");
    place.git(&["-C", "nested", "init", "-q"]);
    place.git(&["-C", "nested", "add", "."]);
    place.git(&["-C", "nested", "commit", "-qm", "inner"]);
    place.file("sub/part.txt", "a part, changed\n");
    place.file("nested/inner.txt", "inner, changed\n");
}

/// Files that Tiller must never change: every file of every git folder, and the files of the nested repositories.
fn untouched(place: &Place) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    fn walk(dir: &std::path::Path, all: &mut Vec<(std::path::PathBuf, Vec<u8>)>) {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, all);
            } else {
                all.push((path.clone(), std::fs::read(&path).unwrap()));
            }
        }
    }
    let mut all = Vec::new();
    for name in [".git", "sub", "nested"] {
        let dir = place.work.join(name);
        if dir.exists() {
            walk(&dir, &mut all);
        }
    }
    all.sort();
    all
}

#[test]
fn two_approaches_are_tried_compared_and_joined() {
    story(false);
}

#[test]
fn the_same_in_a_repository_with_a_submodule_and_a_nested_one() {
    story(true);
}

fn story(inner: bool) {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    place.config("[ui]\nbranch_summary = \"never\"\n");
    place.file("shared.txt", TEN);
    for args in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "start"]] {
        place.git(args);
    }
    if inner {
        crowded(&place);
    }
    let theirs = untouched(&place);
    let mut term = place.term(&["--profile", "full"], 118, 34);
    term.wait_text("Type what you want done");
    way(&model, "a", "s/9/nine/");
    say(&mut term, "do it as A");
    term.wait_text("Way a is done.");
    idle(&term);

    // Back to before the first solution: conversation and files.
    term.keys("\x18r");
    term.wait("the keys of the tree", |s| s.lines().last().is_some_and(|l| l.contains(" R ")));
    term.keys("R");
    term.wait("what would change", |s| s.contains("Restore?") && s.contains("✓ D a.txt"));
    crate::common::let_deafness_pass();
    term.keys("\r");
    wait("the files as they were", || !place.work.join("a.txt").exists() && place.read("shared.txt") == TEN);
    term.wait_text("on branch-");
    // The message is in the composer again, to be edited.
    drafted(&term, "do it as A");
    term.keys("\x15");
    idle(&term);
    way(&model, "b", "s/2/two/");
    say(&mut term, "do it as B");
    term.wait_text("Way b is done.");
    idle(&term);

    say(&mut term, "/compare");
    term.wait("the other branch", |s| {
        s.contains("Compare this branch with") && s.contains("▌ main  do it as A")
    });
    term.keys("\r");
    term.wait("the files of both", |s| {
        s.contains("   Messages   Command")
            && s.contains("A a.txt")
            && s.contains("D b.txt")
            && s.contains("M shared.txt")
    });
    term.keys("\t");
    term.wait("what was said", |s| s.contains("Way a is done.") && s.contains("Way b is done."));
    crate::common::let_deafness_pass();
    term.keys("!");
    term.wait_text("run on both:");
    say(&mut term, "cat *.txt | tail -12; grep -q way a.txt");
    term.wait("what it gave on each", |s| {
        s.contains("exit 0 after") && s.contains("exit 2 after") && s.contains("nine") && s.contains("two")
    });
    // One file of the first solution, and its change of a file that both changed.
    term.keys("\t");
    term.wait_text("   Messages   Command");
    term.keys("T");
    term.wait_text("Taken from main: a.txt");
    assert_eq!(place.read("a.txt"), "way a\n");
    term.keys("jj");
    term.wait_text("+  nine");
    term.keys("T");
    term.wait_text("Taken from main: shared.txt");
    assert_eq!(place.read("shared.txt"), TEN.replace("9\n", "nine\n").replace("2\n", "two\n"));
    term.keys("q");
    term.wait_gone("   Messages   Command");

    say(&mut term, "/undo");
    wait("the file as it was", || place.read("shared.txt") == TEN.replace("2\n", "two\n"));
    term.wait_text("Undone: take files from main; shared.txt was restored");
    say(&mut term, "/undo");
    term.wait_text("Undone: take files from main; a.txt was restored");
    assert!(!place.work.join("a.txt").exists());
    say(&mut term, "/redo");
    term.wait_text("Redone: take files from main");
    assert!(place.work.join("a.txt").exists());
    say(&mut term, "/ops");
    term.wait("the log", |s| {
        s.contains("redo take files from main") && s.contains("fork") && s.contains("restore files: do it as")
    });
    term.keys("\x1b");
    term.wait_gone("Operations, newest first");
    idle(&term);
    let second = branch(&place);
    // An old message is found, and another branch begins there.
    term.keys("\x18F");
    term.wait_text("Find in");
    term.keys("\"way a\"");
    term.wait("the hit", |s| {
        s.lines().any(|l| l.contains("way a\"") && l.contains("1 of ")) && s.contains("Way a is")
    });
    term.keys("\x18f");
    term.wait_gone("Find in");
    term.wait("the end of the first way", |s| s.contains("Way a is done.") && !s.contains("Way b is done."));
    idle(&term);
    // Entries of the log count, and the tree has both branches.
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
    let compared = place.lines(&["sessions", "compare", "--json", "main", &second]);
    let paths: Vec<&str> =
        compared[0]["files"].as_array().unwrap().iter().filter_map(|f| f["path"].as_str()).collect();
    assert_eq!(paths, ["a.txt", "b.txt", "shared.txt"]);
    assert_eq!(compared[0]["left"]["said"][0]["text"], "do it as A");
    let text = place.ok(&["sessions", "compare", "main", &second]);
    assert!(text.contains("> ") && text.contains("Way b is done.") && text.contains("+two"), "{text}");
    let wrong = place.run(&["sessions", "compare", "main", "nothing"]);
    assert!(wrong.code != Some(0) && wrong.stderr.contains("no branch, tag or entry 'nothing'"), "{wrong:?}");
    let exported = place.ok(&["sessions", "export", "last"]);
    assert!(exported.contains("Way a is done.") && exported.contains("Way b is done."), "{exported}");
    assert!(untouched(&place) == theirs, "their repositories are not touched");
}
