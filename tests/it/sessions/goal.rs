//! A goal at a real terminal: it continues by itself, shows its state, and stops by Escape.

use serde_json::json;
use tiller_testkit::{Script, Term, Wire};

use crate::common::{Place, others, wait};
use crate::scenario::Model;
use crate::screen::{idle, say};

fn place(model: &Model) -> Place {
    let mut place = Place::new();
    place.wire(model.wire, &model.server);
    place
}

/// Waits for these words in the header: the conversation may have the same ones.
fn header(term: &Term, words: &str) {
    term.wait(&format!("{words:?} in the header"), |s| s.lines().next().is_some_and(|l| l.contains(words)));
}

#[test]
fn a_goal_is_pursued_until_its_check_holds_and_shown_on_the_way() {
    let model = Model::new(Wire::Anthropic);
    let place = place(&model);
    for n in 1..=2 {
        let line = json!({"command": "echo line >> log"});
        model.push(Script::new().call(&format!("c{n}"), "terminal", line));
        model.push(Script::new().text(&format!("Round {n} is done.")));
    }
    let mut term = place.term(&["--profile", "full"], 118, 25);
    term.wait_text("Type what you want done");
    say(&mut term, "/goal --turns 5 two lines in log -- test $(wc -l < log) -ge 2");
    term.wait_text("Round 1 is done.");
    term.wait_text("The goal is not reached yet (turn 1 of 5)");
    term.wait_text("Round 2 is done.");
    header(&term, "goal reached");
    idle(&term);
    assert_eq!(place.read("log"), "line\nline\n");
    assert_eq!(model.left(), 0);
    say(&mut term, "/goal");
    term.wait_text("Goal reached, turn 2 of 5");
    model.assert_only_grows();
    assert_eq!(crate::screen::quit(&mut term), 0);
}

#[test]
fn escape_stops_its_check_and_a_restart_does_not_go_on_by_itself() {
    let model = Model::new(Wire::Anthropic);
    let place = place(&model);
    model.push(Script::new().text("Tried."));
    let mut term = place.term(&["--profile", "full"], 80, 24);
    term.wait_text("Type what you want done");
    say(&mut term, "/goal it is over -- touch checking; sleep 600");
    term.wait_text("Tried.");
    wait("the check", || place.work.join("checking").exists());
    header(&term, "goal?");
    term.keys("\x1b");
    header(&term, "goal stopped");
    wait("no process but ours", || others(&place).is_empty());
    assert_eq!(crate::screen::quit(&mut term), 0);
    // It is still there, and continues on request.
    let mut term = place.term(&["-c", "--profile", "full"], 80, 24);
    header(&term, "goal stopped");
    assert_eq!(model.asked().len(), 1);
    model.push(Script::new().text("Tried once more."));
    std::fs::remove_file(place.work.join("checking")).unwrap();
    say(&mut term, "/goal go");
    term.wait_text("Tried once more.");
    wait("the check", || place.work.join("checking").exists());
    header(&term, "goal?");
    say(&mut term, "/goal stop");
    header(&term, "goal stopped");
    wait("the end of the check", || others(&place).is_empty());
    assert_eq!(crate::screen::quit(&mut term), 0);
}
