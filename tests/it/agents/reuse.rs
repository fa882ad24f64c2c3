//! The result of an agent is used again for a task that is alike, and the screen says so.

use serde_json::{Value, json};
use tiller_testkit::ScriptServer;

use crate::common::{Place, calls, says};
use crate::screen::{idle, quit, say};

const TASK: &str = "Count the public functions in a.txt and list the names of all of them";
const ALIKE: &str = "Count the public functions of a.txt, and list the names of all of them, please";

/// The main agent delegates [`TASK`], then [`ALIKE`] each time; an agent reads the file and answers.
fn server() -> ScriptServer {
    ScriptServer::with(|request, _| {
        let body: Value = request.json();
        let messages = body["messages"].as_array().unwrap();
        let main = messages[0]["content"].to_string().contains("count them");
        let results = messages.iter().filter(|m| m["content"].to_string().contains("tool_result")).count();
        let last = messages.last().unwrap()["content"].to_string();
        let answered = last.contains("tool_result");
        match (main, answered) {
            (true, false) => {
                let goal = if results == 0 { TASK } else { ALIKE };
                calls(&format!("d{results}"), "delegate_task", json!({"tasks": [{"goal": goal}]}))
            }
            (true, true) => says("Counted."),
            (false, false) => calls("r1", "read_file", json!({"path": "a.txt"})),
            (false, true) => says("one, and no other"),
        }
    })
}

/// Agents that were asked for either task.
fn asked(server: &ScriptServer) -> usize {
    let first = |body: &Value| body["messages"].as_array().is_some_and(|m| m.len() == 1);
    let of = |body: &Value| body["messages"].to_string().contains("Count the public functions");
    server.bodies().iter().filter(|body| first(body) && of(body)).count()
}

fn used_again(cols: u16, rows: u16) {
    let server = server();
    let place = Place::anthropic(&server);
    let config = place.home.join("config/config.toml");
    let old = std::fs::read_to_string(&config).unwrap_or_default();
    place.config(&format!("{old}\n[agents]\nreuse = \"alike\"\n"));
    place.file("a.txt", "fn one\n");
    let mut term = place.term(&["--profile", "auto-edit"], cols, rows);
    term.wait_text("Type what you want done");
    say(&mut term, "count them");
    term.wait_text("Counted.");
    idle(&term);
    assert_eq!(asked(&server), 1);
    say(&mut term, "once more");
    term.wait_text("reused from a1");
    idle(&term);
    assert_eq!(asked(&server), 1, "no agent was started");
    // The file has changed: the work is done again.
    place.file("a.txt", "fn one\nfn two\n");
    say(&mut term, "and now");
    crate::common::wait("another agent", || asked(&server) == 2);
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn a_result_is_used_again_while_its_files_are_unchanged_at_118x25() {
    used_again(118, 25);
}

#[test]
fn a_result_is_used_again_while_its_files_are_unchanged_at_80x24() {
    used_again(80, 24);
}
