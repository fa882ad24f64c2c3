//! Each key of the agents panel.

use tiller_testkit::{Reply, ScriptServer, Term};

use crate::common::{Place, TIMEOUT, calls, let_pass, poll, says};
use crate::screen::{agent_row, idle, quit, say};

/// The last message of the person, or of a parent, in a request.
fn last_words(body: &serde_json::Value) -> String {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let user = messages.iter().rev().find(|m| m["role"] == "user");
    user.map_or_else(String::new, |m| m["content"].to_string())
}

fn server() -> ScriptServer {
    ScriptServer::with(|request, _| {
        let words = last_words(&request.json());
        let has = |text: &str| words.contains(text);
        match () {
            () if has("tool_result") => says("It is written."),
            () if has("write a note") => calls(
                "c1",
                "write_file",
                serde_json::json!({"path": "note.txt", "content": "a walnut stands here\n"}),
            ),
            () if has("another way") => says("Another way was taken."),
            () if has("wait for ever") => Reply::silence(),
            () if has("ask for red") => calls(
                "q1",
                "clarify",
                serde_json::json!({"question": "Is it red?", "choices": ["yes", "no"]}),
            ),
            () if has("ask for blue") => calls(
                "q2",
                "clarify",
                serde_json::json!({"question": "Is it blue?", "choices": ["yes", "no"]}),
            ),
            () => says("Yes."),
        }
    })
}

/// Focuses the panel and selects the first agent below main.
fn panel(term: &mut Term) {
    term.keys("\x1b3");
    term.wait_text("K stop all");
    term.keys("g");
    term.keys("j");
}

/// Focuses the panel and keeps the selection.
fn panel_again(term: &mut Term) {
    term.keys("\x1b3");
    term.wait_text("k end");
}

/// Once only: the same key brings a question back.
fn put_aside(term: &mut Term, until: impl Fn(&str) -> bool) {
    term.keys("\x18-");
    term.wait("answer it later", until);
}

/// Whether the question is open: it is shown elsewhere than in its agent's row.
fn asks(screen: &str, what: &str) -> bool {
    let open = screen.lines().any(|l| l.contains(what) && !l.contains("▲ a"));
    open && screen.contains("Enter answer")
}

/// Opens this question, by the panel's key unless it opens by itself.
fn reach(term: &mut Term, what: &str) {
    let there = poll(TIMEOUT, || {
        let screen = term.screen();
        if asks(&screen, what) {
            return Some(());
        }
        // Pressed twice before the screen is drawn, the second key would go to the question.
        let hints = |s: &str| s.lines().last().unwrap_or_default().to_owned();
        let before = hints(&screen);
        if screen.contains("k end") {
            term.keys("n");
        } else if !screen.contains("Enter answer") {
            term.keys("\x1b3");
        }
        let_pass(std::time::Duration::from_millis(300));
        poll(std::time::Duration::from_secs(10), || (hints(&term.screen()) != before).then_some(()));
        None
    });
    assert!(there.is_some(), "{}", term.screen());
}

/// Presses a key until it takes effect, since questions ignore keys at first.
fn press(term: &mut Term, key: &str, until: impl Fn(&str) -> bool) {
    crate::screen::press_until(term, key, until);
}

fn ended(cols: u16, rows: u16) {
    let server = server();
    let place = Place::anthropic(&server);
    let mut term = place.term(&["--profile", "auto-edit"], cols, rows);
    term.wait_text("Type what you want done");
    say(&mut term, "/spawn write a note");
    term.wait_text("Agent a1 started");
    panel(&mut term);
    term.wait("its end", |s| agent_row(s, "a1 ").contains("✓"));
    // Its changes.
    term.keys("d");
    term.wait("its change", |s| s.contains("note.txt") && s.contains("a walnut stands here"));
    term.keys("\x1b");
    term.wait_gone("a walnut stands here");
    // Its limits.
    term.keys("l");
    term.wait("its limits", |s| s.contains("Limits of a1") && s.contains("requests"));
    term.keys("\x15");
    say(&mut term, "turns 7");
    term.wait_text("The limits of agent a1 were changed");
    // It is done: there is nothing to pause.
    term.keys("p");
    term.wait_text("a1 write a note has ended");
    // A branch before its last message, whose text can be edited.
    term.keys("b");
    term.wait_text("Summarize the branch that you left?");
    term.keys("\r");
    term.wait_gone("Summarize the branch that you left?");
    let composed = |s: &str| {
        let first = |l: &str| l.trim_start_matches(['▌', ' ']).starts_with("write a note");
        s.contains("a1 write a note") && !s.contains("It is written.") && s.lines().any(first)
    };
    term.wait("its words in the composer", composed);
    term.keys("\x15");
    say(&mut term, "take another way");
    term.wait_text("Another way was taken.");
    let bodies = server.bodies();
    let body = bodies.iter().rfind(|b| last_words(b).contains("another way")).unwrap();
    assert!(!body["messages"].to_string().contains("write a note"), "{}", body["messages"]);
    // Another model for its next requests.
    panel(&mut term);
    term.keys("M");
    term.wait("the models", |s| s.contains("demo/demo") && s.contains("Enter choose"));
    term.keys("demo/demo");
    term.wait("the one model", |s| s.contains("▌ demo/demo"));
    term.keys("\r");
    term.wait_gone("Enter choose");
    panel(&mut term);
    term.keys("s");
    term.wait_text("Esc back to main");
    say(&mut term, "help");
    term.wait_text("I am the built-in demo");
    assert!(!server.bodies().iter().any(|b| last_words(b).contains("help")), "it was not asked any more");
    term.keys("\x1b0");
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn one_that_has_ended_is_looked_through_branched_and_goes_on_with_another_model_at_118x25() {
    ended(118, 25);
}

#[test]
fn one_that_has_ended_is_looked_through_branched_and_goes_on_with_another_model_at_80x24() {
    ended(80, 24);
}

fn at_work(cols: u16, rows: u16) {
    let server = server();
    let place = Place::anthropic(&server);
    let mut term = place.term(&[], cols, rows);
    term.wait_text("Type what you want done");
    say(&mut term, "/spawn wait for ever");
    say(&mut term, "/spawn ask for red");
    // Its row shows the question before the dialog is open.
    term.wait("the first question", |s| s.contains("Question from") && s.contains("Is it red?"));
    crate::screen::unfold(&mut term);
    term.wait("the first question", |s| asks(s, "Is it red?"));
    // Dismissed, so that the next can open; and that one, too.
    // In full, or in brief where the header has no room.
    let aside = |s: &str| !s.contains("Enter answer") && (s.contains("you · Ctrl-X a") || s.contains("▲ "));
    put_aside(&mut term, aside);
    say(&mut term, "/spawn ask for blue");
    term.wait("the second question", |s| s.contains(" of 2"));
    crate::screen::unfold(&mut term);
    term.wait("the second question", |s| s.contains(" of 2") && s.contains("Enter answer"));
    put_aside(&mut term, aside);
    term.wait("both wait", |s| s.contains("▲ 2"));
    panel(&mut term);
    // n goes from one waiting agent to the next, and opens its question.
    let open = asks;
    term.keys("g");
    term.keys("n");
    let screen = term.wait("a question", |s| open(s, "Is it red?") || open(s, "Is it blue?"));
    let (first, second) = match open(&screen, "Is it red?") {
        true => ("Is it red?", "Is it blue?"),
        false => ("Is it blue?", "Is it red?"),
    };
    term.keys("\x18-");
    reach(&mut term, second);
    press(&mut term, "1", |s| !open(s, second));
    term.wait("one less", |s| s.contains("▲ 1"));
    reach(&mut term, first);
    press(&mut term, "2", |s| !open(s, first));
    // A key that was typed after a question is in the composer.
    term.keys("\x15");
    panel_again(&mut term);
    term.wait("both are done", |s| s.contains("Finished 2") && !agent_row(s, "a2 ").contains("●"));
    // No agent waits any more: they are in the order of their start.
    panel(&mut term);
    // At once while it waits for a model.
    term.keys("p");
    term.wait("the pause", |s| agent_row(s, "a1 ").contains("paused"));
    term.keys("p");
    term.wait("it continues", |s| agent_row(s, "a1 ").contains("●"));
    term.keys("b");
    term.wait_text("a1 wait for ever is working");
    // Without an answer everything is stopped, after a confirmation.
    term.keys("K");
    term.wait_text("Stop everything?");
    term.keys("\r");
    term.wait_gone("Stop everything?");
    // The focus was on "no": the agent can still be paused, which an ended one cannot.
    term.keys("p");
    term.wait("the pause", |s| agent_row(s, "a1 ").contains("paused"));
    term.keys("p");
    term.wait("it continues", |s| agent_row(s, "a1 ").contains("●"));
    term.keys("K");
    crate::screen::confirm(&mut term, "Stop everything?", "[y] stop everything", "y");
    term.wait("its end", |s| s.contains("Finished 3  1 cancelled"));
    term.keys("\x1b");
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn those_at_work_are_paused_answered_one_after_the_other_and_stopped_at_118x25() {
    at_work(118, 25);
}

#[test]
fn those_at_work_are_paused_answered_one_after_the_other_and_stopped_at_80x24() {
    at_work(80, 24);
}

#[test]
fn a_session_with_only_an_agent_is_listed_and_gone_on_with() {
    let server = server();
    let place = Place::anthropic(&server);
    let mut term = place.term(&[], 80, 24);
    term.wait_text("Type what you want done");
    say(&mut term, "/spawn look for the walnut");
    term.wait_text("Agent a1 started");
    panel(&mut term);
    term.wait("its end", |s| agent_row(s, "a1 ").contains("✓"));
    term.keys("\x1b");
    idle(&term);
    assert_eq!(quit(&mut term), 0);
    let listed = place.ok(&["sessions", "list", "--exec"]);
    assert!(listed.contains("look for the walnut"), "{listed}");
    let mut term = place.term(&["-c"], 118, 25);
    term.wait_text("Agent a1 is done");
    term.keys("\x1b3");
    term.wait("its agent", |s| agent_row(s, "a1 ").contains("✓"));
    term.keys("\x1b");
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn the_modes_take_each_others_place() {
    let server = server();
    let place = Place::anthropic(&server);
    let mut term = place.term(&["--profile", "read-only"], 80, 24);
    term.wait_text("Type what you want done");
    // Before the session is open the header shows the default mode, and the key continues from that.
    term.wait("the mode of the flag", |s| s.lines().next().is_some_and(|l| l.contains(" READ ")));
    let modes = |s: &str| s.matches("Permission mode").count();
    let (mut word, mut changes, mut asked) = (String::new(), 0, false);
    // At most as many times as there are modes; the last one needs a confirmation.
    for _ in 0..5 {
        term.keys("\x1b[Z");
        let screen = term.wait("the mode", |s| {
            let line = s.lines().find(|l| l.contains("Permission mode")).unwrap_or_default();
            !line.is_empty() && line.trim() != word || s.contains("AUTO mode?")
        });
        if screen.contains("AUTO mode?") {
            crate::screen::confirm(&mut term, "AUTO mode?", "[y] yes, AUTO", "n");
            term.wait_gone("AUTO mode?");
            asked = true;
            break;
        }
        assert_eq!(modes(&screen), 1, "{screen}");
        changes += 1;
        word = screen.lines().find(|l| l.contains("Permission mode")).unwrap_or_default().trim().to_owned();
    }
    assert!(asked && changes >= 2, "{changes} modes were taken at once, and the last one is asked about");
    let screen = idle(&term);
    assert!(modes(&screen) <= 1, "{screen}");
    assert_eq!(quit(&mut term), 0);
}
