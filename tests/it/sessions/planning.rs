//! Planning at a real terminal: a plan is requested, changed in the editor, approved, and carried out.

use serde_json::json;
use tiller_testkit::{Script, Wire};

use crate::common::Place;
use crate::scenario::Model;
use crate::screen::{idle, say};

const PLAN: &str = "# Greeting\n\n1. Write hello.txt\n2. Look at it\n";

fn place(model: &Model) -> Place {
    let mut place = Place::new();
    place.wire(model.wire, &model.server);
    // An editor that appends a line.
    let editor = place.user.join("editor");
    tiller_testkit::program(&editor, "#!/bin/sh\necho '3. Say goodbye' >> \"$1\"\n");
    place.set("EDITOR", &format!("'{}'", editor.display()));
    place
}

#[test]
fn a_plan_is_asked_for_changed_approved_and_worked_by() {
    let model = Model::new(Wire::Anthropic);
    let place = place(&model);
    model.push(Script::new().call("c1", "write_file", json!({"path": "early.txt", "content": "x"})));
    model.push(Script::new().call("c2", "write_plan", json!({"plan": PLAN})));
    model.push(Script::new().call("c3", "write_file", json!({"path": "hello.txt", "content": "hello\n"})));
    model.push(Script::new().text("It is written."));
    let mut term = place.term(&["--profile", "auto-edit"], 118, 25);
    term.wait_text("Type what you want done");
    say(&mut term, "/plan greet the world");
    term.wait_text("Approve this plan?");
    let header = |s: &str, word: &str| s.lines().next().is_some_and(|l| l.contains(word));
    term.wait("the plan in its mode", |s| s.contains("2. Look at it") && header(s, "PLAN"));
    assert!(!place.work.join("early.txt").exists(), "nothing is written before the yes");
    term.wait("its keys", |s| s.contains("[a] approve"));
    crate::screen::unfold(&mut term);
    crate::common::let_deafness_pass();
    term.keys("e");
    term.wait_text("3. Say goodbye");
    crate::common::let_deafness_pass();
    term.keys("a");
    term.wait_text("It is written.");
    idle(&term);
    term.wait("the mode from before, and the todo list", |s| header(s, "EDIT") && s.contains("Say goodbye"));
    assert_eq!(place.read("hello.txt"), "hello\n");
    let told = model.asked()[2].to_string();
    assert!(told.contains("approved the plan") && told.contains("3. Say goodbye"), "{told}");
    model.assert_only_grows();
    assert_eq!(crate::screen::quit(&mut term), 0);
}

#[test]
fn what_shall_change_is_said_and_a_plan_is_dropped_in_a_small_terminal() {
    let model = Model::new(Wire::Anthropic);
    let place = place(&model);
    model.push(Script::new().call("c1", "write_plan", json!({"plan": PLAN})));
    model.push(Script::new().call("c2", "write_plan", json!({"plan": "- One step\n"})));
    model.push(Script::new().text("Then not."));
    let mut term = place.term(&["--profile", "ask"], 80, 24);
    term.wait_text("Type what you want done");
    say(&mut term, "/plan greet the world");
    term.wait("the plan and its keys", |s| s.contains("Approve this plan?") && s.contains("[d] discard"));
    crate::screen::unfold(&mut term);
    crate::common::let_deafness_pass();
    term.keys("c");
    term.wait_text("What to change:");
    term.keys("one step is enough\r");
    term.wait("the next plan", |s| s.contains("One step") && s.contains("[d] discard"));
    crate::screen::unfold(&mut term);
    crate::common::let_deafness_pass();
    term.keys("d");
    term.wait("the reply in the mode from before", |s| {
        s.contains("Then not.") && s.lines().next().is_some_and(|l| l.contains("ASK"))
    });
    let asked = model.asked();
    assert!(asked[1].to_string().contains("one step is enough"));
    assert!(asked[2].to_string().contains("the user discarded the plan"));
    assert_eq!(crate::screen::quit(&mut term), 0);
}

#[test]
fn without_a_person_the_plan_is_the_answer() {
    let model = Model::new(Wire::Anthropic);
    let place = place(&model);
    model.push(Script::new().call("c1", "write_plan", json!({"plan": PLAN})));
    model.push(Script::new().text("The plan is ready."));
    let out = place.run(&["exec", "--profile", "plan", "greet the world"]);
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "The plan is ready.\n"), "{out:?}");
    let told = model.asked()[1].to_string();
    assert!(told.contains("the plan is not approved") && told.contains("/plans/"), "{told}");
    assert!(model.asked()[0].to_string().contains("plan mode"), "it knows from the start");
}
