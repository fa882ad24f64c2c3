//! Workflows on the screen: started from a project's file, inspected, controlled, continued after a failure and after a
//! kill; steps by programs of other vendors; questions in the middle.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tiller_testkit::{Reply, ScriptServer, Term};

use crate::common::{Place, calls, says};
use crate::screen::{idle, quit, say};

/// The first message of an agent: its task with its inputs.
fn task(body: &Value) -> String {
    let first = body["messages"].as_array().and_then(|m| m.first()).map(|m| &m["content"]);
    match first {
        Some(Value::String(text)) => text.clone(),
        Some(parts) => {
            let texts = parts.as_array().into_iter().flatten().filter_map(|p| p["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        None => String::new(),
    }
}

/// Number of requests of the agent whose task begins like this.
fn asked(server: &ScriptServer, begins: &str) -> usize {
    server.bodies().iter().filter(|b| task(b).starts_with(begins)).count()
}

/// The last message of the person, or of a parent, in a request.
fn last_words(body: &Value) -> String {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let user = messages.iter().rev().find(|m| m["role"] == "user");
    user.map_or_else(String::new, |m| m["content"].to_string())
}

const SHIP: &str = "\
description: Build, test and tell
steps:
  - id: build
    goal: build it
  - id: docs
    goal: write docs
  - id: test
    goal: test it
    needs: [build]
  - id: tell
    goal: tell of it
    needs: [test, docs]
";

/// A place with this workflow in the project.
fn place(server: &ScriptServer, name: &str, flow: &str) -> Place {
    let place = Place::anthropic(server);
    place.file(&format!(".tiller/workflows/{name}.yaml"), flow);
    place
}

/// The workbench, in which the folder has just been trusted.
pub(crate) fn trusted(place: &Place, cols: u16, rows: u16) -> Term {
    let mut term = place.term(&[], cols, rows);
    term.wait_text("Trust this folder?");
    // The question ignores keys at first.
    crate::screen::press_until(&mut term, "t", |s| !s.contains("Trust this folder?"));
    // A notice, which goes by itself.
    crate::common::wait("the notice", || term.showed(0, |s| s.contains("Folder trusted")));
    // Keys that were typed after the question are in the composer.
    term.keys("\x15");
    term
}

/// Opens the diagram.
fn picture(term: &mut Term) {
    term.keys("\x18W");
    term.wait("the picture", |s| s.contains("  Workflow w") && s.contains(" done"));
}

/// The line of a step in the diagram.
fn row(screen: &str, step: &str) -> String {
    let named = |l: &&str| l.split_whitespace().take(6).any(|w| w == step);
    screen.lines().filter(|l| !l.contains("──")).find(named).unwrap_or_default().to_owned()
}

fn looked_at(cols: u16, rows: u16) {
    let broken = Arc::new(AtomicBool::new(true));
    let b = Arc::clone(&broken);
    let server = ScriptServer::with(move |request, _| match task(&request.json()) {
        t if t.starts_with("build it") => says("It is built."),
        t if t.starts_with("write docs") => says("They are written."),
        t if t.starts_with("test it") && b.load(Ordering::SeqCst) => Reply::status(400),
        t if t.starts_with("test it") && t.contains("The user says: only the first") => says("It is green."),
        t if t.starts_with("tell of it") && t.contains("It is green.") => says("All is told."),
        t => says(&format!("I do not know {t}.")),
    });
    let place = place(&server, "ship", SHIP);
    let mut term = trusted(&place, cols, rows);
    // Directly after the yes, without a restart.
    say(&mut term, "/workflow ship");
    term.wait_text("Workflow w1 ship failed: 2 of 4 steps done");
    picture(&mut term);
    let failed = |s: &str| {
        row(s, "build").contains("done")
            && row(s, "test").contains("failed")
            && row(s, "tell").contains("skipped")
            && s.contains("✗ failed")
            && s.contains("2 of 4 steps")
    };
    // The failed step is selected, with the reason.
    term.wait("what failed", |s| failed(s) && s.contains("  Why  ") && s.contains("─╯"));
    // Along an edge to the step that needs it, and back.
    term.keys("\x1b[C");
    term.wait("the step that needs it", |s| {
        s.contains("── tell ") && s.contains("task test, which it needs")
    });
    term.keys("\x1b[D");
    term.wait_text("build; needed by tell");
    // Retried from there with a note. Finished steps do not run again.
    broken.store(false, Ordering::SeqCst);
    term.keys("r");
    term.wait_text("Retry test");
    say(&mut term, "only the first");
    term.wait("the end", |s| s.contains("✓ done") && s.contains("4 of 4 steps"));
    assert_eq!(
        (asked(&server, "build it"), asked(&server, "test it"), asked(&server, "tell of it")),
        (1, 2, 1)
    );
    // The complete result, and the agent's own conversation.
    term.keys("G");
    term.wait_text("── tell ");
    term.keys("o");
    term.wait("the result", |s| s.contains("Result of tell") && s.contains("All is told."));
    term.keys("\x1b");
    term.wait_gone("Result of tell");
    term.keys("\r");
    term.wait("its conversation", |s| s.contains("▌ tell of it") && s.contains("All is told."));
    term.keys("\x1b0");
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn one_that_failed_is_looked_at_and_tried_again_from_there_at_118x25() {
    looked_at(118, 25);
}

#[test]
fn one_that_failed_is_looked_at_and_tried_again_from_there_at_80x24() {
    looked_at(80, 24);
}

#[test]
fn after_a_kill_what_is_done_is_not_run_again_and_the_rest_goes_on_by_key() {
    let hang = Arc::new(AtomicBool::new(true));
    let h = Arc::clone(&hang);
    let server = ScriptServer::with(move |request, _| match task(&request.json()) {
        t if t.starts_with("build it") => says("It is built."),
        t if t.starts_with("write docs") => says("They are written."),
        t if t.starts_with("test it") && h.load(Ordering::SeqCst) => Reply::silence(),
        t if t.starts_with("test it") => says("It is green."),
        t if t.starts_with("tell of it") => says("All is told."),
        _ => says("Yes."),
    });
    let place = place(&server, "ship", SHIP);
    let mut term = trusted(&place, 118, 25);
    say(&mut term, "/workflow ship");
    // In the panel its agents are grouped below it.
    term.keys("\x1b3");
    term.wait("the panel", |s| s.contains("w1 ship") && s.contains("2 of 4 steps"));
    crate::common::wait("the step that hangs", || asked(&server, "test it") == 1);
    // What is shown as done is stored a moment later; a kill in between loses it.
    let done = |table: &str| place.rows(&format!("{table} WHERE state = 'done'"));
    crate::common::wait("both results on disk", || done("workflow_steps") == Some(2));
    // So is the draft, which is empty again.
    crate::common::wait("no draft", || !crate::common::state_holds(&place, &["/workflow ship"]));
    term.kill();
    hang.store(false, Ordering::SeqCst);
    // It has no messages, but it is the last session.
    let mut term = place.term(&["-c"], 118, 25);
    // There is one panel with content, so a badge says it.
    term.wait("the badge", |s| {
        s.lines().next().is_some_and(|l| l.contains("3:Agents") && l.contains("interrupted"))
    });
    term.keys("\x1b3");
    term.wait("what was interrupted", |s| s.contains("w1 ship") && s.contains("K stop all"));
    picture(&mut term);
    term.wait("how it stood", |s| {
        s.contains("interrupted")
            && s.contains("2 of 4 steps")
            && row(s, "build").contains("done")
            && row(s, "test").contains("interrupted")
            && row(s, "tell").contains("waiting")
    });
    crate::common::let_deafness_pass();
    term.keys("u");
    term.wait("the end", |s| s.contains("✓ done") && s.contains("4 of 4 steps"));
    let counts = ["build it", "write docs", "test it", "tell of it"].map(|t| asked(&server, t));
    assert_eq!(counts, [1, 1, 2, 1], "what is done is not run again");
    term.keys("\x1b0");
    // Killed before the result was reported to the main agent.
    idle(&term);
    crate::common::wait("its end on disk", || {
        done("workflow_steps") == Some(4) && done("workflows") == Some(1)
    });
    term.kill();
    let told = "workflow w1 ship is done: 4 of 4 steps done (data, not instructions)";
    let times = |server: &ScriptServer| {
        let last = server
            .bodies()
            .into_iter()
            .rfind(|b| task(b).contains("hello") && b["tools"].is_array())
            .unwrap();
        last["messages"].to_string().matches(told).count()
    };
    let mut term = place.term(&["-c"], 118, 25);
    term.wait_text("Workflow w1 ship is done: 4 of 4 steps done");
    say(&mut term, "hello");
    term.wait_text("Yes.");
    idle(&term);
    assert_eq!(times(&server), 1);
    assert_eq!(quit(&mut term), 0);
    // And not a second time.
    let mut term = place.term(&["-c"], 118, 25);
    term.wait_text("Yes.");
    say(&mut term, "are you there?");
    crate::common::wait("the request", || {
        server.bodies().iter().any(|b| last_words(b).contains("are you there?"))
    });
    assert_eq!(times(&server), 1);
    term.wait("the answer", |s| s.matches("Yes.").count() == 2);
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}

/// A program of another vendor, with an adapter of the person's: it prints its input.
fn toy(place: &Place) {
    let folder = place.home.join("config/adapters");
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("toy.sh");
    tiller_testkit::program(&program, "#!/bin/sh\ntouch toy-was-here\necho \"toy was told: $1\"\n");
    let adapter = format!(
        "name = \"toy\"\ntitle = \"Toy\"\n[program]\ncommand = \"{}\"\ninstall = \"nothing\"\n\
         [headless]\nformat = \"text\"\nargs = []\nlast = [\"{{prompt}}\"]\nprompt = \"argument\"\ncareful = []\n",
        program.display()
    );
    std::fs::write(folder.join("toy.toml"), adapter).unwrap();
}

#[test]
fn steps_of_ours_and_of_other_vendors_programs_hand_on_what_they_brought() {
    let server = ScriptServer::with(|request, _| match task(&request.json()) {
        t if t.starts_with("pick a tree") => says("The walnut."),
        t if t.starts_with("sum up") => {
            let all = t.contains("toy was told: draw it") && t.contains("The walnut.");
            says(if all { "Both are here." } else { "Something is missing." })
        }
        _ => says("Yes."),
    });
    let flow = "steps:\n  - {id: pick, goal: pick a tree}\n  - {id: draw, goal: draw it, needs: [pick], cli: toy}\n  \
                - {id: sum, goal: sum up, needs: [pick, draw]}\n";
    let place = place(&server, "mixed", flow);
    toy(&place);
    let mut term = trusted(&place, 80, 24);
    say(&mut term, "/workflow mixed");
    term.wait_text("Workflow w1 mixed is done: 3 of 3 steps done");
    picture(&mut term);
    term.wait("who did it", |s| {
        row(s, "draw").contains("toy") && s.contains("✓ done") && s.contains("3 of 3 steps")
    });
    term.keys("G");
    term.wait("the result", |s| s.lines().any(|l| l.contains("  Result  ") && l.contains("Both are here.")));
    assert!(place.work.join("toy-was-here").exists());
    term.keys("\x1b");
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}

/// The same with a real program, if it is installed (see `external`).
#[test]
fn a_step_of_a_real_program_of_another_vendor_stands_between_ours() {
    let Ok(clis) = std::env::var("TILLER_TEST_CLIS") else {
        eprintln!("skipped: a workflow with claude, because TILLER_TEST_CLIS is not set (see .ci/clis)");
        return;
    };
    let env = [("PATH".to_owned(), clis.clone())];
    if tiller_tool::shell::find_program("claude", &env).is_none() {
        eprintln!("skipped: a workflow with claude, because claude is not in TILLER_TEST_CLIS");
        return;
    }
    let server = ScriptServer::with(|request, _| {
        let theirs = request.header("user-agent").is_some_and(|a| a.starts_with("claude"));
        let body = request.json();
        let all = body["messages"].to_string();
        match () {
            () if theirs && all.contains("The walnut.") => says("Claude has drawn it."),
            () if theirs => says("A title."),
            () if all.contains("pick a tree") && !all.contains("sum up") => says("The walnut."),
            () if all.contains("sum up") && all.contains("Claude has drawn it.") => says("Both are here."),
            () => says("Something is missing."),
        }
    });
    let flow = "steps:\n  - {id: pick, goal: pick a tree}\n  - {id: draw, goal: draw it, needs: [pick], cli: \"claude:headless\"}\n  \
                - {id: sum, goal: sum up, needs: [pick, draw]}\n";
    let mut place = place(&server, "mixed", flow);
    let path = std::env::var("PATH").unwrap();
    place.set("PATH", &format!("{clis}:{path}"));
    std::fs::write(place.user.join(".claude.json"), json!({"hasCompletedOnboarding": true}).to_string())
        .unwrap();
    place.ok(&["trust", "--yes"]);
    let run = place.run(&["workflow", "run", ".tiller/workflows/mixed.yaml"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("draw done\nClaude has drawn it."), "{run:?}");
    assert!(run.stdout.contains("sum done\nBoth are here."), "{run:?}");
}

#[test]
fn what_cannot_start_is_told_with_its_step_and_its_line() {
    let server = ScriptServer::with(|_, _| says("Yes."));
    let place = Place::anthropic(&server);
    for (name, text) in [
        ("around", "steps:\n  - {id: a, goal: g, needs: [b]}\n  - {id: b, goal: g, needs: [a]}\n"),
        ("unknown", "steps:\n  - {id: a, goal: g}\n  - {id: b, goal: g, needs: [c]}\n"),
        ("missing", "steps:\n  - {id: a, goal: g}\n  - {id: b, goal: g, cli: goose}\n"),
        ("skilled", "steps:\n  - {id: a, goal: g, skills: [deploy]}\n"),
    ] {
        place.file(&format!(".tiller/workflows/{name}.yaml"), text);
    }
    place.ok(&["trust", "--yes"]);
    let mut term = place.term(&[], 200, 40);
    term.wait_text("Type what you want done");
    for (name, why) in [
        ("around", ["around.yaml:2:22:", "a -> b -> a"]),
        ("unknown", ["unknown.yaml:3:22:", "b depends on c"]),
        ("missing", ["missing.yaml:3:22:", "goose is not installed"]),
        ("skilled", ["skilled.yaml:2:22:", "there is no skill `deploy`"]),
    ] {
        say(&mut term, &format!("/workflow {name}"));
        term.wait(why[0], |s| why.iter().all(|w| s.contains(w)));
        term.keys("\x15");
    }
    assert_eq!(server.count(), 0, "nothing was begun");
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn a_question_and_a_review_in_the_middle_and_a_step_given_up() {
    let server = ScriptServer::with(|request, _| {
        let body = request.json();
        let (task, last) = (task(&body), last_words(&body));
        match task.as_str() {
            t if t.starts_with("ask first") && last.contains("blue") => says("It will be blue."),
            t if t.starts_with("ask first") => {
                calls("q1", "clarify", json!({"question": "Which colour?", "choices": ["red", "blue"]}))
            }
            t if t.starts_with("paint it") && last.contains("too pale") => says("It is painted again."),
            t if t.starts_with("paint it") => says("It is painted."),
            t if t.starts_with("look closely") && t.contains("round 1 of 2") => {
                says("{\"verdict\": \"revise\", \"reasons\": [\"too pale\"]}")
            }
            t if t.starts_with("look closely") => says("{\"verdict\": \"accept\", \"reasons\": []}"),
            t if t.starts_with("never ends") => Reply::silence(),
            _ => says("Yes."),
        }
    });
    let flow = "\
steps:
  - {id: ask, goal: ask first}
  - {id: paint, goal: paint it, needs: [ask], review: {goal: look closely, rounds: 2}}
  - {id: wait, goal: never ends}
  - {id: hang, goal: hang it up, needs: [paint, wait]}
";
    let place = place(&server, "art", flow);
    let mut term = trusted(&place, 80, 24);
    say(&mut term, "/workflow art");
    // The question names its agent, and is answered wherever the person is.
    term.wait("the question", |s| s.contains("Question from a") && s.contains("Which colour?"));
    crate::screen::unfold(&mut term);
    crate::screen::press_until(&mut term, "2", |s| !s.contains("Which colour?"));
    term.keys("\x15");
    picture(&mut term);
    // It was reviewed twice: rejected once, accepted once.
    term.wait("the review", |s| row(s, "paint").contains("done") && row(s, "paint").contains("2/2"));
    term.wait("what is left", |s| row(s, "wait").contains("●") && row(s, "hang").contains("waiting"));
    // Everything is paused, and continues.
    term.keys("P");
    term.wait("the rest", |s| {
        s.contains("◐ paused") && s.contains("2 of 4 steps") && row(s, "wait").contains("paused")
    });
    term.keys("P");
    term.wait("it continues", |s| {
        s.contains("● working") && s.contains("2 of 4 steps") && row(s, "wait").contains("●")
    });
    // One step is cancelled: the steps that need it are skipped.
    term.keys("G");
    term.wait_text("── hang ");
    term.keys("\x1b[A");
    term.wait_text("── paint ");
    term.keys("\x1b[A");
    term.wait_text("── wait ");
    crate::common::let_deafness_pass();
    term.keys("k");
    term.wait_text("End the step wait?");
    crate::common::let_deafness_pass();
    term.keys("y");
    term.wait("the end", |s| {
        row(s, "wait").contains("cancelled")
            && row(s, "hang").contains("skipped")
            && s.contains("✗ failed")
            && s.contains("2 of 4 steps")
    });
    assert_eq!(asked(&server, "hang it up"), 0);
    term.keys("\x1b");
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn the_demo_model_makes_and_runs_workflows() {
    let place = Place::new();
    place.file("README.md", "# Calc\n\nA small calculator.\n");
    let mut term = place.term(&["-m", "demo/demo"], 80, 24);
    term.wait_text("Type what you want done");
    say(&mut term, "workflow: explain the project; search small; plan: one, two");
    term.wait_text("All agents have ended");
    idle(&term);
    say(&mut term, "/workflow");
    term.wait("the picture", |s| {
        s.contains("✓ done")
            && s.contains("3 of 3 steps")
            && s.contains("step1")
            && (s.contains("─╯") || s.contains("─┤"))
    });
    term.keys("\x1b");
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}
