//! `tiller demo`: the built-in model uses the real tools, and the hints do what they say.

use tiller_testkit::Term;

use crate::common::Place;
use crate::screen::{answer, idle, say, shell_runs};

fn demo(cols: u16, rows: u16) {
    let place = Place::new();
    let at = place.user.join("sample");
    let mut term = place.term(&["demo", "--no-tour", "--at", at.to_str().unwrap()], cols, rows);
    term.wait_text("Type what you want done");
    term.wait_text("demo model");

    // Every hint of the footer does what it says.
    let screen = term.wait_text("F1 help");
    for hint in ["Shift-Tab mode", "Ctrl-P palette", "Ctrl-X more", "F1 help"] {
        assert!(hints(&screen).contains(hint), "{hint}: {screen}");
    }
    opens(&mut term, "\x10", "Palette");
    opens(&mut term, "\x1bOP", "Help");
    opens(&mut term, "\x18", "Ctrl-X  then");
    let header = |word: &'static str| move |s: &str| s.lines().next().is_some_and(|l| l.contains(word));
    term.wait("ask before all", header("ASK"));
    term.keys("\x1b[Z");
    term.wait("edits are free", header("EDIT"));
    // Cycling does not enter the mode without approvals by accident.
    term.keys("\x1b[Z");
    crate::screen::confirm(&mut term, "Switch to AUTO mode?", "[y] yes, AUTO", "o");
    term.wait("read only", header("READ"));
    term.keys("\x1b[Z");
    term.wait("plan first", header("PLAN"));
    term.keys("\x1b[Z");
    term.wait("ask again", header("ASK"));

    say(&mut term, "fix the failing test");
    term.wait("a turn", |s| s.contains(crate::screen::ASKED) || s.contains("Esc stop"));
    let mut asked = 0;
    loop {
        let screen = term
            .wait("a question or the end", |s| s.contains("[y] once") || s.contains("All tests pass now."));
        if screen.contains("All tests pass now.") {
            break;
        }
        asked += 1;
        assert!(asked < 12, "{screen}");
        // A question is recognised by its first line, once its buttons accept keys.
        let screen = crate::screen::asked(&mut term, "[y] once");
        let first = crate::screen::target(&screen);
        answer(&mut term, &first, "y");
    }
    idle(&term);
    // A notice about the modes covers a small screen for a few seconds.
    let screen = term.wait("the end of it", |s| s.contains("All tests pass now.") && !s.contains("3/4"));
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

/// A key opens a dialog with `title`; Escape closes it.
fn opens(term: &mut Term, key: &str, title: &str) {
    assert!(!hints(&term.screen()).contains("Esc "), "nothing is open");
    term.keys(key);
    term.wait(title, |s| s.contains(title) && hints(s).contains("Esc "));
    term.keys("\x1b");
    term.wait(&format!("the end of {title}"), |s| !hints(s).contains("Esc "));
}

#[test]
fn the_demo_at_80x24() {
    demo(80, 24);
}

#[test]
fn the_demo_at_118x25() {
    demo(118, 25);
}

/// Each step of the guided tour works as described, with the key that it names, and leads to the next one.
#[test]
fn the_guided_tour_can_be_done_as_it_says() {
    let place = Place::new();
    let at = place.user.join("sample");
    let mut term = place.term(&["demo", "--at", at.to_str().unwrap()], 118, 25);
    let step = |term: &Term, n: usize| term.wait_text(&format!("tour {n}/13"));
    let escape = |term: &mut Term| {
        term.keys("\x1b");
        crate::common::let_escape_pass();
    };
    step(&term, 1);
    // Doing the next step skips the welcome.
    say(&mut term, "fix the failing test");
    step(&term, 3);
    loop {
        let screen = term
            .wait("a question or the end", |s| s.contains("[y] once") || s.contains("All tests pass now."));
        if screen.contains("All tests pass now.") {
            break;
        }
        let screen = crate::screen::asked(&mut term, "[y] once");
        let first = crate::screen::target(&screen);
        answer(&mut term, &first, "y");
    }
    step(&term, 4);
    idle(&term);
    term.keys("\x1b6");
    term.wait_text("op_sub()");
    step(&term, 5);
    escape(&mut term);
    idle(&term);
    say(&mut term, "run sleep 600");
    term.wait("a running command", shell_runs);
    step(&term, 5);
    say(&mut term, "and then this");
    step(&term, 6);
    escape(&mut term);
    step(&term, 7);
    // The steering message waits: it comes back to be edited.
    term.wait_text("stopped");
    term.keys("\x1b[A");
    term.wait_gone("steer 1: and then this");
    term.keys("\x15");
    term.keys("\x1b1");
    term.wait("the keys of the conversation", |s| hints(s).contains("Enter open"));
    step(&term, 7);
    crate::common::let_pass(std::time::Duration::from_millis(300));
    term.keys("\r");
    step(&term, 8);
    escape(&mut term);
    idle(&term);
    say(&mut term, "ask me something");
    term.wait_text("Question from main");
    crate::screen::unfold(&mut term);
    crate::common::let_deafness_pass();
    term.keys("3");
    step(&term, 9);
    idle(&term);
    say(&mut term, "run git push");
    term.wait_text("the demo pushes nothing");
    idle(&term);
    say(&mut term, "/hooks");
    // The conversation behind the list names the hook too, and the rows arrive after the list is open.
    term.wait("the hook that denied", |s| {
        hints(s).contains("Esc ") && s.lines().any(|l| l.contains("no push") && l.contains("denied"))
    });
    // The list covers the title of the step.
    escape(&mut term);
    step(&term, 10);
    idle(&term);
    say(&mut term, "file an issue: div by zero");
    term.wait_text("wants to call");
    crate::screen::unfold(&mut term);
    crate::common::let_deafness_pass();
    term.keys("y");
    term.wait_text("Issue 1 was added");
    assert!(std::fs::read_to_string(at.join("ISSUES.md")).unwrap().contains("1. div by zero"));
    idle(&term);
    say(&mut term, "/mcp");
    term.wait("the servers", |s| {
        hints(s).contains("Esc ") && s.contains("issues") && s.contains("demo") && !s.contains("Loading...")
    });
    // The list covers the title of the step.
    escape(&mut term);
    step(&term, 11);
    idle(&term);
    std::fs::write(at.join("mine.txt"), "by hand\n").unwrap();
    term.wait_text("mine.txt");
    term.keys("\x1b4");
    step(&term, 12);
    escape(&mut term);
    idle(&term);
    term.keys("\x10");
    step(&term, 13);
    escape(&mut term);
    idle(&term);
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}

/// Answers the question about this command once.
fn allow(term: &mut Term, command: &str) {
    answer(term, command, "y");
}

/// What is remembered, learned and known outlasts a session: a story over three of them.
#[test]
fn a_story_over_three_sessions() {
    let place = Place::new();
    let at = place.user.join("sample");
    let at = at.to_str().unwrap();
    let leave = |mut term: Term| {
        idle(&term);
        term.keys("\x04");
        assert_eq!(term.wait_exit(), 0);
    };
    let begin = |args: &[&str]| {
        let term = place.term(args, 118, 25);
        term.wait_text("Type what you want done");
        idle(&term);
        term
    };
    // The first session remembers, and makes a mistake.
    let mut term = begin(&["demo", "--no-tour", "--at", at]);
    say(&mut term, "remember: calc.sh knows whole numbers only");
    term.wait_text("Every later session begins with it");
    idle(&term);
    say(&mut term, "make a mistake");
    allow(&mut term, "sh calc add 2 3");
    allow(&mut term, "sh calc.sh add 2 3");
    term.wait_text("Tiller proposes a learning");
    idle(&term);
    say(&mut term, "/learnings");
    term.wait("a proposed one", |s| s.contains("proposed"));
    crate::common::let_deafness_pass();
    term.keys("\x18a");
    term.wait("an active learning", |s| s.contains("active") && !s.contains("proposed"));
    term.keys("\x1b");
    leave(term);
    // The second one knows both.
    let later = ["-C", at, "-m", "demo/demo"];
    let mut term = begin(&later);
    say(&mut term, "what do you remember");
    // The start screen shows the first message of the session before, which has the same words.
    term.wait("the answer", |s| s.contains("This is remembered") && s.contains("whole numbers only"));
    idle(&term);
    say(&mut term, "make a mistake");
    allow(&mut term, "sh calc add 2 3");
    term.wait_text("came with a learning");
    allow(&mut term, "sh calc.sh add 2 3");
    term.wait_text("failed as before");
    idle(&term);
    let marked = |s: &str| s.lines().any(|l| l.contains("calc add 2 3") && l.contains("learning 1"));
    term.wait("the row of the call names the learning", marked);
    say(&mut term, "/learnings");
    term.wait("it is listed", |s| s.contains("active"));
    term.keys("\x1b");
    leave(term);
    // The mark is there after a restart too, and one key there says that the learning was wrong.
    let mut term = begin(&["-C", at, "-m", "demo/demo", "--continue"]);
    term.wait("the mark is stored", marked);
    term.keys("\x1b1");
    term.wait_text("came with a learning");
    crate::screen::press_until(&mut term, "k", |s| s.contains("learning was wrong"));
    term.keys("x");
    term.wait_text("not attached any more");
    crate::screen::press_until(&mut term, "\x1b", |s| !s.contains("learning was wrong"));
    crate::common::let_deafness_pass();
    say(&mut term, "/learnings");
    term.wait("it is retired", |s| s.contains("retired"));
    term.keys("\x1b");
    leave(term);
    // The third one works with a skill, and the person removes what was remembered.
    let mut term = begin(&later);
    say(&mut term, "use the skill code-review");
    term.wait_text("its parts are in the todo list");
    idle(&term);
    say(&mut term, "/memory");
    term.wait_text("whole numbers only");
    crate::common::let_deafness_pass();
    term.keys("\x18d");
    term.wait_gone("whole numbers only");
    term.keys("\x1b");
    idle(&term);
    say(&mut term, "what do you remember");
    term.wait_text("This is remembered");
    let screen = idle(&term);
    assert!(screen.contains("This is remembered") && !screen.contains("whole numbers only"), "{screen}");
    leave(term);
}
