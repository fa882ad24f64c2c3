//! `tiller demo`: the built-in model drives the real tools, and the hints do what they say.

use tiller_testkit::Term;

use crate::common::Place;
use crate::screen::{answer, idle, say};

fn demo(cols: u16, rows: u16) {
    let place = Place::new();
    let at = place.user.join("sample");
    let mut term = place.term(&["demo", "--no-tour", "--at", at.to_str().unwrap()], cols, rows);
    term.wait_text("Say what you want done");
    term.wait_text("demo model");

    // Every hint of the footer does what it says.
    let screen = term.wait_text("f1 help");
    for hint in ["shift-tab mode", "ctrl-p palette", "ctrl-x more", "f1 help"] {
        assert!(hints(&screen).contains(hint), "{hint}: {screen}");
    }
    opens(&mut term, "\x10", "palette");
    opens(&mut term, "\x1bOP", "help");
    opens(&mut term, "\x18", "theme");
    let header = |word: &'static str| move |s: &str| s.lines().next().is_some_and(|l| l.contains(word));
    term.wait("ask before all", header("ASK"));
    term.keys("\x1b[Z");
    term.wait("edits are free", header("EDIT"));
    // Nobody gets into the mode that asks nothing by cycling past it.
    term.keys("\x1b[Z");
    term.wait_text("permission mode AUTO?");
    term.keys("o");
    term.wait("read only", header("READ"));
    term.keys("\x1b[Z");
    term.wait("ask again", header("ASK"));

    say(&mut term, "fix the failing test");
    term.wait("a turn", |s| s.contains("approve?") || s.contains("esc stop"));
    let mut asked = 0;
    loop {
        let screen = term
            .wait("a question or the end", |s| s.contains("[y] yes") || s.contains("All tests pass now."));
        if screen.contains("All tests pass now.") {
            break;
        }
        asked += 1;
        assert!(asked < 12, "{screen}");
        // A question is known by its first line, once its buttons take keys.
        let screen = crate::screen::asked(&term, "[y] yes");
        let lines: Vec<&str> = screen.lines().skip_while(|l| !l.contains("approve?")).collect();
        let first = lines[1].trim_matches(['│', '|', ' ']).to_owned();
        answer(&mut term, &first, "y");
    }
    let screen = idle(&term);
    assert!(screen.contains("All tests pass now.") && screen.contains("4/4"), "{screen}");
    assert!(screen.lines().next().is_some_and(|l| l.contains("demo")), "it is labelled: {screen}");
    let tested = std::process::Command::new("sh").arg("test.sh").current_dir(&at).output().unwrap();
    assert!(tested.status.success(), "the files are mended for real: {tested:?}");
    assert!(asked >= 2, "a command and an edit are asked for");
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}

/// The line of hints.
fn hints(screen: &str) -> &str {
    screen.lines().last().unwrap_or_default()
}

/// A key opens something that says `title`; Escape closes it.
fn opens(term: &mut Term, key: &str, title: &str) {
    assert!(!hints(&term.screen()).contains("esc "), "nothing is open");
    term.keys(key);
    term.wait(title, |s| s.contains(title) && hints(s).contains("esc "));
    term.keys("\x1b");
    term.wait(&format!("the end of {title}"), |s| !hints(s).contains("esc "));
}

#[test]
fn the_demo_at_80x24() {
    demo(80, 24);
}

#[test]
fn the_demo_at_118x25() {
    demo(118, 25);
}
