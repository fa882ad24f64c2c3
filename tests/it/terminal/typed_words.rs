//! Words that are typed while questions open reach the draft, and answer nothing.

use std::time::Duration;

use serde_json::json;
use tiller_testkit::{Script, Term, Wire};

use crate::common::{Place, let_pass, wait};
use crate::scenario::Model;
use crate::screen::{FOLDED, answer, asked};

/// Types at a human speed.
fn type_slowly(term: &mut Term, text: &str) {
    for (n, c) in text.chars().enumerate() {
        term.keys(c.encode_utf8(&mut [0; 4]));
        // Two letters of a word, two words, a thought.
        let_pass(Duration::from_millis(match n % 9 {
            8 => 700,
            3 => 210,
            _ => 60,
        }));
    }
}

fn a_sentence_answers_nothing(columns: u16, rows: u16) {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(model.wire, &model.server);
    model.push(Script::new().call("c2", "terminal", json!({"command": "touch made"})));
    model.push(Script::new().call("c3", "write_file", json!({"path": "b.txt", "content": "one\n"})));
    let which = json!({"question": "Which one goes?", "choices": ["yes", "no"]});
    model.push(Script::new().call("c4", "clarify", which));
    model.push(Script::new().text("It is done."));
    let mut term = place.term(&[], columns, rows);
    term.wait_text("Type what you want done");
    crate::screen::say(&mut term, "make both");
    // The question comes in the middle of a sentence.
    type_slowly(&mut term, "and then ");
    term.wait("the question beside the draft", |s| s.contains("touch made") && s.contains(FOLDED));
    type_slowly(&mut term, "yes, or so, y");
    let_pass(Duration::from_millis(700));
    let screen = term.screen();
    assert!(screen.contains("and then yes, or so, y") && screen.contains(FOLDED), "{screen}");
    assert!(!place.work.join("made").exists() && model.asked().len() == 1, "it was approved:\n{screen}");
    // On request it takes keys; the draft is there when it is answered.
    answer(&mut term, "touch made", "y");
    wait("the file", || place.work.join("made").exists());
    asked(&mut term, "b.txt");
    // Later: Escape closes it, and it comes back when a pane is left.
    term.keys("\x1b");
    term.wait("the draft alone", |s| s.contains("and then yes, or so, y") && !s.contains("wants to"));
    term.keys("\x1b3");
    term.wait("the panel", |s| s.lines().last().is_some_and(|l| l.contains("Esc back")));
    term.keys("\x1b");
    term.wait("the question again", |s| s.contains("wants to") && s.contains(FOLDED));
    answer(&mut term, "b.txt", "y");
    wait("the other file", || place.work.join("b.txt").exists());
    // A question of the model: Escape is "later" there, too, and the composer names what waits.
    term.wait_text("Question from main");
    crate::screen::unfold(&mut term);
    term.keys("\x1b");
    term.wait_gone("Question from main");
    term.keys("\x15");
    term.wait_text("Waiting for your answer (Ctrl-X a)");
    term.keys("\x18a");
    term.wait_text("Question from main");
    crate::common::let_deafness_pass();
    term.keys("2");
    term.wait_text("It is done.");
    let last = model.asked().pop().unwrap()["messages"].to_string();
    assert!(last.contains("no") && !last.contains("or so"), "the draft was never sent: {last}");
    crate::screen::idle(&term);
    assert_eq!(crate::screen::quit(&mut term), 0);
}

#[test]
fn u11_a_sentence_answers_nothing_at_118x25() {
    a_sentence_answers_nothing(118, 25);
}

#[test]
fn u11_a_sentence_answers_nothing_at_80x24() {
    a_sentence_answers_nothing(80, 24);
}

/// `tmux paste-buffer`, mosh and dictation send a paste as if it were typed: it goes to the draft, and acts when the person
/// presses Enter.
#[test]
fn a_paste_without_marks_sends_and_runs_nothing() {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(model.wire, &model.server);
    model.push(Script::new().text("It is looked at."));
    let mut term = place.term(&["--profile", "full"], 80, 24);
    term.wait_text("Type what you want done");
    // A script sends its message with the Enter behind it.
    term.bytes(b"look around\r");
    term.wait_text("It is looked at.");
    crate::screen::idle(&term);
    model.push(Script::new().text("It is read."));
    term.bytes(b"read this:\r!touch x\r/quit\r");
    term.wait("the lines", |s| ["read this:", "!touch x", "/quit"].iter().all(|l| s.contains(l)));
    term.wait_text("Taken for a paste");
    let_pass(Duration::from_millis(300));
    let screen = term.screen();
    assert!(!place.work.join("x").exists() && model.asked().len() == 1, "{screen}");
    term.keys("\r");
    term.wait_text("It is read.");
    let asked = serde_json::to_string(&model.asked()).unwrap();
    assert!(asked.contains("read this:\\n!touch x\\n/quit"), "{asked}");
    assert!(!place.work.join("x").exists());
    // What the person types acts.
    crate::screen::say(&mut term, "!touch y");
    wait("the other file", || place.work.join("y").exists());
    assert_eq!(crate::screen::quit(&mut term), 0);
}
