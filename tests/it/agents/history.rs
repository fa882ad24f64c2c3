//! In an agent's own conversation: going back, branching, comparing, searching and undoing work as in the main one.

use tiller_testkit::ScriptServer;

use crate::common::{Place, calls, says};
use crate::screen::{agent_row, drafted, idle, quit, say};

/// A model that writes the requested tree into a file.
fn gardener() -> ScriptServer {
    ScriptServer::with(|request, _| {
        let body = request.json();
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let last = messages
            .iter()
            .rev()
            .find(|m| m["role"] == "user")
            .map_or(String::new(), |m| m["content"].to_string());
        let tree =
            ["walnut", "chestnut", "oak"].into_iter().find(|t| last.contains(&format!("plant the {t}")));
        let write = |tree: &str| {
            let args = serde_json::json!({"path": "tree.txt", "content": format!("{tree}\n")});
            calls(&format!("c{}", messages.len()), "write_file", args)
        };
        match tree {
            // A file that was changed by going back is read first.
            _ if last.contains("tool_result") && last.contains("look1") => write("oak"),
            Some("oak") => calls("look1", "read_file", serde_json::json!({"path": "tree.txt"})),
            _ if last.contains("tool_result") => says("It is planted."),
            Some(tree) => write(tree),
            None => says("Yes."),
        }
    })
}

/// Waits for the answer to a message. On a small screen the answer before may have left it.
fn answered(term: &tiller_testkit::Term, message: &str) {
    term.wait("its answer", |s| {
        let after = s.rsplit_once(message).map_or("", |(_, after)| after);
        after.contains("It is planted.") && s.contains("Esc back to main")
    });
}

fn inside(cols: u16, rows: u16) {
    let server = gardener();
    let place = Place::anthropic(&server);
    let mut term = place.term(&["--profile", "auto-edit"], cols, rows);
    let planted = |tree: &'static str| {
        let file = place.work.join("tree.txt");
        move || std::fs::read_to_string(&file).is_ok_and(|t| t.trim() == tree)
    };
    term.wait_text("Type what you want done");
    say(&mut term, "/spawn plant the walnut");
    crate::common::wait("the walnut", planted("walnut"));
    term.keys("\x1b3");
    term.wait("its row", |s| s.contains("K stop all") && !agent_row(s, "a1 ").is_empty());
    term.keys("j");
    term.keys("\r");
    term.wait("its conversation", |s| s.contains("It is planted.") && s.contains("Esc back to main"));
    say(&mut term, "plant the chestnut instead");
    crate::common::wait("the chestnut", planted("chestnut"));
    answered(&term, "plant the chestnut instead");
    // Back to the state before that: conversation and files.
    term.keys("\x1b5");
    term.wait_text("R restore");
    term.keys("R");
    term.wait("what would change", |s| s.contains("Restore?") && s.contains("tree.txt"));
    crate::common::let_deafness_pass();
    term.keys("\r");
    crate::common::wait("the walnut again", planted("walnut"));
    // A summary of the branch that was left is offered: no.
    term.wait_text("Summarize the branch that you left?");
    term.keys("\r");
    term.wait_gone("Summarize the branch that you left?");
    drafted(&term, "plant the chestnut instead");
    term.keys("\x15");
    say(&mut term, "plant the oak instead");
    crate::common::wait("the oak", planted("oak"));
    answered(&term, "plant the oak instead");
    // Both branches side by side.
    say(&mut term, "/compare");
    term.wait("its branches", |s| {
        s.contains("Compare this branch with") && s.contains("▌ main  plant the chestnut")
    });
    term.keys("\r");
    term.wait("both sides", |s| s.contains("+ main") && s.contains("oak") && s.contains("chestnut"));
    term.keys("\x1b");
    term.wait_text("Esc back to main");
    // A hit in its conversation opens it, also from the main one.
    term.keys("\x1b");
    term.wait_text("is done, 1 file");
    term.keys("\x18F");
    term.wait_text("Find in this folder's sessions");
    term.keys("\"the walnut\"");
    // The conversation and the panel behind the list have these words too: the list counts its hits.
    term.wait("the hit", |s| {
        s.lines().any(|l| l.contains("the walnut\"") && l.contains("1 of ")) && s.contains("plant the walnut")
    });
    term.keys("\r");
    term.wait("its conversation", |s| s.contains("▌ plant the walnut") && s.contains("It is planted."));
    // Its own branches, not those of the main one: the branch that was left is listed and can be opened.
    term.keys("\x1b0");
    term.keys("\x1b0");
    term.wait_text("is done, 1 file");
    idle(&term);
    assert!(!term.showed(0, |s| s.contains("Session already open")), "it is the session of this window");
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn an_agents_conversation_is_gone_back_in_branched_compared_and_found_at_118x25() {
    inside(118, 25);
}

#[test]
fn an_agents_conversation_is_gone_back_in_branched_compared_and_found_at_80x24() {
    inside(80, 24);
}

/// A goal that is set in an agent's conversation belongs to the agent: it continues by itself, and its header and row
/// show the goal.
fn pursues(cols: u16, rows: u16) {
    let server = ScriptServer::with(|request, _| {
        let body = request.json();
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let last = messages.last().map_or(String::new(), |m| m["content"].to_string());
        match last.contains("tool_result") {
            false if last.contains("Goal: ") || last.contains("not reached yet") => {
                let args = serde_json::json!({"command": "echo line >> log"});
                calls(&format!("c{}", messages.len()), "terminal", args)
            }
            true => says("One more line."),
            false => says("Ready."),
        }
    });
    let place = Place::anthropic(&server);
    let mut term = place.term(&["--profile", "full"], cols, rows);
    term.wait_text("Type what you want done");
    say(&mut term, "/spawn be ready");
    term.keys("\x1b3");
    term.wait("its end", |s| s.contains("K stop all") && s.contains("✓ a1"));
    term.keys("j");
    term.keys("\r");
    term.wait("its conversation", |s| s.contains("Ready.") && s.contains("Esc back to main"));
    say(&mut term, "/goal --turns 5 two lines -- test $(wc -l < log) -ge 2");
    term.wait("the goal, and the end of the turn", |s| {
        s.lines().next().is_some_and(|l| l.contains("goal reached")) && s.contains("Esc back to main")
    });
    assert_eq!(place.read("log"), "line\nline\n");
    // The main one has none; the row has it.
    term.keys("\x1b");
    term.wait("the main one", |s| s.lines().next().is_some_and(|l| !l.contains("goal")));
    term.keys("\x1b3");
    term.wait("its row", |s| {
        s.contains("K stop all") && s.lines().any(|l| l.contains("a1") && l.contains("goal reached"))
    });
    term.keys("\x1b");
    // Escape directly before the next key would make it an Alt key.
    term.wait("the composer", |s| !s.contains("K stop all"));
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn a_goal_set_in_an_agents_conversation_is_its_own_at_118x25() {
    pursues(118, 25);
}

#[test]
fn a_goal_set_in_an_agents_conversation_is_its_own_at_80x24() {
    pursues(80, 24);
}
