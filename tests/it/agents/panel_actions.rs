//! The other keys of the agents panel: background, the item of the plan, families, starting and retrying.

use std::time::Duration;

use serde_json::{Value, json};
use tiller_testkit::{Reply, ScriptServer, Term};

use crate::common::{Place, TIMEOUT, calls, let_escape_pass, poll, says, wait};
use crate::screen::{agent_row, idle, press_again, quit, say};

/// The first message of the conversation, and its number of tool results.
fn task(body: &Value) -> (String, usize) {
    let messages = body["messages"].to_string();
    (body["messages"][0]["content"].to_string(), messages.matches("tool_result").count())
}

fn server() -> ScriptServer {
    ScriptServer::with(|request, _| {
        let (task, results) = task(&request.json());
        let has = |text: &str| task.contains(text);
        let give = |goal: &str, todo: Option<&str>| {
            calls("d1", "delegate_task", json!({"tasks": [{"goal": goal, "todo": todo}]}))
        };
        match results {
            _ if has("wait for the rain") => Reply::silence(),
            0 if has("part the work") => {
                let item =
                    |id: &str, content: &str| json!({"id": id, "content": content, "status": "pending"});
                let todos = json!({"todos": [item("1", "dig a hole"), item("2", "water it")]});
                calls("t1", "todo_write", todos)
            }
            1 if has("part the work") => give("wait for the rain", Some("2")),
            0 if has("grow a branch") => give("wait for the rain again", None),
            1 if has("grow a branch") => Reply::silence(),
            0 if has("ask for red") => {
                calls("q1", "clarify", json!({"question": "Is it red?", "choices": ["yes", "no"]}))
            }
            2 if has("part the work") => says("I went on without it."),
            _ => says("Yes."),
        }
    })
}

/// Focuses the panel and selects the agent of this name.
fn choose(term: &mut Term, agent: &str) {
    term.keys("\x1b3");
    term.wait_text("k end");
    crate::screen::choose(term, &format!(" {agent}"));
}

fn keys(cols: u16, rows: u16) {
    let server = server();
    let place = Place::anthropic(&server);
    let mut term = place.term(&["--profile", "auto-edit"], cols, rows);
    term.wait_text("Type what you want done");
    say(&mut term, "part the work");
    term.wait("its row", |s| s.contains("2 at work"));
    choose(&mut term, "a1 wait");
    term.wait("it is at work", |s| agent_row(s, "a1 wait").contains("●"));

    // To its item of the plan, and back to its row.
    term.keys("t");
    term.wait("the plan", |s| s.contains("water it") && s.contains("@ go to agent"));
    term.keys("@");
    term.wait("its row again", |s| s.contains("k end") && !agent_row(s, "a1 wait").is_empty());

    // Its parent waits for it: moving it to the background lets the parent continue.
    let parent = || server.bodies().iter().any(|b| task(b).0.contains("part the work") && task(b).1 == 2);
    assert!(!parent(), "it waits");
    term.keys("B");
    wait("the parent to continue", parent);
    let bodies = server.bodies();
    let told = bodies.iter().rfind(|b| task(b).0.contains("part the work")).unwrap()["messages"].to_string();
    assert!(!told.contains("The call failed"), "nothing has failed: {told}");
    term.wait("it is offered no more", |s| !s.lines().last().is_some_and(|l| l.contains("B background")));
    term.keys("B");
    term.wait_text("runs in the background;");

    // A message to it, and none.
    for key in ["s", "m"] {
        term.keys(key);
        term.wait_text("Message to a1");
        term.keys("\x1b");
        term.wait_gone("Message to a1");
    }
    // Workflows.
    term.keys("w");
    term.wait("workflows", |s| s.contains("Start a workflow") || s.contains("No workflow"));
    term.keys("\x1b");
    // A notice that there is none has nothing to close: the Escape is read alone, and no part of the next key.
    let_escape_pass();
    term.wait_gone("Start a workflow");

    // A further agent with a child: the key pressed again within two seconds ends both.
    choose(&mut term, "a1 wait");
    term.keys("S");
    term.wait_text("Start an agent");
    say(&mut term, "grow a branch");
    term.wait_gone("Start an agent");
    term.keys("\x1b3");
    wait("its own", || server.bodies().iter().any(|b| task(b).0.contains("the rain again")));
    term.wait("both at work", |s| agent_row(s, "a2 grow").contains("●"));
    // One that its parent waits for would end with it.
    choose(&mut term, "a3 wait");
    term.keys("B");
    let parent = || server.bodies().iter().any(|b| task(b).0.contains("grow a branch") && task(b).1 == 1);
    wait("its parent to continue", parent);
    choose(&mut term, "a2 grow");
    term.keys("k");
    term.wait_text("Press the key again to end a2");
    // A busy program reads two presses at once: then both steps are done.
    let since = term.written();
    let all = |s: &str| s.contains("and all agents below it were ended");
    press_again(&mut term, "k", |s| {
        s.contains("was ended; press again to also end what it started") || all(s)
    });
    // The message of a key that is read late may hide it at once.
    let both = |term: &Term| term.showed(since, all).then_some(());
    let ended = poll(TIMEOUT, || {
        both(&term).or_else(|| {
            term.keys("k");
            poll(Duration::from_millis(1500), || both(&term))
        })
    });
    assert!(ended.is_some(), "the second press ends nothing:\n{}", term.screen());
    term.wait("its end", |s| agent_row(s, "a2 grow").contains("·"));
    term.wait("the first continues", |s| agent_row(s, "a1 wait").contains("●"));

    // Retried with a note. The selected one stays in sight when it has ended.
    choose(&mut term, "a2 grow");
    term.keys("r");
    term.wait_text("Retry a2");
    term.keys("\x1b");
    term.wait_gone("Retry a2");

    // A dismissed question is answered from its row.
    term.keys("\x1b0");
    idle(&term);
    say(&mut term, "/spawn ask for red");
    term.wait("its question", |s| s.contains("Question from") && s.contains("Is it red?"));
    crate::screen::unfold(&mut term);
    term.wait("its question", |s| s.contains("Is it red?") && s.contains("Enter answer"));
    term.keys("\x18-");
    term.wait("answer it later", |s| {
        !s.contains("Enter answer") && s.lines().next().is_some_and(|l| l.contains("▲ 1"))
    });
    choose(&mut term, "a4 ask");
    term.keys("a");
    term.wait("its question again", |s| s.contains("Is it red?") && s.contains("Enter answer"));
    crate::screen::press_until(&mut term, "1", |s| !s.contains("Enter answer"));
    // A key that was typed after the question is in the composer.
    term.keys("\x15");
    choose(&mut term, "a4 ask");
    term.wait("its end", |s| agent_row(s, "a4 ask").contains("✓"));

    // All of them.
    term.keys("K");
    crate::screen::confirm(&mut term, "Stop everything?", "[y] stop everything", "y");
    term.wait("the end of all", |s| agent_row(s, "a1 wait").contains("·"));
    term.keys("\x1b");
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn every_other_key_of_the_panel_at_118x25() {
    keys(118, 25);
}

#[test]
fn every_other_key_of_the_panel_at_80x24() {
    keys(80, 24);
}
