//! The keys for the next agent, the next that needs the person, and a look at one, on a terminal.

use serde_json::json;
use tiller_testkit::{Reply, ScriptServer};

use crate::common::{Place, calls, says};
use crate::screen::{say, type_in};

/// Two agents: one never ends, the other asks to run a command.
fn server() -> ScriptServer {
    ScriptServer::with(|request, _| {
        let body = request.json();
        let (task, all) = (body["messages"][0]["content"].to_string(), body["messages"].to_string());
        match () {
            () if task.contains("wait for the rain") => Reply::silence(),
            () if task.contains("send it away") && all.contains("tool_result") => Reply::silence(),
            () if task.contains("send it away") => {
                calls("s1", "terminal", json!({"command": "./deploy.sh --to production"}))
            }
            () if all.contains("tool_result") || !task.contains("part the work") => says("Yes."),
            () => {
                let goals = ["wait for the rain", "send it away"].map(|goal| json!({"goal": goal}));
                calls("d1", "delegate_task", json!({"tasks": goals}))
            }
        }
    })
}

fn by_one_key(cols: u16, rows: u16) {
    let server = server();
    let place = Place::anthropic(&server);
    let mut term = place.term(&["--profile", "ask"], cols, rows);
    term.wait_text("Type what you want done");
    say(&mut term, "part the work");
    term.wait("the question is open", |s| s.contains("deploy.sh") && s.contains("once"));
    // Put aside, it does not come back by itself.
    term.keys("\x1b");
    term.wait_gone("once");
    type_in(&mut term, "a draft of mine");
    // A look at the one that needs the person; the same key goes back.
    term.keys("\x1bp");
    term.wait("a look at it", |s| s.contains("Peek at a2") && !s.contains("Loading"));
    term.keys("\x1bn");
    term.wait("a look at the other", |s| s.contains("Peek at a1") && !s.contains("Loading"));
    term.keys("\x1bp");
    let screen = term.wait_gone("Peek at");
    assert!(screen.contains("a draft of mine") && !screen.contains("> a1"), "{screen}");
    // Escape goes back too, and stops nothing.
    term.keys("\x1bp");
    term.wait_text("Peek at a2");
    term.keys("\x1b");
    term.wait_gone("Peek at");
    // Text that is typed there goes to the draft.
    term.keys("\x1bp");
    term.wait_text("Peek at a2");
    term.keys("!");
    term.wait("the draft", |s| s.contains("a draft of mine!") && !s.contains("Peek at"));
    // Round the agents.
    for name in ["> a1", "> a2"] {
        term.keys("\x1bn");
        term.wait_text(name);
    }
    term.keys("\x1bn");
    let screen = term.wait("back at main", |s| !s.contains("> a2") && s.contains("a draft of mine!"));
    assert!(screen.contains("a draft of mine!"), "{screen}");
    // To what needs the person.
    term.keys("\x1ba");
    term.wait("the question", |s| s.contains("deploy.sh") && s.contains("once"));
}

#[test]
fn next_needs_and_peek_are_one_key_each_at_118x25() {
    by_one_key(118, 25);
}

#[test]
fn next_needs_and_peek_are_one_key_each_at_80x24() {
    by_one_key(80, 24);
}
