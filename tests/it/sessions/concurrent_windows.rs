//! S10: one session, two windows.

use rustix::process::Signal;
use tiller_testkit::{Script, Term, Wire};

use crate::common::{Place, signal};
use crate::scenario::Model;
use crate::screen::{idle, say};

/// A window with one answered message, and a second one on the same session, whose question was answered with `key`.
/// `answers`: replies of the model, in order; the first is "First answer.".
fn two_windows(answers: &[&str], key: &str) -> (Model, Place, Term, Term) {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    for text in answers {
        model.push(Script::new().text(text));
    }
    let mut first = place.term(&[], 100, 30);
    first.wait_text("Type what you want done");
    say(&mut first, "hello there");
    first.wait_text("First answer.");
    idle(&first);
    let mut second = place.term(&["-c"], 100, 30);
    second.wait_text("Session already open");
    press(&mut second, key);
    (model, place, first, second)
}

#[test]
fn s10_the_second_window_branches_or_looks_and_a_dead_one_is_no_obstacle() {
    let (model, place, mut first, mut second) = two_windows(
        &[
            "First answer.",
            "Answer on the branch.",
            "Answer on the main path.",
            "More on the branch.",
            "More on the main path.",
            "After the crash.",
        ],
        "b",
    );
    branched(&second);
    say(&mut second, "on my branch");
    second.wait_text("Answer on the branch.");
    // Sent while a turn still runs, the next message would belong to it.
    idle(&second);

    say(&mut first, "on the main path");
    first.wait_text("Answer on the main path.");
    idle(&first);
    // One more turn in each: at its end neither screen nor request contains anything of the other window.
    say(&mut second, "more of mine");
    second.wait_text("More on the branch.");
    say(&mut first, "more of the other");
    first.wait_text("More on the main path.");
    idle(&first);
    idle(&second);
    let asked = model.asked();
    let request = |words: &str| {
        let found = asked.iter().map(|b| b["messages"].to_string()).rfind(|m| m.contains(words));
        found.unwrap_or_else(|| panic!("{words} was not sent"))
    };
    assert!(!request("more of mine").contains("on the main path"));
    assert!(!request("more of the other").contains("on my branch"));
    let strange = ["on my branch", "Answer on the branch.", "more of mine"];
    assert!(!first.showed(0, |s| strange.iter().any(|t| s.contains(t))), "{}", first.screen());
    let strange = ["on the main path", "more of the other"];
    assert!(!second.showed(0, |s| strange.iter().any(|t| s.contains(t))), "{}", second.screen());

    second.keys("\x04");
    assert_eq!(second.wait_exit(), 0);
    signal(first.host().unwrap(), Signal::KILL);
    first.wait_exit();
    // The lease of the dead window is taken over without a question, and the last message was sent there.
    let mut third = place.term(&["-c"], 100, 30);
    third.wait_text("More on the main path.");
    say(&mut third, "and now");
    third.wait_text("After the crash.");
    idle(&third);
    assert!(!third.showed(0, asks), "a dead window still holds its session");
    third.keys("\x04");
    assert_eq!(third.wait_exit(), 0);
}

#[test]
fn s10_the_second_window_only_looks() {
    let (model, place, mut first, mut second) =
        two_windows(&["First answer.", "Answer to the first window."], "r");
    second.wait("the session, to look at", |s| {
        s.lines().next().is_some_and(|l| l.contains("read-only")) && s.contains("First answer.")
    });
    // Nothing is sent; the typed text stays.
    say(&mut second, "can you hear me");
    second.wait_text("open read-only, so nothing can be sent");
    second.wait_text("can you hear me");

    say(&mut first, "only I can");
    first.wait_text("Answer to the first window.");
    idle(&first);
    assert_eq!(model.asked().len(), 2);
    second.keys("\x15");
    second.wait_gone("can you hear me");
    second.keys("\x04");
    assert_eq!(second.wait_exit(), 0);
    // Its end changes nothing in the first one.
    model.push(Script::new().text("Still here."));
    say(&mut first, "and now");
    first.wait_text("Still here.");
    idle(&first);
    first.keys("\x04");
    assert_eq!(first.wait_exit(), 0);
    let shown = place.ok(&["sessions", "show", "last"]);
    assert!(shown.contains("Still here.") && !shown.contains("can you hear me"), "{shown}");
    assert_eq!(place.lines(&["sessions", "list", "--exec", "--json"]).len(), 1);
}

/// The session continues where the last message was sent: on the branch or beside it.
#[test]
fn s10_after_a_branch_it_goes_on_where_the_last_words_were() {
    let (model, place, mut first, mut second) =
        two_windows(&["First answer.", "Answer on the branch.", "On the branch again."], "b");
    branched(&second);
    say(&mut second, "on my branch");
    second.wait_text("Answer on the branch.");
    idle(&second);
    second.keys("\x04");
    assert_eq!(second.wait_exit(), 0);

    // The first window has only its own path open: no window has the branch open now.
    let mut third = place.term(&["-c"], 100, 30);
    third.wait_text("Answer on the branch.");
    say(&mut third, "go on there");
    third.wait_text("On the branch again.");
    idle(&third);
    assert!(!third.showed(0, asks), "the branch is held by the window that does not have it");
    third.keys("\x04");
    assert_eq!(third.wait_exit(), 0);
    let last = model.asked().pop().unwrap()["messages"].to_string();
    let at = |text: &str| last.find(text).unwrap_or_else(|| panic!("{text}: {last}"));
    assert!(at("hello there") < at("on my branch") && at("on my branch") < at("go on there"));
    first.keys("\x04");
    assert_eq!(first.wait_exit(), 0);
    // Both paths are kept.
    let exported = place.ok(&["sessions", "export", "last"]);
    for text in ["First answer.", "Answer on the branch.", "On the branch again."] {
        assert!(exported.contains(text), "{text}: {exported}");
    }
}

/// The branch of the second window is open: the header shows its name, and no longer the read-only mode.
fn branched(term: &Term) {
    term.wait("the branch", |s| {
        let header = s.lines().next().unwrap_or_default();
        header.contains(" on branch-") && !header.contains("read-only") && s.contains("First answer.")
    });
}

/// Whether the question about a session that another window has open is shown.
fn asks(screen: &str) -> bool {
    screen.contains("Session already open")
}

/// Presses a button of a question once it accepts keys.
fn press(term: &mut Term, key: &str) {
    term.wait_cells("buttons that listen", |s| crate::screen::focused(s, &["[n] ", "[b] "]));
    term.keys(key);
    term.wait_gone("Session already open");
}
